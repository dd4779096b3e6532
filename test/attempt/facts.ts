/** Facts of a try for tests: whole and valid, so that a test names only what it is about. */
import { openRow, type TryFacts } from "../../lib/attempt/attempt-row.ts";
import type { Decision } from "../../lib/roles/decision.ts";
import type { FollowUp } from "../../lib/roles/follow-up.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import type { TurnReport } from "../../lib/trajectory/turn-report.ts";
import { aLine } from "../support/manifest-line.ts";

export const started = Date.parse("2026-03-01T10:00:00Z");

export function someLine(change: Partial<ManifestLine> = {}): ManifestLine {
  return aLine({
    sweep: "sweep",
    digest: "d",
    attempt: "a".repeat(26),
    threshold: 0.9,
    agent: { name: "mini", version: "1", options: {} },
    limits: {
      turnSeconds: 100,
      totalSeconds: 300,
      noStartSeconds: 10,
      stallSeconds: 50,
      maxFollowups: 2,
      usdPerAttempt: null,
      usdJudging: null,
      tokensPerAttempt: null,
    },
    retries: { infra: 2, rateLimit: 3 },
    ...change,
  });
}

export function someReport(turn: number, change: Partial<TurnReport> = {}): TurnReport {
  return {
    v: 1,
    turn,
    exit: { code: 0, stopReason: "ended" },
    started: "2026-03-01T10:00:01Z",
    ended: "2026-03-01T10:00:11Z",
    executorSeconds: 10,
    completion: { complete: true, reason: "api_stop" },
    usage: { input: 100, cached: 20, output: 10, usd: 0.01 },
    manifestKey: `m${turn}`,
    isolation: "bwrap",
    ...change,
  };
}

export function someDecision(turn: number, change: Partial<Decision> = {}): Decision {
  return {
    v: 1,
    turn,
    verdict: "pass",
    attempt_state: "complete_and_passed",
    recoverable: false,
    score: 1,
    confidence: "high",
    rationale: "",
    missing_artifacts: [],
    guidance_tags: [],
    checkpoints: [],
    cap: null,
    scoreSource: "checks",
    threshold: 0.9,
    gateFailed: false,
    digests: { prompts: "p", rubric: "r" },
    usage: { input: 0, cached: 0, output: 0, usd: 0 },
    ...change,
  };
}

export const goesOn = { verdict: "continue", attempt_state: "complete_but_failed", recoverable: true } as const;

export function someFollowUp(turn: number, fallback = false): FollowUp {
  return {
    v: 1,
    turn,
    message: "Please go on.",
    language: "en",
    mode: "nudge",
    tone: "neutral",
    lines: [],
    fallback,
    digests: { prompts: "p" },
    usage: { input: 0, cached: 0, output: 0, usd: 0 },
  };
}

/** By default: one turn, ended, complete, passed. */
export function someFacts(change: Partial<TryFacts> = {}): TryFacts {
  const line = change.line ?? someLine();
  return {
    line,
    stored: openRow(line, 1, { now: started, isolation: null, image: "image", loweredLimits: { turnSeconds: 100 } }),
    turns: 1,
    reports: [someReport(1)],
    decisions: [someDecision(1)],
    followUps: [],
    usage: [],
    fault: null,
    executorGone: false,
    now: started + 20_000,
    ...change,
  };
}
