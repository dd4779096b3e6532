/** From credits and a verdict to the decision on a turn: score by code, caps, verdict rule, gate. Pure. */
import { type Cap, cappedScore, weightedScore } from "../../attempt/credit.ts";
import {
  applyGate,
  type DecisionPlace,
  type RawDecision,
  verdictOfChecks,
  verdictOfModel,
} from "../../attempt/decision-rule.ts";
import type { Usage } from "../../attempt/usage.ts";
import type { CheckpointCredit, Decision } from "../decision.ts";
import type { JudgeAnswer } from "./judge-answer.ts";
import type { ScoringPlan } from "./scoring-plan.ts";

export interface Settlement {
  place: DecisionPlace;
  threshold: number;
  turnComplete: boolean;
  plan: ScoringPlan;
  /** Null where checks decided everything. */
  answer: JudgeAnswer | null;
  /** The decision on the turn before, if there was one. */
  earlier: Decision | null;
  /** Whether a pointer names a file that is new, changed or gone since the turn before. */
  isChangedArtifact: (pointer: string) => boolean;
  digests: Decision["digests"];
  usage: Usage;
}

export function settle(given: Settlement): Decision {
  const { plan, answer, place, threshold, turnComplete } = given;
  const checkpoints = [
    ...plan.decided.map((one): CheckpointCredit => ({ ...withoutNote(one), decidedBy: "check" })),
    ...judgedCheckpoints(given),
  ];
  const capsFired = [...plan.capsFired, ...judgedCaps(given)];
  const whole = answer?.score ?? null;
  const { score, cap } =
    whole === null ? weightedScore(checkpoints, capsFired) : cappedScore(heldScore(given, whole), capsFired);
  const raw: RawDecision | null = answer;
  const ruled = raw
    ? verdictOfModel(raw, score, threshold, turnComplete, place)
    : verdictOfChecks(score, threshold, turnComplete, place);
  return {
    v: 1,
    turn: place.turn,
    ...applyGate(ruled, turnComplete, place),
    score,
    confidence: answer?.confidence ?? "high",
    rationale: answer?.rationale ?? "Every checkpoint was decided by a check.",
    missing_artifacts: answer?.missing_artifacts ?? [],
    guidance_tags: answer?.guidance_tags ?? [],
    checkpoints,
    cap,
    capsFired,
    scoreSource: answer === null ? "checks" : plan.decided.length > 0 ? "mixed" : "model",
    threshold,
    digests: given.digests,
    usage: given.usage,
  };
}

/**
 * Credits of the model; none is lower than on the turn before unless a changed file is the reason: one that the model
 * names, or one that the higher credit rested on, which it cannot name any more where it is gone.
 */
function judgedCheckpoints({ plan, answer, earlier, isChangedArtifact }: Settlement): CheckpointCredit[] {
  return (answer?.checkpoints ?? []).map((given): CheckpointCredit => {
    const weight = plan.asked?.find(({ id }) => id === given.id)?.weight ?? 0;
    const before = earlier?.checkpoints.find(({ id, decidedBy }) => id === given.id && decidedBy === "model");
    const changed = [...given.evidence, ...(before?.evidence ?? [])].some(isChangedArtifact);
    const held = before !== undefined && given.credit < before.credit && !changed;
    const note = [
      given.note,
      ...(held ? [`[credit ${given.credit} raised to ${before.credit}: no changed file is the reason]`] : []),
    ].filter((part) => part !== "");
    return {
      id: given.id,
      weight,
      credit: held ? before.credit : given.credit,
      decidedBy: "model",
      evidence: held ? [...new Set([...before.evidence, ...given.evidence])] : given.evidence,
      ...(note.length > 0 ? { note: note.join(" ") } : {}),
    };
  });
}

/** Caps that the model sees fired; a new one on a later turn needs a changed file too. */
function judgedCaps({ plan, answer, earlier, isChangedArtifact }: Settlement): Cap[] {
  return (answer?.caps ?? []).flatMap((given) => {
    const cap = plan.askedCaps.find(({ id }) => id === given.id);
    const before = earlier?.capsFired?.some(({ id }) => id === given.id) ?? false;
    const allowed = earlier === null || before || given.evidence.some(isChangedArtifact);
    return cap && allowed ? [{ id: cap.id, max: cap.max }] : [];
  });
}

function heldScore({ answer, earlier, isChangedArtifact }: Settlement, score: number): number {
  if (earlier === null || score >= earlier.score || earlier.checkpoints.length > 0) return score;
  return answer?.evidence.some(isChangedArtifact) ? score : earlier.score;
}

function withoutNote(one: ScoringPlan["decided"][number]): Omit<CheckpointCredit, "decidedBy"> {
  const { note, ...rest } = one;
  return note === undefined ? rest : { ...rest, note };
}
