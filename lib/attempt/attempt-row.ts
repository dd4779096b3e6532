/**
 * The score row of a try: all that Record decides. Everything comes in as data that was stored before, so the same try
 * recorded twice gives the same row.
 */

import type { ScoreRow } from "../results/score-row.ts";
import type { Decision } from "../roles/decision.ts";
import type { FollowUp } from "../roles/follow-up.ts";
import { promptsDigest } from "../roles/prompts/digest.ts";
import type { ManifestLine } from "../sweep/manifest-line.ts";
import type { TurnReport } from "../trajectory/turn-report.ts";
import { attemptScore } from "./credit.ts";
import { type FaultMeaning, faultMeaning } from "./faults.ts";
import type { RecordEvent } from "./functions.ts";
import { nextStepOf } from "./next-step.ts";
import { promote, statusOf } from "./outcome.ts";
import { signalsOfTurn, timedOut } from "./stop-signals.ts";
import { addUsage, noUsage, type Usage, type UsageLine } from "./usage.ts";
import { type ErrorStatus, type Isolation, isValidStatus, type ModelRole, type ValidStatus } from "./vocabulary.ts";

export interface TryFacts {
  line: ManifestLine;
  /** The stored row of the try: `running`, or `unjudged` when it is judged again. */
  stored: ScoreRow;
  /** Turns that were opened. */
  turns: number;
  /** Reports of the turns that left evidence, in any order. */
  reports: readonly TurnReport[];
  decisions: readonly Decision[];
  followUps: readonly FollowUp[];
  /** Lines of all usage files of the try. */
  usage: readonly UsageLine[];
  fault: RecordEvent["fault"];
  /** True when the try is judged again: no turn can follow. */
  executorGone: boolean;
  /** Milliseconds since 1970. */
  now: number;
}

/** The row that closes a try. */
export function attemptRow(facts: TryFacts): ScoreRow {
  const { line, stored } = facts;
  const reports = [...facts.reports].sort((a, b) => a.turn - b.turn);
  const decisions = [...facts.decisions].sort((a, b) => a.turn - b.turn);
  const last = reports.at(-1) ?? null;
  const decided = decisions.at(-1) ?? null;
  const end = endOf(facts, reports, decisions);
  // UniClawBench does not count an attempt that the agent never ended.
  const valid = end.score !== null && !(line.compat === "uniclawbench" && end.status === "executor_incomplete");
  const rejudged = stored.status === "unjudged";
  return {
    ...stored,
    status: end.status,
    verdict: decided?.verdict ?? null,
    attempt_state: decided?.attempt_state ?? null,
    stop_reason: last?.exit.stopReason ?? null,
    passed: end.status === "pass" && end.score !== null && end.score >= line.threshold,
    valid,
    score: end.score,
    score_source: end.score === null ? null : (decided?.scoreSource ?? null),
    turns: facts.turns,
    followups: facts.followUps.length,
    fallback_turns: facts.followUps.filter((followUp) => followUp.fallback).length,
    executor_seconds: roundTo(
      3,
      sumOf(reports, (report) => report.executorSeconds),
    ),
    // A try that waited days for its judge did not run for days.
    wall_seconds: rejudged
      ? stored.wall_seconds
      : Math.max(0, roundTo(3, (facts.now - Date.parse(stored.started)) / 1000)),
    ...spent(facts.usage, reports, decisions),
    isolation: last?.isolation ?? stored.isolation,
    digests: {
      ...stored.digests,
      prompts: promptsOf(decided, facts.followUps) ?? stored.digests.prompts,
      rubric: decided?.digests.rubric ?? stored.digests.rubric,
    },
    ended: new Date(facts.now).toISOString(),
    reason: end.reason,
  };
}

/** One digest of all prompts that the roles of this try were given. */
function promptsOf(decided: Decision | null, followUps: readonly FollowUp[]): string | null {
  const simulator = [...new Set(followUps.map(({ digests }) => digests.prompts))].sort();
  if (decided === null || simulator.length === 0) return decided?.digests.prompts ?? null;
  return promptsDigest({ supervisor: decided.digests.prompts, simulator });
}

export interface Opening {
  /** Milliseconds since 1970. */
  now: number;
  isolation: Isolation | null;
  image: string | null;
  loweredLimits: Record<string, number>;
}

