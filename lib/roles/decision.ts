/** A supervisor's decision on one turn, as it is stored in the hidden bucket. */
import { z } from "zod";
import { usage } from "../attempt/usage.ts";
import { attemptState, verdict } from "../attempt/vocabulary.ts";

/** The closed list of guidance tags; others are dropped. */
export const guidanceTag = z.enum([
  "follow_public_task",
  "keep_query_literal",
  "open_ranked_first_result",
  "save_visible_evidence",
  "save_supporting_screenshot",
  "use_only_visible_evidence",
  "verify_evidence_matches_conclusion",
  "check_correct_source_page",
  "record_observable_conclusion",
  "do_not_claim_completion",
  "credential_hygiene",
]);

export const scoreSource = z.enum(["checks", "mixed", "model"]);

const checkpointCredit = z.object({
  id: z.string(),
  weight: z.number().min(0).max(1),
  credit: z.number().min(0).max(1),
  decidedBy: z.enum(["check", "model"]),
  /** Evidence paths (`turn-01/results/a.txt`) or events (`turn-01/events.jsonl#12`) that exist. */
  evidence: z.array(z.string()),
  note: z.string().optional(),
});
export type CheckpointCredit = z.infer<typeof checkpointCredit>;

export const decision = z.object({
  v: z.literal(1),
  turn: z.number().int().positive(),
  verdict,
  attempt_state: attemptState,
  recoverable: z.boolean(),
  /** 0..1, rounded to 6 decimals, caps applied. */
  score: z.number().min(0).max(1),
  confidence: z.enum(["low", "medium", "high"]),
  rationale: z.string(),
  missing_artifacts: z.array(z.string()),
  guidance_tags: z.array(guidanceTag),
  checkpoints: z.array(checkpointCredit),
  /** The cap that was applied, if any. */
  cap: z.object({ id: z.string(), max: z.number().min(0).max(1) }).nullable(),
  /** Every cap that fired, the applied one among them: a later turn is held to it. */
  capsFired: z.array(z.object({ id: z.string(), max: z.number().min(0).max(1) })).optional(),
  scoreSource,
  threshold: z.number().min(0).max(1),
  /** True when the gate changed the verdict: a pass on an incomplete turn. */
  gateFailed: z.boolean(),
  digests: z.object({ prompts: z.string(), rubric: z.string() }),
  usage,
});
export type Decision = z.infer<typeof decision>;

/** The four fields that cross to the user simulator. Nothing else of a decision does. */
export const crossing = decision.pick({ verdict: true, attempt_state: true, recoverable: true, score: true });
