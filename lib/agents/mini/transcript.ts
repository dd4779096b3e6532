/**
 * mini's transcript: one JSON line a message, over all turns of a try. It is mini's memory too: a later turn reads it and
 * goes on with the conversation.
 */
import { z } from "zod";
import { tokens } from "../../attempt/usage.ts";
import type { TrajectoryEvent } from "../../trajectory/events.ts";

const toolCall = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export type MiniToolCall = z.infer<typeof toolCall>;

const base = { ts: z.number(), turn: z.number().int().positive() };
const miniLine = z.discriminatedUnion("type", [
  z.object({ ...base, type: z.literal("user"), content: z.string() }),
  z.object({
    ...base,
    type: z.literal("assistant"),
    content: z.string().nullable(),
    tool_calls: z.array(toolCall).optional(),
    // What a provider tells beside its answer, and tells wrong, must not make the answer unreadable.
    finish_reason: z.string().nullable().catch(null),
    usage: tokens.optional().catch(undefined),
  }),
  z.object({
    ...base,
    type: z.literal("tool"),
    tool_call_id: z.string(),
    name: z.string(),
    content: z.string(),
    is_error: z.boolean(),
  }),
  z.object({ ...base, type: z.literal("error"), message: z.string() }),
]);
export type MiniLine = z.infer<typeof miniLine>;

/** A line, or null when it is none of mini's. */
export function parseMiniLine(text: string): MiniLine | null {
  try {
    const parsed = miniLine.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

type EventBody = Omit<TrajectoryEvent, "v" | "seq" | "raw">;

/** The events of one line: an assistant's message is followed by its tool calls and its usage. */
export function miniEvents(text: string): EventBody[] {
  const line = parseMiniLine(text);
  if (!line) return [{ ts: null, agentId: "mini", kind: "system", text: "unreadable transcript line" }];
  const at = { ts: line.ts, agentId: "mini" };
  switch (line.type) {
    case "user":
      return [{ ...at, kind: "message", role: "user", text: line.content }];
    case "assistant":
      return [
        {
          ...at,
          kind: "message",
          role: "assistant",
          text: line.content ?? "",
          ...(line.finish_reason === null ? {} : { stopReason: line.finish_reason }),
        },
        ...(line.tool_calls ?? []).map(
          (call): EventBody => ({
            ...at,
            kind: "tool_call",
            tool: call.function.name,
            callId: call.id,
            args: jsonOrText(call.function.arguments),
          }),
        ),
        ...(line.usage ? [{ ...at, kind: "usage" as const, args: line.usage }] : []),
      ];
    case "tool":
      return [
        {
          ...at,
          kind: "tool_result",
          tool: line.name,
          callId: line.tool_call_id,
          text: line.content,
          isError: line.is_error,
        },
      ];
    case "error":
      return [{ ...at, kind: "system", role: "system", text: line.message, isError: true }];
  }
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
