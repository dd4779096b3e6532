/** Why attempts have no valid result: each kind of error with the reasons that its rows give, the most frequent first. */
import type { ManifestLine } from "../sweep/manifest-line.ts";
import { rowsByAttempt, standingRow } from "../sweep/resume.ts";
import type { ScoreRow } from "./score-row.ts";

const shownReasons = 3;
const reasonLength = 200;

/** Lines for people; none where nothing went wrong. */
export function errorReasons(planned: readonly ManifestLine[], rows: readonly ScoreRow[]): string[] {
  const byAttempt = rowsByAttempt(rows);
  const counts = new Map<string, number>();
  for (const line of planned) {
    const row = standingRow(byAttempt.get(line.attempt) ?? []);
    if (row === null || row.valid || row.status === "running") continue;
    const reason = `${row.status}: ${row.reason.slice(0, reasonLength)}`;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  if (sorted.length === 0) return [];
  const lines = sorted.slice(0, shownReasons).map(([reason, count]) => `  ${count} x ${reason}`);
  const rest = sorted.slice(shownReasons).reduce((sum, [, count]) => sum + count, 0);
  if (rest > 0) lines.push(`  ${rest} x for other reasons`);
  return ["", "errors:", ...lines];
}
