/** Record: the row that closes a try, from its stored evidence, and whether another try is to run. */
import { attemptRow } from "../lib/attempt/attempt-row.ts";
import { readableCause } from "../lib/attempt/fault-cause.ts";
import { type RecordResult, recordEvent, recordResult } from "../lib/attempt/functions.ts";
import { jitterUnit, retryAfter } from "../lib/attempt/retry-rule.ts";
import type { RowStatus } from "../lib/attempt/vocabulary.ts";
import type { Clock, ObjectStore, ScoreTable } from "../lib/platform/ports.ts";
import type { ManifestLine } from "../lib/sweep/manifest-line.ts";
import { functionError } from "./function-error.ts";
import { tryEvidence } from "./try-evidence.ts";

export interface RecordDeps {
  store: ObjectStore;
  scores: ScoreTable;
  clock: Clock;
}

/** @throws Proctor.NoSuchTry, StoreError */
export function recordHandler(deps: RecordDeps): (event: unknown) => Promise<RecordResult> {
  return async (event) => {
    const asked = recordEvent.parse(event);
    const { line } = asked;
    const stored = await storedRow(deps.scores, line, asked.try);
    // A closed row stays; only an unjudged one that is judged again goes on. So a second delivery changes nothing.
    const open = stored.status === "running" || (asked.executorGone && stored.status === "unjudged");
    if (!open) return answer(deps.scores, line, asked.try, stored.status);

    const evidence = await tryEvidence(deps.store, { attempt: line.attempt, try: asked.try }, asked.turns);
    const row = attemptRow({
      line,
      stored,
      turns: asked.turns,
      ...evidence,
      fault: asked.fault && { ...asked.fault, cause: readableCause(asked.fault.cause) },
      executorGone: asked.executorGone,
      now: deps.clock.now(),
    });
    if (await deps.scores.closeTry(row)) {
      return answer(deps.scores, line, asked.try, row.status);
    }
    const kept = await storedRow(deps.scores, line, asked.try);
    return answer(deps.scores, line, asked.try, kept.status);
  };
}

async function storedRow(scores: ScoreTable, line: ManifestLine, tryNumber: number) {
  const stored = (await scores.tries(line.sweep, line.attempt)).find((row) => row.try === tryNumber);
  if (!stored) throw functionError("Proctor.NoSuchTry", `${line.attempt} has no try ${tryNumber}`);
  return stored;
}

/** The tries of this generation count, whichever execution or process closed them. */
async function answer(
  scores: ScoreTable,
  line: ManifestLine,
  tryNumber: number,
  status: RowStatus,
): Promise<RecordResult> {
  const tries = await scores.tries(line.sweep, line.attempt);
  const earlier = tries
    .filter((row) => row.generation === line.generation && row.try < tryNumber)
    .map((row) => row.status);
  const aborted = (await scores.sweep(line.sweep))?.abortRequested ?? false;
  const step = aborted
    ? { next: "done", delaySeconds: 0 }
    : retryAfter({ status, earlier, retries: line.retries, unit: jitterUnit(line.attempt, tryNumber) });
  return recordResult.parse({ v: 1, status, ...step });
}