/** The row of a try that has just been opened. */
export function openRow(line: ManifestLine, tryNumber: number, opening: Opening): ScoreRow {
  const noTokens = { input: 0, cached: 0, output: 0 };
  return {
    v: 1,
    sweep: line.sweep,
    generation: line.generation,
    attempt: line.attempt,
    try: tryNumber,
    task: line.task,
    category: line.category,
    capability: line.capability,
    language: line.language,
    cluster: line.cluster,
    agent: line.agent.name,
    agent_version: line.agent.version,
    model: line.model.name,
    epoch: line.epoch,
    status: "running",
    verdict: null,
    attempt_state: null,
    stop_reason: null,
    passed: false,
    valid: false,
    score: null,
    score_source: null,
    threshold: line.threshold,
    turns: 0,
    followups: 0,
    fallback_turns: 0,
    executor_seconds: 0,
    wall_seconds: 0,
    tokens: { executor: noTokens, supervisor: noTokens, simulator: noTokens },
    usd: { executor: 0, supervisor: 0, simulator: 0 },
    isolation: opening.isolation,
    lowered_limits: opening.loweredLimits,
    digests: { task: line.digest, prompts: null, rubric: null, image: opening.image },
    started: new Date(opening.now).toISOString(),
    ended: null,
    reason: "running",
  };
}

/** The row of a try that ended before anything of it ran, or whose end nobody could record: refused, stopped, lost. */
export function closedWithoutResult(
  stored: ScoreRow,
  status: Exclude<ErrorStatus, "missing">,
  reason: string,
  now: number,
): ScoreRow {
  const wall = Math.max(0, roundTo(3, (now - Date.parse(stored.started)) / 1000));
  return { ...stored, status, ended: new Date(now).toISOString(), wall_seconds: wall, reason };
}

/** The same for a try that had worked before its end: what its whole turns cost is kept. */
export function closedWithoutVerdict(
  stored: ScoreRow,
  status: Exclude<ErrorStatus, "missing">,
  reason: string,
  found: Pick<TryFacts, "reports" | "decisions" | "followUps" | "usage">,
  now: number,
): ScoreRow {
  const { reports, decisions, followUps, usage } = found;
  return {
    ...closedWithoutResult(stored, status, reason, now),
    turns: reports.length,
    followups: followUps.length,
    executor_seconds: roundTo(
      3,
      sumOf(reports, (report) => report.executorSeconds),
    ),
    ...spent(usage, reports, decisions),
    isolation: reports.at(-1)?.isolation ?? stored.isolation,
  };
}

/** A valid status always comes with a score, an error never. */
type End =
  | { status: ValidStatus; score: number; reason: string }
  | { status: Exclude<ErrorStatus, "missing">; score: null; reason: string };

/** @param reports and decisions by turn */
function endOf(facts: TryFacts, reports: readonly TurnReport[], decisions: readonly Decision[]): End {
  const { line, fault } = facts;
  const last = reports.at(-1);
  const decided = decisions.at(-1);
  const meaning = fault === null ? null : faultMeaning(fault.error);
  if (meaning?.certain) return byFault(meaning, fault!.cause);
  if (last === undefined || reports.length < facts.turns) {
    if (meaning !== null) return byFault(meaning, fault!.cause);
    return error("infra_error", `turn ${facts.turns} left no evidence`);
  }

  const signals = signalsOfTurn(last);
  if (!signals.supervise) {
    const what = signals.rate_limit ? "rate_limit" : signals.infra_error === "" ? "infra_error" : signals.infra_error;
    return error(what, `turn ${last.turn} ended by ${last.exit.stopReason}${last.note ? `: ${last.note}` : ""}`);
  }
  // The turn's evidence is whole, so whatever went wrong went wrong in judging it: that is never the agent's fail.
  if (decided === undefined || decided.turn < last.turn) {
    return error("unjudged", `turn ${last.turn} has no decision${fault === null ? "" : ` (${fault.error})`}`);
  }
  if (meaning !== null) return byFault(meaning, fault!.cause);

  const step = nextStepOf(line, reports, decided);
  if (step.next === "continue") {
    return error(
      "infra_error",
      facts.executorGone
        ? `judged again: turn ${decided.turn} goes on, and its executor is gone`
        : `ended although a follow-up to turn ${decided.turn} was due`,
    );
  }

  const base = statusOf({
    verdict: decided.verdict,
    attempt_state: decided.attempt_state,
    rate_limit: false,
    infra_error: "",
    completion_gate_failed: decided.gateFailed && decided.verdict === "fail",
    executor_completed_ever: reports.some((report) => report.completion.complete),
    agent_exit_code: signals.agent_exit_code,
    terminal_reason: step.terminalReason,
  });
  if (!isValidStatus(base)) return error(base, `turn ${last.turn} ended by ${last.exit.stopReason}`);
  const turns = reports.map((report) => ({
    complete: report.completion.complete,
    score: decisions.find((decision) => decision.turn === report.turn)?.score ?? null,
  }));
  const ranOut = base === "global_timeout" || timedOut(last.exit.stopReason);
  const score = attemptScore(turns, ranOut, line.compat);
  const status = promote(base, score, line.threshold);
  const why = reasonOf(status, base, score, line.threshold, step.why);
  // A pass that the gate refused is told as that: the score alone would contradict the status.
  const gated = decided.gateFailed && status === "fail";
  return {
    status,
    score,
    reason: gated ? `the last turn was not complete (${last.completion.reason}), so no pass: ${why}` : why,
  };
}

