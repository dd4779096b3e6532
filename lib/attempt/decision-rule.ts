/**
 * What becomes of a supervisor's decision: normalised, held against the score where code decided it, and gated by the
 * turn's completion. Source: UniClawBench's rules, which `compat: uniclawbench` restores where Proctor's differ.
 */
import type { Decision } from "../roles/decision.ts";
import type { ManifestLine } from "../sweep/manifest-line.ts";
import type { AttemptState, Verdict } from "./vocabulary.ts";

export type Compat = ManifestLine["compat"];

/** Where in the attempt a decision falls. */
export interface DecisionPlace {
  turn: number;
  maxFollowups: number;
  compat: Compat;
}

export type VerdictPart = Pick<Decision, "verdict" | "attempt_state" | "recoverable">;

/** What a model says before any rule. */
export interface RawDecision extends VerdictPart {
  rationale: string;
  guidance_tags: readonly string[];
}

/** Messages that the user may still send after this turn. */
export function followUpsLeft(place: Pick<DecisionPlace, "turn" | "maxFollowups">): number {
  return Math.max(0, place.maxFollowups - (place.turn - 1));
}

/** Makes verdict, state and recoverability agree with each other and with the follow-ups that are left. */
export function normaliseDecision(raw: RawDecision, place: DecisionPlace): VerdictPart {
  const left = followUpsLeft(place) > 0;
  switch (raw.verdict) {
    case "pass":
      return { verdict: "pass", attempt_state: "complete_and_passed", recoverable: false };
    case "continue":
      return { verdict: "continue", attempt_state: openState(raw.attempt_state, "incomplete"), recoverable: left };
    case "fail": {
      if (left && place.compat === "uniclawbench" && hasMoreToSay(raw)) {
        const state = openState(raw.attempt_state, "complete_but_failed");
        return { verdict: "continue", attempt_state: state, recoverable: true };
      }
      const takesItBack = raw.recoverable && raw.attempt_state !== "terminal_failure";
      if (left && place.compat === null && takesItBack) {
        return { verdict: "continue", attempt_state: openState(raw.attempt_state, "incomplete"), recoverable: true };
      }
      return finalFail(raw.attempt_state);
    }
  }
}

/**
 * The verdict where every checkpoint was decided by a check: code never gives up on an attempt.
 * @param score 0..1, caps applied
 */
export function verdictOfChecks(
  score: number,
  threshold: number,
  turnComplete: boolean,
  place: DecisionPlace,
): VerdictPart {
  if (score >= threshold) return { verdict: "pass", attempt_state: "complete_and_passed", recoverable: false };
  return {
    verdict: "continue",
    attempt_state: turnComplete ? "complete_but_failed" : "incomplete",
    recoverable: followUpsLeft(place) > 0,
  };
}

/**
 * The verdict where a model gave verdict and state, and code computed the score from credits. A pass must reach the
 * threshold; a lower verdict is not raised here, because promotion does that once the attempt is over.
 */
export function verdictOfModel(
  raw: RawDecision,
  score: number,
  threshold: number,
  turnComplete: boolean,
  place: DecisionPlace,
): VerdictPart {
  const decision = normaliseDecision(raw, place);
  if (decision.verdict !== "pass" || score >= threshold || place.compat === "uniclawbench") return decision;
  if (followUpsLeft(place) === 0) return finalFail("complete_but_failed");
  return {
    verdict: "continue",
    attempt_state: turnComplete ? "complete_but_failed" : "incomplete",
    recoverable: true,
  };
}

/** A pass needs a turn that the agent ended. `gateFailed`: the gate changed the verdict. */
export function applyGate(
  decision: VerdictPart,
  turnComplete: boolean,
  place: DecisionPlace,
): VerdictPart & { gateFailed: boolean } {
  if (decision.verdict !== "pass" || turnComplete) return { ...decision, gateFailed: false };
  const left = followUpsLeft(place) > 0;
  const verdict: Verdict = left ? "continue" : "fail";
  return { verdict, attempt_state: "incomplete", recoverable: left, gateFailed: true };
}

function hasMoreToSay(raw: RawDecision): boolean {
  return raw.rationale.trim() !== "" || raw.guidance_tags.length > 0 || raw.attempt_state === "complete_but_failed";
}

function finalFail(state: AttemptState): VerdictPart {
  const kept = state === "complete_but_failed" ? state : "terminal_failure";
  return { verdict: "fail", attempt_state: kept, recoverable: false };
}

/** A state that an attempt which goes on can have. */
function openState(state: AttemptState, otherwise: AttemptState): AttemptState {
  return state === "in_progress" || state === "incomplete" || state === "complete_but_failed" ? state : otherwise;
}
