/** Judges unjudged tries again, from their stored evidence, without running anything. */
import type { JudgeInput } from "../../lib/attempt/functions.ts";
import { worstJudgingUsd } from "../../lib/attempt/reservation.ts";
import { isValidStatus } from "../../lib/attempt/vocabulary.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { standingRow } from "../../lib/sweep/resume.ts";
import type { Engine } from "../engine/engine.ts";
import type { Progress } from "./progress.ts";

/**
 * Each judging holds back its worst case from the sweep's cap while it lasts; one that the cap holds back stays unjudged.
 * @returns the lines whose executor would have to go on: their try is closed, and they are to be run again
 */
export async function judgeAgain(
  engine: Pick<Engine, "execute" | "isDraining">,
  unjudged: readonly { line: ManifestLine; try: number }[],
  at: { runs: Pick<Runs, "scores">; progress: Progress; concurrency: number },
): Promise<ManifestLine[]> {
  const again: ManifestLine[] = [];
  const queue = [...unjudged];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next && !engine.isDraining; next = queue.shift()) {
      const { line } = next;
      const before = (await at.runs.scores.tries(line.sweep, line.attempt)).find((row) => row.try === next?.try);
      const name = `${line.attempt}-t${next.try}-g${line.generation}`;
      const input: JudgeInput = { v: 1, line, try: next.try, turns: before?.turns ?? 1 };
      const usd = worstJudgingUsd(line);
      if (await at.runs.scores.reserve(line.sweep, usd)) {
        try {
          await engine.execute("judge", name, input);
        } finally {
          await at.runs.scores.reserve(line.sweep, -usd);
        }
      } else at.progress.say(`not judged again: $${usd} more would pass the cap of ${line.sweep}; raise limits.usd`);
      const row = standingRow(await at.runs.scores.tries(line.sweep, line.attempt));
      // By its status: under `compat` a row that is closed for good may not be a valid one.
      if (row !== null && (isValidStatus(row.status) || row.status === "unjudged")) at.progress.ended(row);
      else again.push(line);
    }
  };
  await Promise.all(Array.from({ length: Math.min(at.concurrency, queue.length) }, work));
  return again;
}
