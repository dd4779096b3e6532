/** What `run`, `retry` and `demo` print at the end, and their exit code. */
import { type Leaderboard, leaderboard } from "../../lib/results/leaderboard.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import type { CommandResult } from "../command.ts";
import type { GenerationResult } from "./generation.ts";

export interface SweepOutcome {
  sweep: string;
  generation: number;
  planned: number;
  /** Attempts with a valid row, as the report counts them: under `compat` an executor_incomplete is none. */
  valid: number;
  /** Every planned attempt by status. */
  statuses: Leaderboard["statuses"];
  stopped: GenerationResult["stopped"];
  /** Dollars of all tries, by role. */
  usd: { executor: number; supervisor: number; simulator: number };
  elapsedMs: number;
}

export function outcomeOf(sweep: string, planned: readonly ManifestLine[], result: GenerationResult): SweepOutcome {
  const { statuses, overall } = leaderboard(planned, result.rows, false);
  const usd = { executor: 0, supervisor: 0, simulator: 0 };
  for (const row of result.rows) {
    usd.executor += row.usd.executor;
    usd.supervisor += row.usd.supervisor;
    usd.simulator += row.usd.simulator;
  }
  return {
    sweep,
    generation: result.generation,
    planned: planned.length,
    valid: overall.valid,
    statuses,
    stopped: result.stopped,
    usd,
    elapsedMs: Math.round(result.elapsedMs),
  };
}

/** 0 when every planned attempt has a valid row, 1 when some have not. */
export const outcomeCode = (outcome: SweepOutcome): CommandResult["exitCode"] =>
  outcome.valid === outcome.planned ? 0 : 1;

export function outcomeText(outcome: SweepOutcome): string {
  const by = Object.entries(outcome.statuses)
    .map(([status, count]) => `${status} ${count}`)
    .join(", ");
  const dollars = outcome.usd.executor + outcome.usd.supervisor + outcome.usd.simulator;
  const lines = [
    `sweep ${outcome.sweep}: ${outcome.valid} of ${outcome.planned} attempts valid (${by}), $${dollars.toFixed(4)}, ${(outcome.elapsedMs / 1000).toFixed(1)} s`,
  ];
  if (outcome.stopped !== null) {
    lines.push(`It was ${outcome.stopped}; the same command goes on, and so does \`proctor retry ${outcome.sweep}\`.`);
  } else if (outcome.valid < outcome.planned) {
    lines.push(
      `\`proctor report ${outcome.sweep}\` says why; \`proctor retry ${outcome.sweep}\` takes errors up again.`,
    );
  }
  return lines.join("\n");
}
