/** The null agent's transcript: `{ts, role, text}` a line. */
import { z } from "zod";
import type { TrajectoryEvent } from "../../trajectory/events.ts";

const line = z.object({ ts: z.number(), role: z.enum(["user", "assistant"]), text: z.string() });

export function readNullLine(text: string): Omit<TrajectoryEvent, "v" | "seq" | "raw"> {
  let parsed: z.ZodSafeParseResult<z.infer<typeof line>>;
  try {
    parsed = line.safeParse(JSON.parse(text));
  } catch {
    return unreadable;
  }
  if (!parsed.success) return unreadable;
  const { ts, role, text: said } = parsed.data;
  return { ts, agentId: "null", kind: "message", role, text: said };
}

const unreadable = { ts: null, agentId: "null", kind: "system", text: "unreadable transcript line" } as const;
