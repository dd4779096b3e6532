/** One try of one attempt: what the scores table holds and every report reads. */
import { z } from "zod";
import { tokens } from "../attempt/usage.ts";
import { attemptState, isolation, language, rowStatus, stopReason, verdict } from "../attempt/vocabulary.ts";
import { scoreSource } from "../roles/decision.ts";

const byRole = <T extends z.ZodType>(of: T) => z.object({ executor: of, supervisor: of, simulator: of });

export const scoreRow = z.object({
  v: z.literal(1),
  sweep: z.string(),
  generation: z.number().int().positive(),
  attempt: z.string(),
  try: z.number().int().positive(),
  task: z.string(),
  category: z.string(),
  capability: z.string(),
  language,
  cluster: z.string(),
  agent: z.string(),
  agent_version: z.string(),
  model: z.string(),
  epoch: z.number().int().positive(),
  status: rowStatus,
  verdict: verdict.nullable(),
  attempt_state: attemptState.nullable(),
  stop_reason: stopReason.nullable(),
  /** Status pass and score >= threshold. */
  passed: z.boolean(),
  valid: z.boolean(),
  /** 0..1 rounded to 6 decimals; null only where the row is not valid. */
  score: z.number().min(0).max(1).nullable(),
  score_source: scoreSource.nullable(),
  threshold: z.number().min(0).max(1),
  turns: z.number().int().nonnegative(),
  followups: z.number().int().nonnegative(),
  fallback_turns: z.number().int().nonnegative(),
  executor_seconds: z.number().nonnegative(),
  wall_seconds: z.number().nonnegative(),
  tokens: byRole(tokens),
  usd: byRole(z.number().nonnegative()),
  isolation: isolation.nullable(),
  /** Limits that the sweep lowered below the package's own, by name. */
  lowered_limits: z.record(z.string(), z.number()),
  digests: z.object({
    task: z.string(),
    prompts: z.string().nullable(),
    rubric: z.string().nullable(),
    image: z.string().nullable(),
  }),
  /** ISO 8601, UTC. */
  started: z.iso.datetime(),
  ended: z.iso.datetime().nullable(),
  /** One line for people on why the status is what it is. */
  reason: z.string(),
});
export type ScoreRow = z.infer<typeof scoreRow>;
