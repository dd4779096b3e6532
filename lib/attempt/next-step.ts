/** What follows a decision: another turn, or the end of the attempt and why. */
import type { Decision } from "../roles/decision.ts";
import type { AttemptLimits, ManifestLine } from "../sweep/manifest-line.ts";
import type { TurnReport } from "../trajectory/turn-report.ts";
import { followUpsLeft } from "./decision-rule.ts";
import { signalsOfTurn, type TerminalReason } from "./stop-signals.ts";
import type { Verdict } from "./vocabulary.ts";

export interface AfterDecision {
  verdict: Verdict;
  turn: number;
  /** Of the turn that was decided on. */
  terminalReason: TerminalReason;
  /** Executor seconds, dollars and tokens over all turns so far. */
  secondsUsed: number;
  usdUsed: number;
  tokensUsed: number;
  limits: Pick<AttemptLimits, "maxFollowups" | "totalSeconds" | "usdPerAttempt" | "tokensPerAttempt">;
}

export type NextStep =
  | { next: "continue" }
  | {
      next: "stop";
      why: "passed" | "failed" | "global_timeout" | "cost_cap" | "token_cap" | "followups_used";
      terminalReason: TerminalReason;
    };

export function nextStep(after: AfterDecision): NextStep {
  const { limits } = after;
  if (after.verdict === "pass") return stop("passed", after.terminalReason);
  if (after.verdict === "fail") return stop("failed", after.terminalReason);
  if (after.terminalReason === "global-timeout") return stop("global_timeout", "global-timeout");
  if (after.terminalReason === "followup-limit-reached") return stop("cost_cap", "followup-limit-reached");
  if (after.secondsUsed >= limits.totalSeconds) return stop("global_timeout", "global-timeout");
  if (followUpsLeft({ turn: after.turn, maxFollowups: limits.maxFollowups }) === 0) {
    return stop("followups_used", "followup-limit-reached");
  }
  // An agent that overspends has failed, not vanished: the same end as follow-ups that are used up.
  if (limits.usdPerAttempt !== null && after.usdUsed >= limits.usdPerAttempt) {
    return stop("cost_cap", "followup-limit-reached");
  }
  if (limits.tokensPerAttempt !== null && after.tokensUsed >= limits.tokensPerAttempt) {
    return stop("token_cap", "followup-limit-reached");
  }
  return { next: "continue" };
}

function stop(why: Extract<NextStep, { next: "stop" }>["why"], terminalReason: TerminalReason): NextStep {
  return { next: "stop", why, terminalReason };
}

/** The same from what a try stored: the line, the reports of its turns up to the one decided on, and the decision. */
export function nextStepOf(
  line: Pick<ManifestLine, "limits">,
  reports: readonly Pick<TurnReport, "turn" | "exit" | "executorSeconds" | "usage">[],
  decision: Pick<Decision, "turn" | "verdict">,
): NextStep {
  const sofar = reports.filter((report) => report.turn <= decision.turn);
  const own = sofar.find((report) => report.turn === decision.turn);
  const sum = (of: (report: (typeof sofar)[number]) => number): number =>
    sofar.reduce((total, report) => total + of(report), 0);
  return nextStep({
    verdict: decision.verdict,
    turn: decision.turn,
    terminalReason: own === undefined ? "" : signalsOfTurn(own).terminal_reason,
    secondsUsed: sum((report) => report.executorSeconds),
    usdUsed: sum((report) => report.usage.usd),
    tokensUsed: sum((report) => report.usage.input + report.usage.output),
    limits: line.limits,
  });
}
