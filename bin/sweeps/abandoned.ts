/** Tries that a killed process left open: nobody else would close them, and their leases hold dollars of the sweep's cap. */
import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import type { LeftOpenEnd } from "../../lib/attempt/left-open.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import type { Clock } from "../../lib/platform/ports.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { plannedLines } from "./stored.ts";

/**
 * Closes every open try of the generations before `before`, whose processes are gone: what was finished counts, what was
 * only not judged becomes `unjudged`, the rest is `end`. What their whole turns cost stays spent.
 * @returns how many there were
 */
export async function closeAbandoned(
  runs: Pick<Runs, "objects" | "scores">,
  sweep: string,
  before: number,
  clock: Pick<Clock, "now">,
  end: LeftOpenEnd = { status: "infra_error", reason: "interrupted: the process that ran this try ended" },
): Promise<number> {
  const plans = new Map<number, ReadonlyMap<string, ManifestLine>>();
  let closed = 0;
  for await (const row of runs.scores.rows(sweep)) {
    if (row.status !== "running" || row.generation >= before) continue;
    const plan = plans.get(row.generation) ?? (await plannedLines(runs.objects, sweep, row.generation));
    plans.set(row.generation, plan);
    const close = closeLeftOpen({ store: runs.objects, scores: runs.scores, clock });
    if (await close(row, plan.get(row.attempt) ?? null, end)) closed += 1;
  }
  return closed;
}
