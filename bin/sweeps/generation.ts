/**
 * One generation of a sweep on this machine: what has no valid row is run, what is unjudged is judged again, and the
 * rows are compacted. The same call resumes: a finished attempt is never touched.
 */
import type { ReportStatus } from "../../lib/attempt/vocabulary.ts";
import { manifestKey } from "../../lib/firewall/keys.ts";
import type { HistoryEvent } from "../../lib/platform/local/interpreter/interpreter.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import type { Clock, Random, Secrets } from "../../lib/platform/ports.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { type Remaining, remaining, standingRow } from "../../lib/sweep/resume.ts";
import { CommandError } from "../command.ts";
import { Engine } from "../engine/engine.ts";
import type { SweepSockets } from "../engine/sockets.ts";
import { closeAbandoned } from "./abandoned.ts";
import { ownController, refuseSecondController } from "./controller.ts";
import { type Interrupts, interruptible } from "./interrupts.ts";
import { judgeAgain } from "./judge-again.ts";
import type { ChosenLauncher } from "./local-launcher.ts";
import { type Progress, plainProgress } from "./progress.ts";
import { allRows } from "./rows.ts";
import { lastStoredGeneration, storePlan, storeShards } from "./stored.ts";

export interface GenerationRequest {
  runs: Runs;
  sockets: SweepSockets;
  launcher: ChosenLauncher;
  clock: Clock;
  random: Random;
  secrets: Secrets;
  sweep: string;
  digest: string;
  fixed: string;
  seed: number;
  /** Hash of the preambles that the published requests begin with. */
  preamble: string;
  capUsd: number | null;
  lanes: readonly { lane: string; model: string; concurrency: number }[];
  /** Attempts at the same time, over all lanes. */
  concurrency: number;
  /** Every attempt of the sweep, finished ones too. */
  planned: readonly ManifestLine[];
  /** Only attempts of these statuses are taken up; without it all that have no valid row. */
  only?: ReadonlySet<ReportStatus>;
  write(text: string): void;
  /** Every event of every execution, for measurements. */
  onEvent?(event: HistoryEvent): void;
}

export interface GenerationResult {
  generation: number;
  planned: number;
  rows: ScoreRow[];
  /** Why it ended before everything was done; null when nothing stopped it. */
  stopped: "drained" | "cancelled" | null;
  elapsedMs: number;
}

/** @throws CommandError when another process runs the sweep, or when it was stopped before it began */
export async function runGeneration(request: GenerationRequest): Promise<GenerationResult> {
  const { runs, clock, sweep } = request;
  const started = clock.now();
  const record = await runs.scores.sweep(sweep);
  refuseSecondController(record, clock.now());
  // An older copy of the scores may have been put back: what is stored of later generations stays as it is.
  const generation = Math.max(record?.generation ?? 0, await lastStoredGeneration(runs.objects, sweep)) + 1;
  const progress = plainProgress(request.write, () => clock.now());
  const interrupts = interruptible(progress);
  try {
    const claimed = await runs.scores.startGeneration(record?.generation ?? 0, {
      sweep,
      generation,
      digest: request.digest,
      fixed: request.fixed,
      capUsd: request.capUsd,
      planned: request.planned.length,
      controller: ownController(clock.now(), started),
    });
    if (!claimed) throw new CommandError(2, `another process has just started the sweep ${sweep}`);
    try {
      await execute(request, generation, { started, progress, interrupts });
    } finally {
      await runs.scores.heartbeat(sweep, null, generation);
    }
  } finally {
    interrupts.end();
  }
  const rows = await allRows(runs.scores, sweep);
  const stopped = interrupts.stopped();
  return { generation, planned: request.planned.length, rows, stopped, elapsedMs: clock.now() - started };
}

