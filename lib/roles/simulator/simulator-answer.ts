/** What the user simulator's model answers. */
import { z } from "zod";
import { readAnswer } from "../answer-text.ts";
import type { Reading } from "../conversation.ts";
import { followUp } from "../follow-up.ts";

const { mode, tone } = followUp.shape;

export const simulatorAnswer = z.object({
  mode,
  tone: tone.default("neutral"),
  candidate_feedback: z.string().max(4000),
  public_feedback_points: z.array(z.string().max(1000)).max(20).default([]),
});
export type SimulatorAnswer = z.infer<typeof simulatorAnswer>;

export function simulatorAnswerSchema(): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(
    z.strictObject({
      mode,
      tone,
      candidate_feedback: z.string(),
      public_feedback_points: z.array(z.string()),
    }),
  );
  return schema;
}

export function readSimulatorAnswer(content: string): Reading<SimulatorAnswer> {
  return readAnswer(content, simulatorAnswer);
}
