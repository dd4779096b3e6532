/** Which errors a Retry or a Catch takes, and how long a retry waits. Source: states-language.net, "Errors". */
import type { Random } from "../../ports.ts";
import { errorNames } from "./data.ts";
import type { RetrierDefinition } from "./definition.ts";
import type { Catcher } from "./machine.ts";

/**
 * States.ALL takes all but States.Runtime, which nothing takes, and States.DataLimitExceeded, which only its own name
 * takes. States.TaskFailed takes the same but timeouts. A lost heartbeat is a timeout too.
 */
export function matches(errorEquals: readonly string[], error: string): boolean {
  if (error === errorNames.runtime) return false;
  const timeout = error === errorNames.timeout || error === errorNames.heartbeatTimeout;
  return errorEquals.some((name) => {
    if (name === error) return true;
    if (error === errorNames.dataLimit) return false;
    if (name === errorNames.all) return true;
    if (name === errorNames.taskFailed) return !timeout;
    return name === errorNames.timeout && error === errorNames.heartbeatTimeout;
  });
}

/**
 * What a failed state does next: seconds until it is tried again, or null when no retrier takes the error or its
 * attempts are used up. Only the first retrier that takes the error counts.
 * @param used retries so far by each retrier in this visit of the state; the one that is used is counted up
 */
export function retryDelay(
  retriers: readonly RetrierDefinition[],
  used: number[],
  error: string,
  random: Pick<Random, "unit">,
): number | null {
  const index = retriers.findIndex((retrier) => matches(retrier.ErrorEquals, error));
  const retrier = retriers[index];
  const before = used[index] ?? 0;
  if (retrier === undefined || before >= retrier.MaxAttempts) return null;
  used[index] = before + 1;
  const delay = Math.min(retrier.IntervalSeconds * retrier.BackoffRate ** before, retrier.MaxDelaySeconds ?? Infinity);
  return retrier.JitterStrategy === "FULL" ? delay * random.unit() : delay;
}

export function catcherFor(catchers: readonly Catcher[], error: string): Catcher | null {
  return catchers.find((catcher) => matches(catcher.errorEquals, error)) ?? null;
}
