/**
 * How one turn is scored: which checkpoints code has decided, which a model is asked for, and which caps stand. Weights
 * come from the package's checks, else from §5 of its rubric, else from a list that a supervisor made once; failing that
 * too, the model gives a score as a whole.
 */
import { z } from "zod";
import type { Rubric, RubricCap } from "../../attempt/rubric.ts";

export const checksOutcome = z.object({
  checkpoints: z.array(
    z.object({
      id: z.string(),
      weight: z.number(),
      credit: z.number().min(0).max(1),
      evidence: z.array(z.string()),
      note: z.string().optional(),
    }),
  ),
  /** Checkpoints that the checks leave to a model. */
  judgeIds: z.array(z.object({ id: z.string(), weight: z.number() })),
  capsFired: z.array(z.object({ id: z.string(), max: z.number().min(0).max(1) })),
  /** All caps that code decides, fired or not. */
  caps: z.array(z.object({ id: z.string(), max: z.number().min(0).max(1) })),
});
/** What checks decided by code. */
export type ChecksOutcome = z.infer<typeof checksOutcome>;

export const listedCheckpoints = z.object({
  v: z.literal(1),
  checkpoints: z.array(z.object({ id: z.string(), weight: z.number(), text: z.string() })).min(1),
});
export type ListedCheckpoints = z.infer<typeof listedCheckpoints>;

export interface ScoringPlan {
  decided: ChecksOutcome["checkpoints"];
  capsFired: ChecksOutcome["capsFired"];
  /** Null: a list of checkpoints has to be made first. Empty: nothing is left for a model, or a score as a whole is. */
  asked: { id: string; weight: number; text: string }[] | null;
  askedCaps: RubricCap[];
}

/** @param listed what a supervisor listed; `failed`: it could not */
export function scoringPlan(
  checks: ChecksOutcome | null,
  rubric: Rubric,
  listed: ListedCheckpoints | "failed" | null,
): ScoringPlan {
  if (checks) {
    const texts = new Map((rubric.checkpoints ?? []).map(({ id, text }) => [id, text]));
    const asked = checks.judgeIds.map(({ id, weight }) => ({ id, weight, text: texts.get(id) ?? "" }));
    // A cap of the rubric that code decides stands in both, under different ids: its limit tells.
    const byCode = new Set(checks.caps.map(({ max }) => max));
    return {
      decided: checks.checkpoints,
      capsFired: checks.capsFired,
      asked,
      askedCaps: rubric.caps.filter(({ max }) => !byCode.has(max)),
    };
  }
  const asked = rubric.checkpoints ?? (listed === "failed" ? [] : (listed?.checkpoints ?? null));
  return { decided: [], capsFired: [], asked, askedCaps: rubric.caps };
}

/** The listed checkpoints that a model answers with. Weights are made to sum to 1 where they almost do. */
export const listAnswer = z
  .object({
    checkpoints: z
      .array(
        z.object({
          id: z.string().min(1).max(40),
          weight: z.number().positive().max(1),
          text: z.string().max(2000).default(""),
        }),
      )
      .min(1)
      .max(60),
  })
  .refine(({ checkpoints }) => Math.abs(checkpoints.reduce((sum, { weight }) => sum + weight, 0) - 1) < 0.01, {
    message: "weights have to sum to 1",
    path: ["checkpoints"],
  })
  .refine(({ checkpoints }) => new Set(checkpoints.map(({ id }) => id)).size === checkpoints.length, {
    message: "ids have to differ",
    path: ["checkpoints"],
  });

export function listAnswerSchema(): Record<string, unknown> {
  const entry = z.strictObject({ id: z.string(), weight: z.number(), text: z.string() });
  const { $schema: _, ...schema } = z.toJSONSchema(z.strictObject({ checkpoints: z.array(entry) }));
  return schema;
}
