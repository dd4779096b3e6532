/**
 * The runner: our side of an executor. It waits for a turn's message in its try's mailbox, runs the turn, answers the
 * turn's token, and waits for the next. It leaves when `stop` is aborted (whoever started it is gone), when a token is
 * closed (its turn was over already), when it is interrupted and has written what there was, or when nobody asks any more.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { AgentAdapter } from "../../agents/adapter.ts";
import { agentByName } from "../../agents/registry.ts";
import { mailboxKey } from "../../firewall/keys.ts";
import {
  type Clock,
  type Identity,
  type ObjectStore,
  type Random,
  StoreError,
  type TaskTokens,
} from "../../platform/ports.ts";
import type { TurnReport } from "../../trajectory/turn-report.ts";
import { Gateway } from "../gateway/gateway.ts";
import type { RunnerInput } from "../runner-input.ts";
import { unseal } from "../seal.ts";
import type { SealedMessage } from "../sealed-message.ts";
import { Left, RunnerFault, runnerFaults } from "./faults.ts";
import { Transcripts } from "./transcripts.ts";
import { runTurn } from "./turn.ts";
import { TurnServerLink } from "./turn-server-link.ts";

export interface RunnerDeps {
  /** The object store below `root` as an identity sees it. */
  openObjects(root: string, identity: Identity): ObjectStore;
  /** Answers to tokens over `socket`. */
  openTokens(socket: string): TaskTokens;
  clock: Clock;
  random: Random;
  /** A line for people; never a secret. */
  log(line: string): void;
  /** Milliseconds between heartbeats on a turn's token; 60 s unless given. */
  heartbeatMs?: number;
  /** Milliseconds without a message after which nobody is believed to send one; two hours unless given. */
  maxIdleMs?: number;
  agents?: (name: string) => AgentAdapter | null;
}

/** What ended the runner. */
export type RunnerEnd = "stopped" | "closed" | "interrupted" | "idle" | "failed";

const firstPollMs = 10;
const slowestPollMs = 250;
/** How long a mailbox that can not be read at all is borne. */
const maxMailboxFaultMs = 60_000;
const answersSent = 5;

/**
 * Runs until there is nothing more to do.
 * @param stop aborted: leave at once, write nothing more
 * @param interrupt aborted (SIGTERM): end the turn, write its evidence, answer, leave
 */
export async function runRunner(
  input: RunnerInput,
  deps: RunnerDeps,
  stop: AbortSignal,
  interrupt: AbortSignal = new AbortController().signal,
): Promise<RunnerEnd> {
  const runner = new Runner(input, deps, stop, interrupt);
  return await runner.run();
}

class Runner {
  readonly #leave = new AbortController();
  readonly #signal: AbortSignal;
  readonly #agentKey: string;
  readonly #transcripts = new Transcripts();
  readonly #link: TurnServerLink;
  #spool: Promise<string> | null = null;

  constructor(
    private readonly input: RunnerInput,
    private readonly deps: RunnerDeps,
    private readonly stop: AbortSignal,
    private readonly interrupt: AbortSignal,
  ) {
    this.#signal = AbortSignal.any([stop, this.#leave.signal]);
    this.#agentKey = `proctor-${Buffer.from(deps.random.bytes(24)).toString("base64url")}`;
    this.#link = new TurnServerLink(input.turnServer, input.turnSecret);
  }

  async run(): Promise<RunnerEnd> {
    const { input, deps } = this;
    const gateway = await Gateway.start({
      socket: input.gatewaySocket,
      agentKey: this.#agentKey,
      providerKey: input.providerKey,
      clock: deps.clock,
      random: deps.random,
      spool: () => {
        // In the executor's own folder, out of the agent's sight: what a kill leaves there is removed with it.
        this.#spool ??= mkdtemp(join(dirname(input.turnServer), "spool-"));
        return this.#spool;
      },
    });
    try {
      return await this.#turns(gateway);
    } finally {
      this.#leave.abort();
      this.#link.close();
      await gateway.close();
      if (this.#spool) await rm(await this.#spool, { recursive: true, force: true });
    }
  }

  async #turns(gateway: Gateway): Promise<RunnerEnd> {
    const mailbox = this.deps.openObjects(this.input.objects, { role: "executor-task" });
    for (let turn = 1; ; turn++) {
      const sealed = await this.#waitForMessage(mailbox, turn);
      if (typeof sealed === "string") return sealed;
      let message: SealedMessage;
      try {
        message = unseal(this.input.sealKey, sealed);
      } catch (error) {
        // Without the message there is no token to answer; the turn's heartbeat will be missed.
        this.deps.log(`the message of turn ${turn} can not be opened: ${messageOf(error)}`);
        return "failed";
      }
      const ended = await this.#turn(gateway, message, turn);
      if (ended !== null) return ended;
    }
  }

