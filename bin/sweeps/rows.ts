/** A sweep's rows, all at once. */
import type { ScoreTable } from "../../lib/platform/ports.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";

export async function allRows(scores: Pick<ScoreTable, "rows">, sweep: string): Promise<ScoreRow[]> {
  const rows: ScoreRow[] = [];
  for await (const row of scores.rows(sweep)) rows.push(row);
  return rows;
}
