/** The limits in force for an attempt: a package's own, lowered by the sweep, never raised. */
import type { Problem } from "../tasks/problem.ts";
import type { AttemptLimits } from "./manifest-line.ts";
import type { SweepFile } from "./sweep-file.ts";

/** Watchdog of every agent, in seconds: no output after the start, and none later. */
export const watchdog = { noStartSeconds: 180, stallSeconds: 600 } as const;
/** Dollars for one attempt where the sweep has a cap and names none: a reservation needs a worst case. */
const cappedDefaults = { usdPerAttempt: 5, usdJudging: 1 } as const;

/** Limits in seconds that a sweep may lower. */
const timeLimits = ["turnSeconds", "totalSeconds", "noStartSeconds", "stallSeconds"] as const;
export type TimeLimit = (typeof timeLimits)[number];

/** What a package (and the watchdog) allows. */
export interface PackageLimits {
  turnSeconds: number;
  totalSeconds: number;
  maxFollowups: number;
}

const ownLimit = (own: PackageLimits, name: TimeLimit): number =>
  name === "turnSeconds" || name === "totalSeconds" ? own[name] : watchdog[name];

export function limitsInForce(own: PackageLimits, sweep: SweepFile["limits"]): AttemptLimits {
  const time = (name: TimeLimit): number => Math.min(ownLimit(own, name), sweep[name] ?? Number.POSITIVE_INFINITY);
  const dollars = (name: keyof typeof cappedDefaults): number | null => {
    const stated = sweep[name];
    return stated === undefined ? (sweep.usd === null ? null : cappedDefaults[name]) : stated;
  };
  return {
    turnSeconds: time("turnSeconds"),
    totalSeconds: time("totalSeconds"),
    noStartSeconds: time("noStartSeconds"),
    stallSeconds: time("stallSeconds"),
    maxFollowups: own.maxFollowups,
    usdPerAttempt: dollars("usdPerAttempt"),
    usdJudging: dollars("usdJudging"),
    tokensPerAttempt: sweep.tokensPerAttempt,
  };
}

/** Limits of an attempt that are below its package's, by name, with the value in force: a column of every row. */
export function loweredLimits(own: PackageLimits, inForce: AttemptLimits): Record<string, number> {
  return Object.fromEntries(
    timeLimits.filter((name) => inForce[name] < ownLimit(own, name)).map((name) => [name, inForce[name]]),
  );
}

/** A sweep that would raise a limit of any of its tasks is refused: the score would be that of another benchmark. */
export function raisedLimits(
  file: string,
  tasks: readonly { id: string; limits: PackageLimits }[],
  sweep: SweepFile["limits"],
): Problem[] {
  return timeLimits.flatMap((name): Problem[] => {
    const wanted = sweep[name];
    if (wanted === undefined) return [];
    const raised = tasks.filter((task) => wanted > ownLimit(task.limits, name));
    const first = raised[0];
    if (!first) return [];
    const least = Math.min(...raised.map((task) => ownLimit(task.limits, name)));
    const ofWatchdog = name === "noStartSeconds" || name === "stallSeconds";
    const whose = ofWatchdog
      ? "the watchdog's own"
      : `the limit of ${first.id}${raised.length > 1 ? ` and ${raised.length - 1} more` : ""}`;
    return [
      {
        file,
        field: `limits.${name}`,
        severity: "error",
        found: `${wanted}, which raises ${whose}`,
        expected: `at most ${least}: a sweep may lower a limit, never raise it`,
      },
    ];
  });
}