async function execute(
  request: GenerationRequest,
  generation: number,
  { started, progress, interrupts }: { started: number; progress: Progress; interrupts: Interrupts },
): Promise<void> {
  const { runs, clock, sweep } = request;
  await closeAbandoned(runs, sweep, generation, clock);
  const todo = remaining(request.planned, await allRows(runs.scores, sweep), generation, request.only);
  // Stored first: whatever stops this process from here on, the sweep can be looked at and gone on with.
  await storePlan(
    runs.objects,
    {
      v: 1,
      sweep,
      generation,
      digest: request.digest,
      fixed: request.fixed,
      capUsd: request.capUsd,
      concurrency: request.concurrency,
      lanes: request.lanes.map(({ lane, model, concurrency }) => ({ lane, model, concurrency })),
      planned: request.planned.length,
      seed: request.seed,
      preamble: request.preamble,
    },
    request.planned.map((line) => ({ ...line, generation })),
  );
  const work = todo.run.length + todo.judge.length;
  progress.begin(work);
  if (request.launcher.warning !== null) progress.say(request.launcher.warning);
  progress.say(startText(sweep, generation, request, todo));
  const engine = await Engine.open({
    ...request,
    openLauncher: request.launcher.open,
    onAttemptEnded: (line) => reportEnd(request, line, progress),
  });
  interrupts.attach(engine, {
    clock,
    alive: async () => {
      progress.beat(engine.running.size);
      const ours = await runs.scores.heartbeat(sweep, ownController(clock.now(), started), generation);
      if (!ours) return "another process has taken the sweep over";
      return (await runs.scores.sweep(sweep))?.abortRequested ? "the sweep was aborted" : null;
    },
  });
  try {
    const again = await judgeAgain(engine, todo.judge, { runs, progress, concurrency: request.concurrency });
    const lines = [...todo.run, ...again];
    const lanes = request.lanes
      .map((lane) => ({ ...lane, lines: lines.filter((line) => line.model.name === lane.model) }))
      .filter((lane) => lane.lines.length > 0);
    if (lanes.length === 0 || engine.isDraining) {
      await engine.functions.byName.compact({ v: 1, sweep, generation });
      return;
    }
    await storeShards(runs.objects, sweep, generation, new Map(lanes.map(({ lane, lines: shard }) => [lane, shard])));
    const input = { v: 1, sweep, generation, lanes: lanes.map((lane) => laneInput(sweep, generation, lane)) };
    const ended = await engine.execute("sweep", `sweep-g${String(generation).padStart(2, "0")}`, input);
    if (ended.status === "FAILED" || ended.status === "TIMED_OUT") {
      throw new CommandError(3, `the sweep's execution ended: ${ended.error}: ${ended.cause}`);
    }
  } finally {
    interrupts.end();
    await engine.close();
  }
}

function startText(sweep: string, generation: number, request: GenerationRequest, todo: Remaining): string {
  const parts = [`${todo.run.length} to run`];
  if (todo.judge.length > 0) parts.push(`${todo.judge.length} to judge again`);
  if (todo.settled > 0) {
    parts.push(`${todo.settled} ${request.only === undefined ? "with a valid row" : "left as they are"}`);
  }
  const planned = request.planned.length;
  return `sweep ${sweep}, generation ${generation}: ${planned} ${planned === 1 ? "attempt" : "attempts"} planned: ${parts.join(", ")}`;
}

const laneInput = (
  sweep: string,
  generation: number,
  { lane, concurrency }: { lane: string; concurrency: number },
): { lane: string; manifestKey: string; concurrency: number } => ({
  lane,
  manifestKey: manifestKey(sweep, generation, lane).key,
  concurrency,
});

async function reportEnd(request: GenerationRequest, line: ManifestLine, progress: Progress): Promise<void> {
  const tries = await request.runs.scores.tries(line.sweep, line.attempt);
  const row = standingRow(tries);
  // A try that is still open belongs to the process that has taken the sweep over: it will say what becomes of it.
  if (row?.status !== "running") progress.ended(row);
}
