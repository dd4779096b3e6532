/**
 * The words of an attempt, each list in this one place: verdicts, states, stop reasons, statuses.
 * Source: UniClawBench (arXiv 2607.08768) where it has the word; `unjudged`, `cost_stopped`, `cancelled` are Proctor's.
 */
import { z } from "zod";

export const verdict = z.enum(["pass", "continue", "fail"]);
export type Verdict = z.infer<typeof verdict>;

export const attemptState = z.enum([
  "in_progress",
  "incomplete",
  "complete_but_failed",
  "complete_and_passed",
  "terminal_failure",
]);
export type AttemptState = z.infer<typeof attemptState>;

/** Why the agent's turn ended. */
export const stopReason = z.enum([
  "ended",
  "turn_timeout",
  "global_timeout",
  "stalled",
  "no_start",
  "cost_cap",
  "rate_limited",
  "provider_fault",
  "interrupted",
  "killed",
]);
export type StopReason = z.infer<typeof stopReason>;

/** Statuses that end a try and count as a result of the agent. */
export const validStatus = z.enum(["pass", "budget_exhausted", "fail", "global_timeout", "executor_incomplete"]);
export type ValidStatus = z.infer<typeof validStatus>;

/** Statuses that end a try without a result of the agent. `missing` is never stored: it is a planned attempt without a row. */
export const errorStatus = z.enum([
  "rate_limit",
  "infra_error",
  "pre_exec_failed",
  "unjudged",
  "cost_stopped",
  "cancelled",
  "missing",
]);
export type ErrorStatus = z.infer<typeof errorStatus>;

/** Every status that a stored row can have. `running` is a try that is open. */
export const rowStatus = z.enum(["running", ...validStatus.options, ...errorStatus.exclude(["missing"]).options]);
export type RowStatus = z.infer<typeof rowStatus>;

/** Every status of a planned attempt in a report: `pending` is a planned attempt of a sweep that still runs. */
export const reportStatus = z.enum([...validStatus.options, ...errorStatus.options, "pending"]);
export type ReportStatus = z.infer<typeof reportStatus>;

export function isValidStatus(status: string): status is ValidStatus {
  return validStatus.safeParse(status).success;
}

/**
 * A row's status may only go to a higher rank. An `unjudged` row is below the other ends because its try can still be
 * judged; errors are below valid results because a late answer of a working executor is worth more than our fault.
 */
export function statusRank(status: RowStatus): number {
  if (status === "running") return 0;
  if (status === "unjudged") return 10;
  return isValidStatus(status) ? 30 : 20;
}

/** Isolation of an executor, a column of every row. */
export const isolation = z.enum(["fargate", "podman", "bwrap", "none"]);
export type Isolation = z.infer<typeof isolation>;

/** Network that a package asks for. */
export const network = z.enum(["web", "offline", "guarded"]);
export type Network = z.infer<typeof network>;

export const language = z.enum(["en", "zh"]);
export type Language = z.infer<typeof language>;

/** The three roles that call a model. */
export const modelRole = z.enum(["executor", "supervisor", "simulator"]);
export type ModelRole = z.infer<typeof modelRole>;