function byFault(meaning: FaultMeaning, cause: string): End {
  const detail = cause.trim().split("\n")[0]!.slice(0, 300);
  return error(meaning.status, detail === "" ? meaning.text : `${meaning.text}: ${detail}`);
}

function error(status: Exclude<ErrorStatus, "missing">, reason: string): End {
  return { status, score: null, reason };
}

type StopWhy = Extract<ReturnType<typeof nextStepOf>, { next: "stop" }>["why"];

function reasonOf(status: ValidStatus, base: ValidStatus, score: number, threshold: number, why: StopWhy): string {
  const scored = `score ${score}, threshold ${threshold}`;
  if (status === "pass" && base !== "pass") return `${whyText[why]}; the score reaches the threshold: ${scored}`;
  switch (status) {
    case "pass":
      return `passed: ${scored}`;
    case "fail":
      return `failed: ${scored}`;
    case "budget_exhausted":
    case "global_timeout":
    case "executor_incomplete":
      return `${whyText[why]}: ${scored}`;
  }
}

const whyText: Record<StopWhy, string> = {
  passed: "passed",
  failed: "failed",
  global_timeout: "out of time",
  cost_cap: "the attempt's dollars are used up",
  token_cap: "the attempt's tokens are used up",
  followups_used: "follow-ups used up",
};

/**
 * What each role used. A turn is counted by its usage lines, and once more as a whole: an executor's in its report, a
 * supervisor's in its decision. Lines can be lost, by damage say; neither account ever holds more than was used, so the
 * larger one counts.
 */
function spent(
  lines: readonly UsageLine[],
  reports: readonly TurnReport[],
  decisions: readonly Decision[],
): Pick<ScoreRow, "tokens" | "usd"> {
  const wholes = { executor: reports, supervisor: decisions, simulator: [] } satisfies Record<ModelRole, unknown>;
  const of = (role: ModelRole): { tokens: ScoreRow["tokens"][ModelRole]; usd: number } => {
    const byTurn = new Map<number, Usage>();
    for (const line of lines.filter((one) => one.role === role)) {
      byTurn.set(line.turn, addUsage(byTurn.get(line.turn) ?? noUsage, { ...line.tokens, usd: line.usd }));
    }
    for (const { turn, usage } of wholes[role]) {
      const counted = byTurn.get(turn) ?? noUsage;
      if (usage.input + usage.output >= counted.input + counted.output) byTurn.set(turn, usage);
    }
    const own = [...byTurn.values()];
    const sum = (name: "input" | "cached" | "output" | "usd"): number => sumOf(own, (one) => one[name]);
    return {
      tokens: { input: sum("input"), cached: sum("cached"), output: sum("output") },
      // A millionth of a cent: sums of dollars keep no binary dust.
      usd: roundTo(8, sum("usd")),
    };
  };
  const roles = { executor: of("executor"), supervisor: of("supervisor"), simulator: of("simulator") };
  return {
    tokens: {
      executor: roles.executor.tokens,
      supervisor: roles.supervisor.tokens,
      simulator: roles.simulator.tokens,
    },
    usd: { executor: roles.executor.usd, supervisor: roles.supervisor.usd, simulator: roles.simulator.usd },
  };
}

function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function roundTo(decimals: number, value: number): number {
  return Math.round(value * 10 ** decimals) / 10 ** decimals;
}
