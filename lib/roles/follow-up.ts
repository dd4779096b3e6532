/** A user simulator's next message, as it is stored in followups/. */
import { z } from "zod";
import { usage } from "../attempt/usage.ts";
import { language } from "../attempt/vocabulary.ts";

export const followUp = z.object({
  v: z.literal(1),
  /** The turn that this message opens, 2 or more. */
  turn: z.number().int().min(2),
  message: z.string().min(1),
  language,
  mode: z.enum(["silent", "nudge", "instruction"]),
  tone: z.enum(["neutral", "firm", "urgent"]),
  lines: z.array(z.string()).max(3),
  /** True when nothing usable was left and the fixed sentence was sent. */
  fallback: z.boolean(),
  digests: z.object({ prompts: z.string() }),
  usage,
});
export type FollowUp = z.infer<typeof followUp>;
