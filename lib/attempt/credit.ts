/** Scores: from checkpoints to a turn's score, and from turns to the attempt's. */
import type { Compat } from "./decision-rule.ts";

/** Six decimals, within 0..1: what is capped, compared and stored. */
export function roundScore(score: number): number {
  return Math.min(1, Math.max(0, Math.round(score * 1e6) / 1e6));
}

export interface Cap {
  id: string;
  /** Highest score that is left when the cap fires. */
  max: number;
}

export interface CappedScore {
  /** 0..1, rounded, caps applied. */
  score: number;
  /** The same before caps. */
  uncapped: number;
  /** The lowest cap, where it lowered the score. */
  cap: Cap | null;
}

/**
 * Sum of weight × credit, then the lowest of the caps that fired. Weights that sum to almost 1 (0.333 three times) are
 * taken as shares of their sum, so that full credit is 1.
 */
export function weightedScore(
  checkpoints: readonly { weight: number; credit: number }[],
  firedCaps: readonly Cap[],
): CappedScore {
  const total = checkpoints.reduce((sum, { weight }) => sum + weight, 0);
  const earned = checkpoints.reduce((sum, { weight, credit }) => sum + weight * credit, 0);
  return cappedScore(total > 0 ? earned / total : 0, firedCaps);
}

/** A score that was given as a whole, under the caps that fired. */
export function cappedScore(score: number, firedCaps: readonly Cap[]): CappedScore {
  const uncapped = roundScore(score);
  const lowest = firedCaps.reduce<Cap | null>((low, cap) => (low === null || cap.max < low.max ? cap : low), null);
  if (lowest === null || lowest.max >= uncapped) return { score: uncapped, uncapped, cap: null };
  return { score: roundScore(lowest.max), uncapped, cap: lowest };
}

export interface ScoredTurn {
  complete: boolean;
  /** Null: the turn has no decision. */
  score: number | null;
}

/**
 * The attempt's score over its turns, in order: the last decision's. Where time ran out there is no last answer to
 * judge, so it is the best of the turns that the agent ended, 0 if there is none. `compat`: always the best of all.
 */
export function attemptScore(turns: readonly ScoredTurn[], timedOut: boolean, compat: Compat): number {
  const scored = turns.filter((turn): turn is ScoredTurn & { score: number } => turn.score !== null);
  const best = (of: readonly { score: number }[]): number => of.reduce((high, { score }) => Math.max(high, score), 0);
  if (compat === "uniclawbench") return roundScore(best(scored));
  if (timedOut) return roundScore(best(scored.filter((turn) => turn.complete)));
  return roundScore(scored.at(-1)?.score ?? 0);
}
