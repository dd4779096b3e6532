/** Executors by script, in virtual time: each takes its turns from the mailbox and answers tokens, or does not. */

import { stopTaskRequest, tryOfStartedBy } from "../../lib/attempt/launch-request.ts";
import type { StopReason } from "../../lib/attempt/vocabulary.ts";
import { unseal } from "../../lib/executor/seal.ts";
import type { SealedMessage } from "../../lib/executor/sealed-message.ts";
import { evidenceFileKey, mailboxKey } from "../../lib/firewall/keys.ts";
import type { LaunchSpec } from "../../lib/platform/ports.ts";
import { type Clock, type Random, StoreError, type TaskTokens } from "../../lib/platform/ports.ts";
import type { TurnReport } from "../../lib/trajectory/turn-report.ts";
import type { MemoryObjects } from "./memory-objects.ts";

export interface TurnScript {
  executor: /** Works so many seconds, then reports. */
    | { does: "reports"; seconds?: number; stopReason?: StopReason; code?: number | null; complete?: boolean }
    /** Never answers nor beats. */
    | { does: "nothing" }
    /** Beats for ever and never answers. */
    | { does: "hangs" }
    /** Is gone after so many seconds. */
    | { does: "dies"; seconds: number; code: number | null; signal?: string; reason?: string }
    /** Answers the token with an error. */
    | { does: "fails"; error: string }
    /** Answers with what is no report. */
    | { does: "babbles"; answer: unknown };
}

interface Running {
  id: string;
  spec: LaunchSpec;
  ended: AbortController;
}

type Stopped = (event: {
  v: 1;
  executor: string;
  startedBy: string;
  code: number | null;
  signal: string | null;
  stopCode: string | null;
  reason: string;
}) => Promise<void>;

const pollMs = 500;
const beatMs = 60_000;
/** A runner ends by itself when nobody asks anything of it any more. */
const hardDeadlineMs = 8 * 3600_000;

export class ScriptedExecutors {
  readonly launched: LaunchSpec[] = [];
  readonly stops: string[] = [];
  readonly messages: SealedMessage[] = [];
  readonly #running = new Map<string, Running>();
  readonly #byToken = new Map<string, string>();
  #tokens: TaskTokens | null = null;
  #stopped: Stopped | null = null;

  constructor(
    readonly around: {
      clock: Clock;
      random: Random;
      objects: MemoryObjects;
      turnsOf: (tryNumber: number) => TurnScript[];
    },
  ) {}

  connect(tokens: TaskTokens, stopped: Stopped): void {
    this.#tokens = tokens;
    this.#stopped = stopped;
  }

