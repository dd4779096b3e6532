/** Task stopped: an executor ended; when a turn of its try is open, the turn's token is failed at once with the reason. */
import { executorEnd } from "../lib/attempt/executor-end.ts";
import { type TaskStoppedEvent, type TaskStoppedResult, taskStoppedEvent } from "../lib/attempt/functions.ts";
import { tryOfStartedBy } from "../lib/attempt/launch-request.ts";
import type { ScoreTable, StoppedExecutor, TaskTokens } from "../lib/platform/ports.ts";

export interface TaskStoppedDeps {
  scores: ScoreTable;
  tokens: TaskTokens;
}

export function taskStoppedHandler(deps: TaskStoppedDeps): (event: unknown) => Promise<TaskStoppedResult> {
  return async (event) => {
    const stopped = taskStoppedEvent.parse(event);
    const of = tryOfStartedBy(stopped.startedBy);
    const lease = of === null ? null : await deps.scores.lease(of.attempt, of.try);
    // A lease that names another executor was launched again: the one that ended is no longer its own.
    const own = lease !== null && (lease.executor === null || lease.executor === stopped.executor);
    if (!own || lease.turnToken === null) return { v: 1, answered: "no_open_turn" };
    const end = executorEnd(stopped);
    const answered = await deps.tokens.fail(lease.turnToken, end.error, end.cause);
    return { v: 1, answered: answered === "accepted" ? "failed" : "closed" };
  };
}

/** A launcher's word as the event of this function. */
export function taskStopped(stopped: StoppedExecutor): TaskStoppedEvent {
  return {
    v: 1,
    executor: stopped.id,
    startedBy: stopped.startedBy,
    code: stopped.code,
    signal: stopped.signal,
    stopCode: null,
    reason: stopped.reason,
  };
}
