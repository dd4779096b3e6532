/** What the runner says of a turn: the answer to the turn's token (at most 4 KB as JSON) and report.json of its evidence. */
import { z } from "zod";
import { usage } from "../attempt/usage.ts";
import { isolation, stopReason } from "../attempt/vocabulary.ts";

/** Why a turn counts as complete, or not. */
const completionReason = z.enum([
  "api_stop",
  "phrase",
  "text_only",
  "exit_zero",
  "forgiven_exit",
  "api_unfinished",
  "pending_tool_call",
  "no_signal",
  "no_message",
  "no_exit",
  "nonzero_exit",
  "routing_only",
]);

export const completion = z.object({ complete: z.boolean(), reason: completionReason });
export type Completion = z.infer<typeof completion>;

export const turnReport = z.object({
  v: z.literal(1),
  turn: z.number().int().positive(),
  /** `code` null: the agent was ended by us or by a signal. */
  exit: z.object({ code: z.number().int().nullable(), stopReason }),
  /** ISO 8601, UTC. */
  started: z.iso.datetime(),
  ended: z.iso.datetime(),
  executorSeconds: z.number().nonnegative(),
  completion,
  usage,
  /** Where the turn's manifest.json stands; null when the turn left no evidence. */
  manifestKey: z.string().nullable(),
  isolation,
  /** One line on a fault, for people; never text of the agent's. */
  note: z.string().max(300).optional(),
});
export type TurnReport = z.infer<typeof turnReport>;
