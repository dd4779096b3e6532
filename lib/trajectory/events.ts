/** events.jsonl: an agent's transcript in our form, the same for every agent. */
import { z } from "zod";

export const trajectoryEvent = z.object({
  v: z.literal(1),
  seq: z.number().int().nonnegative(),
  /** Milliseconds since 1970, or null where the agent keeps no time. */
  ts: z.number().nullable(),
  agentId: z.string(),
  kind: z.enum(["message", "tool_call", "tool_result", "usage", "system"]),
  role: z.enum(["user", "assistant", "system"]).optional(),
  text: z.string().optional(),
  tool: z.string().optional(),
  callId: z.string().optional(),
  args: z.unknown().optional(),
  isError: z.boolean().optional(),
  image: z.object({ path: z.string() }).optional(),
  /** The API's stop reason of an assistant message. */
  stopReason: z.string().optional(),
  /** The line that it was read from. */
  raw: z.object({ file: z.string(), line: z.number().int().positive() }),
});
export type TrajectoryEvent = z.infer<typeof trajectoryEvent>;
