/** What of a sweep is still to do: the planned attempts held against the rows that exist. */
import { isValidStatus, type ReportStatus, statusRank } from "../attempt/vocabulary.ts";
import type { ScoreRow } from "../results/score-row.ts";
import type { ManifestLine } from "./manifest-line.ts";

export interface Remaining {
  /** Attempts that need a new try. */
  run: ManifestLine[];
  /** Tries whose evidence is whole and whose judgement is missing: judged again, not run again. */
  judge: { line: ManifestLine; try: number }[];
  /** Attempts that stay as they are. */
  settled: number;
}

/**
 * The row that stands for an attempt: its first valid try, never the best of several; without one, its latest try.
 * Source: design of the metrics ("first valid try").
 */
export function standingRow(tries: readonly ScoreRow[]): ScoreRow | null {
  const byTry = [...tries].sort((a, b) => a.try - b.try);
  return byTry.find((row) => isValidStatus(row.status)) ?? byTry.at(-1) ?? null;
}

/** Rows of a sweep by attempt. */
export function rowsByAttempt(rows: Iterable<ScoreRow>): Map<string, ScoreRow[]> {
  const byAttempt = new Map<string, ScoreRow[]>();
  for (const row of rows) {
    const tries = byAttempt.get(row.attempt);
    if (tries) tries.push(row);
    else byAttempt.set(row.attempt, [row]);
  }
  return byAttempt;
}

/**
 * Chooses what a new generation does. `only` names the statuses that are taken up again (`proctor retry`); without it
 * everything that has no valid row is (`proctor run`). Lines get the new generation's number.
 */
export function remaining(
  planned: readonly ManifestLine[],
  rows: Iterable<ScoreRow>,
  generation: number,
  only?: ReadonlySet<ReportStatus>,
): Remaining {
  const byAttempt = rowsByAttempt(rows);
  const result: Remaining = { run: [], judge: [], settled: 0 };
  for (const planned_ of planned) {
    const line: ManifestLine = { ...planned_, generation };
    const standing = standingRow(byAttempt.get(line.attempt) ?? []);
    // A try that is still open belongs to a process that died: its attempt counts as missing.
    const status: ReportStatus =
      standing === null || statusRank(standing.status) === 0 ? "missing" : asReport(standing);
    if (isValidStatus(status) || (only && !only.has(status))) result.settled += 1;
    else if (status === "unjudged" && standing) result.judge.push({ line, try: standing.try });
    else result.run.push(line);
  }
  return result;
}

function asReport(row: ScoreRow): ReportStatus {
  return row.status === "running" ? "pending" : row.status;
}
