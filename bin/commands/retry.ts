/** `proctor retry <sweep>`: errors run again in a new try; what is unjudged is judged again from stored evidence. */

import { errorStatus, reportStatus } from "../../lib/attempt/vocabulary.ts";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import type { SweepRecord } from "../../lib/platform/ports.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { remaining } from "../../lib/sweep/resume.ts";
import { nearest } from "../../lib/tasks/problem.ts";
import { CommandError, type CommandResult } from "../command.ts";
import { sweepSockets } from "../engine/sockets.ts";
import { refuseSecondController } from "../sweeps/controller.ts";
import { findSweep } from "../sweeps/find-sweep.ts";
import { runGeneration } from "../sweeps/generation.ts";
import { chooseLauncher } from "../sweeps/local-launcher.ts";
import { localPorts } from "../sweeps/local-ports.ts";
import { outcomeCode, outcomeOf, outcomeText } from "../sweeps/outcome.ts";
import { refuseWhatFails } from "../sweeps/refusals.ts";
import { allRows } from "../sweeps/rows.ts";
import { latestGeneration } from "../sweeps/stored.ts";
import { tell } from "../terminal-text.ts";

export default async function retry(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const only = new Set(
    String(options.status)
      .split(",")
      .map((name) => statusOf(name.trim())),
  );
  const { runs, record } = await findSweep(String(args[0]), String(options.runs));
  try {
    refuseSecondController(record, new RealClock().now());
    const { sweep, planned } = await latestGeneration(runs.objects, record);
    const rows = await allRows(runs.scores, record.sweep);
    const todo = remaining(planned, rows, record.generation + 1, only);
    if (todo.run.length + todo.judge.length === 0) return nothingToRetry(record, planned, rows, only, options);
    refuseWhatFails(record.sweep, planned);
    const result = await runGeneration({
      ...localPorts(),
      runs,
      sockets: sweepSockets(String(options.runs), record.sweep),
      launcher: await chooseLauncher(planned, options.unisolated === true),
      sweep: record.sweep,
      digest: sweep.digest,
      fixed: sweep.fixed,
      seed: sweep.seed,
      preamble: sweep.preamble,
      capUsd: sweep.capUsd,
      lanes: sweep.lanes,
      concurrency: sweep.concurrency,
      planned,
      only,
      write: tell,
    });
    const outcome = outcomeOf(record.sweep, planned, result);
    const text = options.json === true ? JSON.stringify(outcome) : outcomeText(outcome);
    return { exitCode: outcomeCode(outcome), text };
  } finally {
    await runs.close();
  }
}

/** No generation is started for nothing. */
function nothingToRetry(
  { sweep, generation }: SweepRecord,
  planned: readonly ManifestLine[],
  rows: ScoreRow[],
  only: ReadonlySet<string>,
  options: Record<string, unknown>,
): CommandResult {
  const outcome = outcomeOf(sweep, planned, { generation, planned: planned.length, rows, stopped: null, elapsedMs: 0 });
  const exitCode = outcomeCode(outcome);
  if (options.json === true) return { exitCode, text: JSON.stringify(outcome) };
  const there = Object.entries(outcome.statuses).map(([status, count]) => `${status} ${count}`);
  const others = exitCode === 0 ? "" : "; `proctor run` with its sweep file takes up all that have no valid row";
  return {
    exitCode,
    text: `nothing to retry: no attempt of ${sweep} is ${[...only].join(" or ")} (there are ${there.join(", ")})${others}`,
  };
}

function statusOf(name: string): (typeof errorStatus.options)[number] {
  const parsed = errorStatus.safeParse(name);
  if (parsed.success) return parsed.data;
  const near = nearest(name, errorStatus.options);
  const why = reportStatus.safeParse(name).success ? "is not an error, so it is never run again" : "is no status";
  throw new CommandError(
    2,
    `--status: ${name} ${why}; expected ${near ? `${near}, or another` : "one"} of ${errorStatus.options.join(", ")}`,
  );
}
