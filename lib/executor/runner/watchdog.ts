/**
 * When an agent's turn is to be ended, decided from times alone. Output and model calls are signs of life; a call counts
 * when it begins, with every byte that comes and when it ends, so one that hangs at the provider keeps nothing alive.
 */
export interface WatchdogLimits {
  /** Seconds from the start to the first sign of life. */
  noStartSeconds: number;
  /** Seconds without a sign of life after the first. */
  stallSeconds: number;
  turnSeconds: number;
  /** True when `turnSeconds` is what was left of the attempt's total. */
  totalBinds: boolean;
}

export interface WatchdogState {
  /** Milliseconds, all on one clock. */
  now: number;
  startedAt: number;
  /** Last output and last sign of a model call; null before the first. */
  lastOutputAt: number | null;
  lastModelAt: number | null;
  /** When the runner itself has to be done with the turn: beyond it nobody waits for its answer. */
  mustEndAt: number;
}

export type WatchdogStop = "no_start" | "stalled" | "turn_timeout" | "global_timeout" | "deadline";

export type WatchdogDecision =
  | { stop: WatchdogStop }
  /** Nothing can change before `checkAt` but by a sign of life, which only moves it. */
  | { stop: null; checkAt: number };

export function watch(state: WatchdogState, limits: WatchdogLimits): WatchdogDecision {
  const { now, startedAt, lastOutputAt, lastModelAt, mustEndAt } = state;
  const turnEnd = startedAt + limits.turnSeconds * 1000;
  const lastLife = Math.max(lastOutputAt ?? -1, lastModelAt ?? -1);
  const lifeEnd = lastLife < 0 ? startedAt + limits.noStartSeconds * 1000 : lastLife + limits.stallSeconds * 1000;
  if (now >= turnEnd) return { stop: limits.totalBinds ? "global_timeout" : "turn_timeout" };
  if (now >= mustEndAt) return { stop: "deadline" };
  if (now >= lifeEnd) return { stop: lastLife < 0 ? "no_start" : "stalled" };
  return { stop: null, checkAt: Math.min(turnEnd, mustEndAt, lifeEnd) };
}

/** Kept for collecting and writing, at most. */
const closingMs = 60_000;

/**
 * When a turn has to end so that its evidence is written before the message's deadline: half of what the deadline leaves
 * beyond the turn's own limit is kept for that, or a quarter of all where it leaves nothing (the message came late).
 */
export function lastMoment(now: number, deadline: number, turnSeconds: number): number {
  const spare = deadline - now - turnSeconds * 1000;
  const kept = spare > 0 ? spare / 2 : Math.max(0, deadline - now) / 4;
  return deadline - Math.min(closingMs, kept);
}
