/** Reads OpenClaw's transcript into events: one JSON object a line, messages with a list of content parts. */
import { z } from "zod";
import type { TrajectoryEvent } from "./events.ts";

const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.unknown().optional(),
});
const messageLine = z.looseObject({
  type: z.literal("message"),
  timestamp: z.union([z.string(), z.number()]).optional(),
  agentId: z.string().optional(),
  message: z.looseObject({
    role: z.string(),
    content: z.union([z.string(), z.array(z.union([z.string(), part]))]).default([]),
    stopReason: z.string().nullish(),
    toolCallId: z.string().optional(),
    toolName: z.string().optional(),
    isError: z.boolean().optional(),
  }),
});
type MessageLine = z.infer<typeof messageLine>;
type Part = z.infer<typeof part>;

const toolCallParts = new Set(["toolCall", "tool_use", "tool_call"]);

/**
 * Events of parsed lines, numbered from `firstSeq`. Never throws: a line of another kind becomes a `system` event.
 * @param file name for `raw`; its lines count from 1
 */
export function openClawEvents(lines: Iterable<unknown>, file: string, firstSeq = 0): TrajectoryEvent[] {
  const events: TrajectoryEvent[] = [];
  let lineNumber = 0;
  for (const line of lines) {
    lineNumber += 1;
    const raw = { file, line: lineNumber };
    const parsed = messageLine.safeParse(line);
    const made: Omit<TrajectoryEvent, "v" | "seq" | "raw">[] = parsed.success
      ? eventsOfMessage(parsed.data)
      : [{ ts: null, agentId: "", kind: "system" }];
    for (const event of made) events.push({ ...event, v: 1, seq: firstSeq + events.length, raw });
  }
  return events;
}

function eventsOfMessage(line: MessageLine): Omit<TrajectoryEvent, "v" | "seq" | "raw">[] {
  const { message } = line;
  const common = { ts: time(line.timestamp), agentId: line.agentId ?? "" };
  const content = typeof message.content === "string" ? [message.content] : message.content;
  const parts = content.map((item): Part => (typeof item === "string" ? { type: "text", text: item } : item));
  const text = parts
    .filter((item) => item.type === "text" && item.text !== undefined)
    .map((item) => item.text)
    .join("\n");
  switch (message.role) {
    case "assistant": {
      const stopReason = message.stopReason ? { stopReason: message.stopReason } : {};
      return [
        { ...common, kind: "message", role: "assistant", text, ...stopReason },
        ...parts
          .filter((item) => toolCallParts.has(item.type))
          .map((item) => ({
            ...common,
            kind: "tool_call" as const,
            ...(item.name === undefined ? {} : { tool: item.name }),
            ...(item.id === undefined ? {} : { callId: item.id }),
            ...(item.arguments === undefined ? {} : { args: item.arguments }),
          })),
      ];
    }
    case "user":
      return [{ ...common, kind: "message", role: "user", text }];
    case "toolResult":
      return [
        {
          ...common,
          kind: "tool_result",
          text,
          ...(message.toolName === undefined ? {} : { tool: message.toolName }),
          ...(message.toolCallId === undefined ? {} : { callId: message.toolCallId }),
          ...(message.isError === undefined ? {} : { isError: message.isError }),
        },
      ];
    default:
      return [{ ...common, kind: "system", text }];
  }
}

function time(stamp: string | number | undefined): number | null {
  const ms = typeof stamp === "number" ? stamp : Date.parse(stamp ?? "");
  return Number.isFinite(ms) ? ms : null;
}
