/**
 * One turn, from its message to its evidence: the package is handed over (first turn), the agent is asked, watched and,
 * if need be, ended; then what it left is collected and written down.
 */
import type { AgentAdapter } from "../../agents/adapter.ts";
import { evidenceFiles } from "../../firewall/keys.ts";
import type { Clock, ObjectStore } from "../../platform/ports.ts";
import type { TurnReport } from "../../trajectory/turn-report.ts";
import type { ClosedTurn, Gateway, GatewayTurn } from "../gateway/gateway.ts";
import { UnsupportedModel } from "../gateway/upstream.ts";
import type { RunnerInput } from "../runner-input.ts";
import type { SealedMessage } from "../sealed-message.ts";
import type { TurnOutput } from "../turn-protocol.ts";
import { type Collected, Collector } from "./collector.ts";
import { EvidenceWriter } from "./evidence.ts";
import { Left, named, RunnerFault, runnerFaults } from "./faults.ts";
import { packageTar } from "./package-tar.ts";
import { Silence } from "./silence.ts";
import { stopReasonOf, type TurnEnd } from "./stop-reason.ts";
import type { Transcripts } from "./transcripts.ts";
import { LinkError, type TurnServerLink } from "./turn-server-link.ts";
import { lastMoment, watch } from "./watchdog.ts";

export interface TurnWorld {
  input: RunnerInput;
  message: SealedMessage;
  adapter: AgentAdapter;
  /** As the turn's grant sees it. */
  objects: ObjectStore;
  gateway: Gateway;
  /** The gateway's key for the agent. */
  agentKey: string;
  link: TurnServerLink;
  transcripts: Transcripts;
  clock: Clock;
  /** SIGTERM: the turn ends, its evidence is written. */
  interrupt: AbortSignal;
  /** The runner leaves: nothing more is written. */
  leave: AbortSignal;
}

/** How long POST /stop, and then the agent's exit, are waited for. */
const stopMs = 10_000;
/** Collecting after an interruption may take so long: whoever interrupts does not wait for ever. */
const interruptedCollectMs = 30_000;
/** GET /results may be silent for so long, at its beginning and in between: files settle within 2 s, packing is quick. */
const resultsSilenceMs = 30_000;
/** A connection that broke may be the first sign of our own end: SIGTERM gets that long to arrive. */
const lostGraceMs = 500;
/** A provider that is silent for this share of the stall limit has failed; so it is the gateway that notices first. */
const silenceShare = 0.8;

/** @throws RunnerFault, Left */
export async function runTurn(world: TurnWorld): Promise<TurnReport> {
  const { message, clock, link } = world;
  const deadline = Date.parse(message.deadline);
  if (message.turn === 1) {
    await named(runnerFaults.packageFailed, "the package could not be handed to the agent's side", () =>
      link.putPackage(packageTar(world.objects, message.package.task, message.package.digest), world.leave),
    );
  }
  const started = clock.now();
  const mustEndAt = lastMoment(started, deadline, message.limits.turnSeconds);
  const gatewayTurn = openGatewayTurn(world, mustEndAt);
  let watched: Watched;
  let calls: ClosedTurn;
  try {
    watched = await watchAgent(world, gatewayTurn, mustEndAt);
  } finally {
    calls = await gatewayTurn.close();
  }
  const ended = clock.now();
  const collected = await collect(world, watched);
  if (world.leave.aborted) throw new Left();
  return await named(runnerFaults.evidenceFailed, "the evidence could not be written", () =>
    writeEvidence(world, { started, ended, watched, calls, collected }),
  );
}

function openGatewayTurn(world: TurnWorld, mustEndAt: number): GatewayTurn {
  const { message, clock } = world;
  const { limits } = message;
  try {
    return world.gateway.openTurn({
      turn: message.turn,
      task: message.package.task,
      attempt: message.attempt,
      model: message.model,
      caps: { usd: limits.usd, tokens: limits.tokens },
      deadline: Math.min(mustEndAt, clock.now() + limits.turnSeconds * 1000),
      silenceMs: Math.max(1000, limits.stallSeconds * 1000 * silenceShare),
    });
  } catch (error) {
    if (error instanceof UnsupportedModel) throw new RunnerFault(runnerFaults.unsupported, error.message);
    throw error;
  }
}

interface Watched {
  end: TurnEnd;
  /** What the agent printed, with its times. */
  output: string;
}

