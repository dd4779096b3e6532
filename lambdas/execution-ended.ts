/**
 * Execution ended: an execution of the attempt machine failed, timed out or was aborted, so no state of it closed the
 * row or stopped the executor for certain. This does both, as often as it is told.
 */
import { closedWithoutResult, openRow } from "../lib/attempt/attempt-row.ts";
import { type ExecutionEndedEvent, type ExecutionEndedResult, executionEndedEvent } from "../lib/attempt/functions.ts";
import type { LeftOpenEnd } from "../lib/attempt/left-open.ts";
import { attemptOfExecutionName } from "../lib/attempt/machines.ts";
import { tryFolder } from "../lib/firewall/keys.ts";
import type { Clock, ScoreRow, ScoreTable, TaskTokens } from "../lib/platform/ports.ts";
import type { CloseLeftOpen } from "./close-left-open.ts";

export interface ExecutionEndedDeps {
  closeLeftOpen: CloseLeftOpen;
  scores: ScoreTable;
  clock: Clock;
  tokens: Pick<TaskTokens, "fail">;
  /**
   * Stops every executor that was started by `<attempt>/<NN>`, and answers how many there were. None is no error.
   * `executor`: the one that the lease names, if it does.
   */
  stopExecutors(startedBy: string, executor: string | null, reason: string): Promise<number>;
}

export function executionEndedHandler(deps: ExecutionEndedDeps): (event: unknown) => Promise<ExecutionEndedResult> {
  return async (event) => {
    const ended = executionEndedEvent.parse(event);
    const named = attemptOfExecutionName(ended.name);
    if (named === null) return { v: 1, closed: 0, stopped: 0 };
    const rows = (await rowsOf(deps.scores, ended, named.attempt)).filter((row) => row.generation === named.generation);
    let closed = 0;
    let stopped = 0;
    for (const row of rows) {
      const lease = await deps.scores.lease(row.attempt, row.try);
      if (lease?.turnToken) await deps.tokens.fail(lease.turnToken, "Proctor.ExecutionEnded", whyEnded(ended));
      stopped += await deps.stopExecutors(tryFolder(row), lease?.executor ?? null, whyEnded(ended));
      if (row.status === "running" && (await deps.closeLeftOpen(row, ended.line, endOf(ended)))) closed += 1;
    }
    if (rows.length === 0 && (await closeUnopened(deps, ended))) closed += 1;
    return { v: 1, closed, stopped };
  };
}

/** An execution that failed before it opened a try leaves a row too, so that no attempt goes without a word. */
async function closeUnopened(deps: ExecutionEndedDeps, ended: ExecutionEndedEvent): Promise<boolean> {
  if (ended.line === null) return false;
  const tries = await deps.scores.tries(ended.line.sweep, ended.line.attempt);
  const next = (tries.at(-1)?.try ?? 0) + 1;
  const opened = openRow(ended.line, next, { now: deps.clock.now(), isolation: null, image: null, loweredLimits: {} });
  const { status, reason } = endOf(ended);
  return deps.scores.closeTry(closedWithoutResult(opened, status, reason, deps.clock.now()));
}

function endOf(ended: ExecutionEndedEvent): LeftOpenEnd {
  return { status: ended.status === "ABORTED" ? "cancelled" : "infra_error", reason: whyEnded(ended) };
}

async function rowsOf(scores: ScoreTable, ended: ExecutionEndedEvent, attempt: string): Promise<ScoreRow[]> {
  if (ended.line !== null) return scores.tries(ended.line.sweep, attempt);
  const found: ScoreRow[] = [];
  for (const { sweep } of await scores.sweeps()) found.push(...(await scores.tries(sweep, attempt)));
  return found;
}

function whyEnded(ended: ExecutionEndedEvent): string {
  const how = { FAILED: "failed", TIMED_OUT: "took too long", ABORTED: "was cancelled" }[ended.status];
  const detail = [ended.error, ended.cause].filter((text) => text !== null && text !== "").join(": ");
  return `the execution ${how}${detail === "" ? "" : `: ${detail.slice(0, 500)}`}`;
}