  /** Runs one turn and answers its token. @returns what ends the runner, null to go on */
  async #turn(gateway: Gateway, message: SealedMessage, turn: number): Promise<RunnerEnd | null> {
    const { deps, input } = this;
    if (message.credentials.kind !== "local") {
      deps.log(`credentials of kind ${message.credentials.kind} are not for this runner`);
      return "failed";
    }
    const tokens = deps.openTokens(message.credentials.tokens);
    const beating = new AbortController();
    const beats = this.#heartbeats(tokens, message.taskToken, AbortSignal.any([beating.signal, this.#signal]));
    const late = new AbortController();
    void deps.clock
      .sleep(Date.parse(message.deadline) - deps.clock.now(), AbortSignal.any([late.signal, this.#signal]))
      .then(() => {
        if (!late.signal.aborted) this.#leave.abort();
      });
    try {
      const report = await this.#report(gateway, message, turn);
      // The answer is the last thing of the turn: after it, the next message may come.
      beating.abort();
      await beats;
      const answered = await this.#answer(() => tokens.succeed(message.taskToken, report));
      if (answered !== "accepted") return answered;
      return this.interrupt.aborted || report.exit.stopReason === "interrupted" ? "interrupted" : null;
    } catch (error) {
      beating.abort();
      if (this.stop.aborted) return "stopped";
      // Whatever fails once we are leaving fails because of that.
      const left = error instanceof Left || this.#signal.aborted;
      if (left && deps.clock.now() < Date.parse(message.deadline)) return "closed";
      const fault = left
        ? runnerFaults.deadlinePassed
        : error instanceof RunnerFault
          ? error.name
          : runnerFaults.runnerFault;
      const cause = left ? "the turn was not done at its deadline" : messageOf(error);
      deps.log(`turn ${turn} of ${input.try.attempt}: ${fault}: ${cause}`);
      const answered = await this.#answer(() => tokens.fail(message.taskToken, fault, cause.slice(0, 2000)));
      return answered === "accepted" ? "failed" : answered;
    } finally {
      beating.abort();
      late.abort();
    }
  }

  async #report(gateway: Gateway, message: SealedMessage, turn: number): Promise<TurnReport> {
    const { input, deps } = this;
    const { attempt, try: tryNumber } = input.try;
    if (message.attempt !== attempt || message.try !== tryNumber || message.turn !== turn) {
      throw new RunnerFault(
        runnerFaults.messageUnreadable,
        `the mailbox holds turn ${message.turn} of ${message.attempt}/${message.try}, expected turn ${turn} of ${attempt}/${tryNumber}`,
      );
    }
    const adapter = (deps.agents ?? agentByName)(message.agent.name);
    if (!adapter)
      throw new RunnerFault(runnerFaults.unsupported, `there is no agent ${JSON.stringify(message.agent.name)}`);
    const { credentials } = message;
    if (credentials.kind !== "local") throw new RunnerFault(runnerFaults.unsupported, "no local credentials");
    return await runTurn({
      input,
      message,
      adapter,
      objects: deps.openObjects(credentials.objects, {
        role: "turn-grant",
        try: input.try,
        package: { task: message.package.task, digest: message.package.digest },
      }),
      gateway,
      agentKey: this.#agentKey,
      link: this.#link,
      transcripts: this.#transcripts,
      clock: deps.clock,
      interrupt: this.interrupt,
      leave: this.#signal,
    });
  }

  /** Asks the mailbox until the message is there. What is not there and what is denied look the same from here. */
  async #waitForMessage(mailbox: ObjectStore, turn: number): Promise<Uint8Array | RunnerEnd> {
    const { clock } = this.deps;
    const until = clock.now() + (this.deps.maxIdleMs ?? 2 * 3_600_000);
    let faultySince: number | null = null;
    const woken = AbortSignal.any([this.#signal, this.interrupt]);
    for (let wait = firstPollMs; ; wait = Math.min(slowestPollMs, wait * 1.5)) {
      if (this.#signal.aborted) return "stopped";
      if (this.interrupt.aborted) return "interrupted";
      try {
        return await mailbox.get(mailboxKey(this.input.mailbox, turn));
      } catch (error) {
        const expected = error instanceof StoreError && (error.code === "not_found" || error.code === "access_denied");
        faultySince = expected ? null : (faultySince ?? clock.now());
        if (faultySince !== null && clock.now() - faultySince > maxMailboxFaultMs) {
          this.deps.log(`the mailbox can not be read: ${messageOf(error)}`);
          return "failed";
        }
      }
      if (clock.now() >= until) return "idle";
      await clock.sleep(wait, woken);
    }
  }

  async #heartbeats(tokens: TaskTokens, token: string, over: AbortSignal): Promise<void> {
    for (;;) {
      await this.deps.clock.sleep(this.deps.heartbeatMs ?? 60_000, over);
      if (over.aborted) return;
      try {
        if ((await tokens.heartbeat(token)) === "closed") {
          this.#leave.abort();
          return;
        }
      } catch (error) {
        // The next one may get through; if none does, the turn's heartbeat is missed, as it should be.
        this.deps.log(`heartbeat: ${messageOf(error)}`);
      }
    }
  }

  /** Answers a token, again after a failure to reach whoever takes answers. */
  async #answer(send: () => Promise<"accepted" | "closed">): Promise<"accepted" | RunnerEnd> {
    for (let sent = 1; ; sent++) {
      if (this.stop.aborted) return "stopped";
      try {
        return await send();
      } catch (error) {
        if (sent === answersSent) {
          this.deps.log(`the token could not be answered: ${messageOf(error)}`);
          return "failed";
        }
        await this.deps.clock.sleep(200 * 2 ** sent, this.stop);
      }
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
