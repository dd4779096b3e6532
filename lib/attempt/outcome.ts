/** The status of a finished attempt, from the signals of its turns and its last decision (UniClawBench's order). */
import type { ErrorStatus, ValidStatus } from "./vocabulary.ts";

/** As in the contract table: empty strings where there is nothing. */
export interface OutcomeSignals {
  verdict: string;
  attempt_state: string;
  rate_limit: boolean;
  infra_error: "" | "infra_error" | "pre_exec_failed";
  /** A pass on an incomplete turn was made a fail. One that was made a continue is no failed gate. */
  completion_gate_failed: boolean;
  /** Some turn of the attempt was complete. */
  executor_completed_ever: boolean;
  agent_exit_code: number | null;
  terminal_reason: string;
}

export type OutcomeStatus = ValidStatus | Extract<ErrorStatus, "rate_limit" | "infra_error" | "pre_exec_failed">;

/** The first rule that applies, before promotion. */
export function statusOf(signals: OutcomeSignals): OutcomeStatus {
  if (signals.rate_limit) return "rate_limit";
  if (signals.infra_error !== "") return signals.infra_error;
  if (signals.completion_gate_failed) return "fail";
  if (signals.verdict === "pass" || signals.attempt_state === "complete_and_passed") return "pass";
  if (signals.verdict === "fail" || signals.attempt_state === "terminal_failure") return "fail";
  if (signals.terminal_reason === "global-timeout") return "global_timeout";
  if (signals.terminal_reason === "followup-limit-reached") return "budget_exhausted";
  if (!signals.executor_completed_ever) return "executor_incomplete";
  if (signals.agent_exit_code === 124) return "global_timeout";
  return "executor_incomplete";
}

const promotable = new Set<string>(["budget_exhausted", "global_timeout", "pass"]);

/**
 * A status that leaves the result open becomes pass when the score reaches the threshold. Faults are never promoted,
 * and neither is a fail or an attempt that the agent never ended.
 */
export function promote<S extends string>(status: S, score: number | null, threshold: number): S | "pass" {
  return promotable.has(status) && score !== null && score >= threshold ? "pass" : status;
}

/** Status and pass of an attempt. @param score 0..1, rounded to 6 decimals */
export function outcome(
  signals: OutcomeSignals,
  score: number,
  threshold: number,
): { status: OutcomeStatus; passed: boolean } {
  const status = promote(statusOf(signals), score, threshold);
  return { status, passed: status === "pass" && score >= threshold };
}