/** Runs the agent until it ends or is ended. */
async function watchAgent(world: TurnWorld, gatewayTurn: GatewayTurn, mustEndAt: number): Promise<Watched> {
  const { message, clock, link, interrupt, leave, input } = world;
  const over = new AbortController();
  const startedAt = clock.now();
  const output = new OutputKeeper();
  let lastOutputAt: number | null = null;
  let ended: TurnEnd | null = null;
  let refused: LinkError | null = null;

  const agent = (async () => {
    try {
      const outputs = await link.turn(
        {
          v: 1,
          turn: message.turn,
          message: message.request.text,
          sessionId: `${message.attempt}-${message.try}`,
          timeoutSeconds: message.limits.turnSeconds,
          agent: { name: message.agent.name, options: message.agent.options },
          model: message.model.name,
          gateway: { baseUrl: input.gatewayBaseUrl, key: world.agentKey },
          env: message.env,
        },
        AbortSignal.any([over.signal, leave]),
      );
      for await (const line of outputs) {
        if ("stream" in line) {
          lastOutputAt = clock.now();
          output.add(line);
        } else if (line.event === "exit") ended = { kind: "exit", code: line.code, signal: line.signal };
      }
    } catch (error) {
      if (error instanceof LinkError && error.kind !== "broken") refused = error;
    }
  })();

  let stop: TurnEnd | null = null;
  const wake = new AbortController();
  const agentDone = agent.then(() => wake.abort());
  const woken = AbortSignal.any([wake.signal, interrupt, leave]);
  while (!woken.aborted) {
    const decision = watch(
      {
        now: clock.now(),
        startedAt,
        lastOutputAt,
        lastModelAt: gatewayTurn.life.lastAt,
        mustEndAt,
      },
      message.limits,
    );
    if (decision.stop !== null) {
      stop = { kind: "watchdog", stop: decision.stop };
      break;
    }
    await clock.sleep(Math.max(1, decision.checkAt - clock.now()), woken);
  }
  if (leave.aborted) {
    over.abort();
    throw new Left();
  }
  if (stop === null && interrupt.aborted && ended === null) stop = { kind: "interrupted" };
  if (stop !== null) {
    gatewayTurn.endCalls();
    await stopAgent(world, agentDone);
  } else if (ended === null && refused === null) {
    // Broken without an exit.
    await clock.sleep(lostGraceMs, AbortSignal.any([interrupt, leave]));
    if (leave.aborted) throw new Left();
    stop = interrupt.aborted ? { kind: "interrupted" } : { kind: "lost" };
  }
  over.abort();
  if (refused !== null) throw new RunnerFault(runnerFaults.agentUnreachable, (refused as LinkError).message);
  return { end: stop ?? ended ?? { kind: "lost" }, output: output.text() };
}

/** POST /stop ends the agent's process group; then its exit has a moment to arrive. */
async function stopAgent({ link, clock, leave }: TurnWorld, agentDone: Promise<void>): Promise<void> {
  const late = new AbortController();
  const timer = clock.sleep(stopMs, AbortSignal.any([late.signal, leave]));
  const asked = new AbortController();
  const stopped = link.stop(asked.signal).catch(() => undefined);
  await Promise.race([stopped.then(() => agentDone), timer]);
  late.abort();
  asked.abort();
}

