/**
 * Whether a recorded try is followed by another. Only faults that the agent did not cause are: infrastructure and
 * pre_exec against `retries.infra`, rate limits against `retries.rateLimit`. An unjudged try never runs again: it is
 * judged again from stored evidence.
 */
import type { ManifestLine } from "../sweep/manifest-line.ts";
import { sha256Hex } from "../tasks/canonical.ts";
import type { RowStatus } from "./vocabulary.ts";

export interface RecordedTry {
  status: RowStatus;
  /** Statuses of the earlier tries of the same execution. */
  earlier: readonly RowStatus[];
  retries: ManifestLine["retries"];
  /** 0 ≤ unit < 1: places the delay within its upper half, so that attempts which failed together do not come back together. */
  unit: number;
}

export type RetryStep = { next: "retry"; delaySeconds: number } | { next: "done"; delaySeconds: 0 };

type RetryKind = keyof ManifestLine["retries"];

/** First delay and longest, in seconds: infra 4, 8, 16 … 300; a rate limit clears in minutes: 30, 60, 120 … 900. */
const delays: Record<RetryKind, { first: number; longest: number }> = {
  infra: { first: 4, longest: 300 },
  rateLimit: { first: 30, longest: 900 },
};

export function retryAfter(recorded: RecordedTry): RetryStep {
  const kind = retryKind(recorded.status);
  if (kind === null) return { next: "done", delaySeconds: 0 };
  const faults = 1 + recorded.earlier.filter((status) => retryKind(status) === kind).length;
  if (faults > recorded.retries[kind]) return { next: "done", delaySeconds: 0 };
  const { first, longest } = delays[kind];
  const full = Math.min(longest, first * 2 ** (faults - 1));
  return { next: "retry", delaySeconds: Math.max(1, Math.round(full * (0.5 + recorded.unit / 2))) };
}

/** A number in [0, 1) that is the same for the same try on every machine. */
export function jitterUnit(attempt: string, tryNumber: number): number {
  return Number.parseInt(sha256Hex(`${attempt}/${tryNumber}`).slice(0, 12), 16) / 2 ** 48;
}

function retryKind(status: RowStatus): RetryKind | null {
  switch (status) {
    case "infra_error":
    case "pre_exec_failed":
      return "infra";
    case "rate_limit":
      return "rateLimit";
    case "running":
    case "pass":
    case "budget_exhausted":
    case "fail":
    case "global_timeout":
    case "executor_incomplete":
    case "unjudged":
    case "cost_stopped":
    case "cancelled":
      return null;
  }
}