  get running(): string[] {
    return [...this.#running.keys()];
  }

  launch(spec: LaunchSpec): string {
    const known = this.#byToken.get(spec.clientToken);
    if (known) return known;
    const id = `executor-${this.launched.length + 1}`;
    this.#byToken.set(spec.clientToken, id);
    this.launched.push(spec);
    const running = { id, spec, ended: new AbortController() };
    this.#running.set(id, running);
    void this.#work(running);
    return id;
  }

  /** As ECS answers: a task that is not known is an error. */
  async stopTask(request: unknown): Promise<unknown> {
    const { Task: id } = stopTaskRequest.parse(request);
    this.stops.push(id);
    if (![...this.#byToken.values()].includes(id)) {
      const gone = new Error("The referenced task was not found.");
      gone.name = "Ecs.InvalidParameterException";
      throw gone;
    }
    await this.#end(id, { code: null, signal: "SIGTERM", reason: "stopped" });
    return { Task: { TaskArn: id } };
  }

  async stopStartedBy(startedBy: string): Promise<number> {
    const own = [...this.#running.values()].filter((running) => running.spec.startedBy === startedBy);
    for (const running of own) await this.#end(running.id, { code: null, signal: "SIGTERM", reason: "stopped" });
    return own.length;
  }

  async #end(id: string, how: { code: number | null; signal: string | null; reason: string }): Promise<void> {
    const running = this.#running.get(id);
    if (!running) return;
    this.#running.delete(id);
    running.ended.abort();
    await this.#stopped?.({ v: 1, executor: id, startedBy: running.spec.startedBy, stopCode: null, ...how });
  }

  async #work(running: Running): Promise<void> {
    const { clock, turnsOf } = this.around;
    const tryNumber = tryOfStartedBy(running.spec.startedBy)?.try ?? 1;
    const deadline = clock.now() + hardDeadlineMs;
    for (let turn = 1; ; turn++) {
      const message = await this.#nextMessage(running, turn, deadline);
      if (!message) break;
      this.messages.push(message);
      const script = turnsOf(tryNumber)[turn - 1]?.executor ?? { does: "reports" };
      if (!(await this.#turn(running, message, script))) break;
    }
    await this.#end(running.id, { code: 0, signal: null, reason: "left" });
  }

  async #nextMessage(running: Running, turn: number, deadline: number): Promise<SealedMessage | null> {
    const { clock, objects } = this.around;
    const store = objects.as({ role: "executor-task" });
    // Waits grow, so that virtual hours of waiting for nothing costs little.
    for (let wait = pollMs; clock.now() < deadline; wait = Math.min(wait * 2, 120_000)) {
      if (running.ended.signal.aborted) return null;
      try {
        return unseal(running.spec.sealKey, await store.get(mailboxKey(running.spec.mailbox, turn)));
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
      }
      await clock.sleep(wait, running.ended.signal);
    }
    return null;
  }

  /** False: the executor leaves. */
  async #turn(running: Running, message: SealedMessage, script: TurnScript["executor"]): Promise<boolean> {
    const { clock } = this.around;
    const tokens = this.#tokens as TaskTokens;
    const started = clock.now();
    switch (script.does) {
      case "reports": {
        if (!(await this.#beatFor(running, message, (script.seconds ?? 10) * 1000))) return false;
        const report = this.#evidence(message, started, script);
        return (await tokens.succeed(message.taskToken, report)) === "accepted";
      }
      case "hangs":
        return this.#beatFor(running, message, hardDeadlineMs);
      case "nothing":
        await clock.sleep(hardDeadlineMs, running.ended.signal);
        return false;
      case "dies":
        await clock.sleep(script.seconds * 1000, running.ended.signal);
        await this.#end(running.id, { code: script.code, signal: script.signal ?? null, reason: script.reason ?? "" });
        return false;
      case "fails":
        await tokens.fail(message.taskToken, script.error, "the runner says so");
        return false;
      case "babbles":
        await tokens.succeed(message.taskToken, script.answer);
        return false;
    }
  }

  /** False: the turn is over without us. */
  async #beatFor(running: Running, message: SealedMessage, ms: number): Promise<boolean> {
    const { clock } = this.around;
    for (let left = ms; left > 0; left -= beatMs) {
      await clock.sleep(Math.min(left, beatMs), running.ended.signal);
      if (running.ended.signal.aborted) return false;
      if ((await (this.#tokens as TaskTokens).heartbeat(message.taskToken)) === "closed") return false;
    }
    return true;
  }

  #evidence(
    message: SealedMessage,
    started: number,
    script: Extract<TurnScript["executor"], { does: "reports" }>,
  ): TurnReport {
    const { clock, objects } = this.around;
    const of = { attempt: message.attempt, try: message.try };
    const usage = { input: 100, cached: 0, output: 10, usd: 0.01 };
    const complete = script.complete ?? true;
    const report: TurnReport = {
      v: 1,
      turn: message.turn,
      exit: { code: script.code === undefined ? 0 : script.code, stopReason: script.stopReason ?? "ended" },
      started: new Date(started).toISOString(),
      ended: new Date(clock.now()).toISOString(),
      executorSeconds: (clock.now() - started) / 1000,
      completion: { complete, reason: complete ? "exit_zero" : "no_exit" },
      usage,
      manifestKey: evidenceFileKey(of, message.turn, "manifest.json").key,
      isolation: "none",
    };
    const line = {
      v: 1,
      role: "executor",
      turn: message.turn,
      model: message.model.name,
      ms: 5,
      status: "ok",
      tokens: { input: 100, cached: 0, output: 10 },
      usd: 0.01,
    };
    const put = (file: string, text: string) => objects.put(evidenceFileKey(of, message.turn, file), text);
    put("report.json", JSON.stringify(report));
    put("usage.jsonl", `${JSON.stringify(line)}\n`);
    put("manifest.json", JSON.stringify({ v: 1, files: [], skipped: [], usage, toolCounts: {} }));
    return report;
  }
}