async function collect(world: TurnWorld, watched: Watched): Promise<Collected> {
  const { link, message, clock, input, leave } = world;
  const nothing = (reason: string): Collected => ({
    files: [],
    skipped: [],
    transcripts: new Map(),
    cut: { reason, again: false },
  });
  const bound = new AbortController();
  // A third of what is left is for writing.
  const left = Math.max(0, Date.parse(message.deadline) - clock.now()) * (2 / 3);
  const limit = watched.end.kind === "interrupted" ? Math.min(interruptedCollectMs, left) : left;
  const timer = new AbortController();
  void clock.sleep(limit, timer.signal).then(() => {
    if (!timer.signal.aborted) bound.abort();
  });
  const signal = AbortSignal.any([bound.signal, leave]);
  const collector = new Collector({ objects: world.objects, try: input.try, turn: message.turn });
  try {
    let collected = nothing("the results could not be asked for");
    for (const isFirst of [true, false]) {
      const silence = new Silence(clock, resultsSilenceMs);
      try {
        const asked = link.results(message.turn, AbortSignal.any([signal, silence.signal]));
        const stream = await silence.bound(asked);
        // What comes behind the archive's end is of no interest.
        collected = await collector.take(silence.chunks(stream)).finally(() => stream.destroy());
      } catch (error) {
        if (leave.aborted) throw new Left();
        if (!(error instanceof LinkError)) {
          throw new RunnerFault(
            runnerFaults.evidenceFailed,
            `the results could not be stored: ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          );
        }
        if (isFirst) collected = nothing(error.message);
      }
      if (collected.cut === null) break;
      if (silence.tooLong) {
        collected.cut.reason = `GET /results was silent for ${silence.limitMs / 1000} s`;
        // An agent can stop its turn server: one that says nothing at all is not asked again.
        if (!silence.heard) break;
      }
      if (!collected.cut.again || bound.signal.aborted) break;
    }
    return collected;
  } finally {
    timer.abort();
  }
}

interface TurnFacts {
  started: number;
  ended: number;
  watched: Watched;
  calls: ClosedTurn;
  collected: Collected;
}

async function writeEvidence(world: TurnWorld, facts: TurnFacts): Promise<TurnReport> {
  const { message, input, adapter } = world;
  const { watched, calls, collected } = facts;
  if (calls.recordFault) throw calls.recordFault;
  const transcript = world.transcripts.read(adapter, collected.transcripts);
  const exitCode = watched.end.kind === "exit" ? watched.end.code : null;
  const completion =
    watched.end.kind === "exit"
      ? adapter.completion(transcript.events, exitCode ?? (watched.end.signal === null ? null : 128))
      : ({ complete: false, reason: "no_exit" } as const);
  const { stopReason, code } = stopReasonOf({
    end: watched.end,
    calls: calls.outcomes.map((call) => call.status),
    capReached: calls.capReached,
    complete: completion.complete,
  });
  const evidence = new EvidenceWriter(world.objects, input.try, message.turn);
  const note = noteOf(stopReason, facts);
  const report: TurnReport = {
    v: 1,
    turn: message.turn,
    exit: { code, stopReason },
    started: new Date(facts.started).toISOString(),
    ended: new Date(facts.ended).toISOString(),
    executorSeconds: Math.max(0, facts.ended - facts.started) / 1000,
    completion,
    usage: calls.usage,
    manifestKey: evidence.manifestKey,
    isolation: input.isolation,
    ...(note === null ? {} : { note }),
  };
  const { record, lines } = calls;
  await Promise.all([
    evidence.put(evidenceFiles.report, "report", JSON.stringify(report)),
    evidence.put(evidenceFiles.transcript, "transcript", transcript.text),
    evidence.put(evidenceFiles.events, "events", jsonLines(transcript.events)),
    record === null
      ? evidence.put(evidenceFiles.modelCalls, "model-calls", "")
      : evidence.putFile(evidenceFiles.modelCalls, "model-calls", record),
    evidence.put(evidenceFiles.usage, "usage", jsonLines(lines)),
    evidence.put(evidenceFiles.toolUsage, "tool-usage", JSON.stringify({ v: 1, tools: transcript.toolCounts })),
    watched.output === "" ? null : evidence.put(evidenceFiles.output, "output", watched.output),
  ]);
  if (world.leave.aborted) throw new Left();
  const cut = collected.cut === null ? [] : [{ path: "results/", reason: `incomplete: ${collected.cut.reason}` }];
  await evidence.finish({
    collected: collected.files,
    skipped: [...cut, ...collected.skipped],
    usage: calls.usage,
    toolCounts: transcript.toolCounts,
  });
  return report;
}

/** One line on what went wrong, of our own making: provider's faults and cut results. */
function noteOf(stopReason: TurnReport["exit"]["stopReason"], { calls, collected }: TurnFacts): string | null {
  const parts: string[] = [];
  if (stopReason === "rate_limited" || stopReason === "provider_fault") {
    const last = calls.outcomes.findLast((call) => call.message !== null);
    parts.push(`last model call: ${last?.message ?? "no answer"}`);
  }
  if (collected.cut !== null) parts.push(`results incomplete: ${collected.cut.reason}`);
  return parts.length === 0 ? null : parts.join("; ").slice(0, 300);
}

function jsonLines(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

/** Keeps an agent's output: the beginning and the end of what is too much. */
class OutputKeeper {
  static readonly maxBytes = 4 * 1024 ** 2;
  readonly #head: string[] = [];
  #headBytes = 0;
  #tail: string[] = [];
  #tailBytes = 0;
  #dropped = 0;

  add(line: Extract<TurnOutput, { stream: string }>): void {
    const text = `${JSON.stringify(line)}\n`;
    if (this.#headBytes + text.length <= OutputKeeper.maxBytes / 2) {
      this.#head.push(text);
      this.#headBytes += text.length;
      return;
    }
    this.#headBytes = OutputKeeper.maxBytes;
    this.#tail.push(text);
    this.#tailBytes += text.length;
    while (this.#tailBytes > OutputKeeper.maxBytes / 2) {
      this.#tailBytes -= this.#tail.shift()?.length ?? 0;
      this.#dropped++;
    }
  }

  text(): string {
    const gap = this.#dropped === 0 ? "" : `${JSON.stringify({ dropped: this.#dropped })}\n`;
    return this.#head.join("") + gap + this.#tail.join("");
  }
}
