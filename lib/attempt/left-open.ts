/**
 * The row of a try that nobody was left to record: its process died, or its execution ended short of Record. What was
 * finished by then is not thrown away: the same stored evidence gives the same row as Record would have written.
 */
import type { ScoreRow } from "../results/score-row.ts";
import { attemptRow, closedWithoutVerdict, type TryFacts } from "./attempt-row.ts";
import { isValidStatus } from "./vocabulary.ts";

export interface LeftOpen extends Pick<TryFacts, "stored" | "reports" | "decisions" | "followUps" | "usage" | "now"> {
  /** The attempt's line; null when nobody knows it any more. */
  line: TryFacts["line"] | null;
  /** Turns that have a manifest, the first of them in a row. */
  wholeTurns: number;
}

/** What the row says where nothing better can be said. A cancelled try is not judged any more, unless it was already. */
export interface LeftOpenEnd {
  status: "infra_error" | "cancelled";
  reason: string;
}

/**
 * - The last whole turn has a decision after which the attempt stops: the valid row.
 * - It has none: `unjudged`, to be judged from its evidence.
 * - Anything else, evidence that is damaged too: `end`, with what the whole turns cost.
 */
export function leftOpenRow(left: LeftOpen, end: LeftOpenEnd): ScoreRow {
  const { line, wholeTurns, stored, now } = left;
  if (line !== null && wholeTurns > 0) {
    const row = attemptRow({ ...left, line, turns: wholeTurns, fault: null, executorGone: true });
    const stands = isValidStatus(row.status) || (row.status === "unjudged" && end.status !== "cancelled");
    // Nobody knows when its work ended but the last turn: the process may have died days ago.
    if (stands) return { ...row, wall_seconds: Math.min(row.wall_seconds, secondsUntilLastTurn(left)) };
  }
  return closedWithoutVerdict(stored, end.status, end.reason, left, now);
}

function secondsUntilLastTurn({ stored, reports }: LeftOpen): number {
  const ended = Math.max(...reports.map((report) => Date.parse(report.ended)));
  return Math.max(0, (ended - Date.parse(stored.started)) / 1000);
}
