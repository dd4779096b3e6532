/** What the supervisor is handed at the beginning of a turn's review. */
import type { Decision } from "../decision.ts";
import { fenced } from "../fence.ts";
import { supervisorPrompt } from "../prompts/supervisor.ts";
import { listCheckpointsPrompt } from "../prompts/supervisor-rubric.ts";
import type { StepMessage } from "../steps.ts";
import type { ScoringPlan } from "./scoring-plan.ts";

export interface Brief {
  request: string;
  rubric: string;
  /** Appended to the standing orders; the package's author wrote them. */
  instructions: string | null;
  plan: ScoringPlan;
  turn: number;
  turns: number;
  threshold: number;
  stopReason: string;
  turnComplete: boolean;
  /** The user's message that opened this turn; null on the first. */
  followUp: string | null;
  earlier: Decision | null;
  files: string;
  lastMessage: string | null;
}

export function briefing(brief: Brief): StepMessage[] {
  const { plan } = brief;
  const system =
    brief.instructions === null
      ? supervisorPrompt
      : `${supervisorPrompt}\n\nFrom the author of this task, for its review:\n${brief.instructions}`;
  const parts = [
    `Review turn ${brief.turn} of at most ${brief.turns}. It ended with "${brief.stopReason}"; the assistant ${
      brief.turnComplete ? "ended it by itself" : "did not come to its end"
    }. A pass needs a score of at least ${brief.threshold}.`,
    fenced("the request that the assistant was given", brief.request),
    ...(brief.followUp === null ? [] : [fenced("the person's message that opened this turn", brief.followUp)]),
    fenced("the rubric by which you review", brief.rubric),
    checkpointPart(plan),
    capPart(plan),
    decidedPart(plan),
    ...(brief.earlier === null ? [] : [earlierPart(brief.earlier)]),
    fenced("files that you may open", brief.files),
    brief.lastMessage === null
      ? "The assistant left no closing message."
      : fenced("the assistant's closing message", brief.lastMessage),
  ].filter((part) => part !== "");
  return [
    { role: "system", content: system },
    { role: "user", content: parts.join("\n\n") },
  ];
}

/** Asks for a list of checkpoints where a rubric gives no weights. */
export function listingBrief(rubric: string): StepMessage[] {
  return [
    { role: "system", content: listCheckpointsPrompt },
    { role: "user", content: `List the checkpoints of this rubric.\n\n${fenced("the rubric", rubric)}` },
  ];
}

function checkpointPart(plan: ScoringPlan): string {
  if (plan.asked === null || plan.asked.length === 0) {
    return 'This rubric has no list of checkpoints. Give one "score" from 0 to 1 for the whole by the rubric, before caps, with its "evidence".';
  }
  const lines = plan.asked.map(({ id, weight, text }) => `${id} (weight ${weight})${text === "" ? "" : `: ${text}`}`);
  return `Give a credit for each of these checkpoints, by id.\n\n${fenced("checkpoints", lines.join("\n"))}`;
}

function capPart(plan: ScoringPlan): string {
  if (plan.askedCaps.length === 0) return 'There are no caps for you to look at: "caps" is empty.';
  const lines = plan.askedCaps.map(({ id, max, text }) => `${id} (score at most ${max}): ${text}`);
  return `Say which of these caps fire, by id.\n\n${fenced("caps", lines.join("\n"))}`;
}

function decidedPart(plan: ScoringPlan): string {
  const lines = [
    ...plan.decided.map(
      ({ id, weight, credit, note }) => `${id} (weight ${weight}): credit ${credit}${note ? `; ${note}` : ""}`,
    ),
    ...plan.capsFired.map(({ id, max }) => `cap ${id} fired: score at most ${max}`),
  ];
  return lines.length === 0
    ? ""
    : `These were decided by code and are not asked of you.\n\n${fenced("decided by code", lines.join("\n"))}`;
}

function earlierPart(earlier: Decision): string {
  const lines = [
    `turn ${earlier.turn}: verdict ${earlier.verdict}, state ${earlier.attempt_state}, score ${earlier.score}`,
    ...earlier.checkpoints.map(({ id, credit, note }) => `${id}: credit ${credit}${note ? `; ${note}` : ""}`),
    ...(earlier.capsFired ?? []).map(({ id }) => `cap ${id} had fired`),
    `rationale: ${earlier.rationale}`,
  ];
  return `The review of the turn before. Take nothing away from it that a new or changed file does not cause.\n\n${fenced("earlier review", lines.join("\n"))}`;
}
