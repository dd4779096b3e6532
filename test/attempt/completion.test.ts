import { describe, expect, it } from "vitest";
import { mini } from "../../lib/agents/mini/adapter.ts";
import { completionByTranscript, completionOf, completionRules } from "../../lib/attempt/completion.ts";
import { claimsCompletion, isCompletionPhrase } from "../../lib/attempt/completion-phrases.ts";
import type { TrajectoryEvent } from "../../lib/trajectory/events.ts";
import { openClawEvents } from "../../lib/trajectory/openclaw-transcript.ts";

const said = (text: string, stopReason?: string, calls: string[] = [], agentId = "") => ({
  type: "message",
  agentId,
  message: {
    role: "assistant",
    content: [{ type: "text", text }, ...calls.map((name) => ({ type: "toolCall", id: name, name, arguments: {} }))],
    ...(stopReason ? { stopReason } : {}),
  },
});
const result = {
  type: "message",
  message: { role: "toolResult", toolCallId: "exec", toolName: "exec", content: "ok" },
};
const events = (...lines: unknown[]): TrajectoryEvent[] => openClawEvents(lines, "t.jsonl");

describe("completion", () => {
  it("nothing said is not complete", () => {
    for (const agent of ["openclaw", "nanobot", "openclaw_edict", "mini", "something-new"]) {
      expect(completionOf(agent, [], 0)).toEqual({ complete: false, reason: "no_message" });
      expect(completionOf(agent, [], 1)).toEqual({ complete: false, reason: "nonzero_exit" });
    }
  });

  it("the last assistant message counts, whatever stands behind it", () => {
    const done = events(said("first"), said("", "toolUse", ["exec"]), result, said("All good.", "stop"));
    expect(completionOf("openclaw", done, 0)).toEqual({ complete: true, reason: "api_stop" });
    expect(completionOf("openclaw", done.slice(0, -1), 0)).toEqual({ complete: false, reason: "api_unfinished" });
    expect(completionOf("openclaw", events(said("x", undefined, ["exec"]), result), 0).reason).toBe(
      "pending_tool_call",
    );
  });

  it("an agent without a rule needs a stop reason or a phrase", () => {
    expect(completionOf("something-new", events(said("Here it is.")), 0)).toEqual({
      complete: false,
      reason: "no_signal",
    });
    expect(completionOf("toString", events(said("Done.")), 0)).toEqual({ complete: true, reason: "phrase" });
    expect(completionOf("something-new", events(said("Done.")), 3).reason).toBe("nonzero_exit");
  });

  it("mini goes by the API's stop reason alone", () => {
    const judge = (text: string, stop: string | undefined, exit: number | null) =>
      mini.completion(events(said(text, stop)), exit);
    expect(judge("", "stop", 0)).toEqual({ complete: true, reason: "api_stop" });
    expect(judge("Done.", undefined, 0)).toEqual({ complete: false, reason: "no_signal" });
    expect(judge("Done.", "length", 0).complete).toBe(false);
    expect(judge("Done.", "stop", 1)).toEqual({ complete: false, reason: "nonzero_exit" });
  });

  it("null goes by its exit code alone", () => {
    expect(completionOf("null", [], 0)).toEqual({ complete: true, reason: "exit_zero" });
    expect(completionOf("null", [], null)).toEqual({ complete: false, reason: "no_exit" });
    expect(completionOf("null", [], 2)).toEqual({ complete: false, reason: "nonzero_exit" });
  });

  it("Edict's long answer outweighs its exit, unless it only hands the work over", () => {
    const long = "结果。".repeat(70);
    const judge = (...lines: unknown[]) => completionByTranscript(completionRules.openclaw_edict, events(...lines), 1);
    expect(judge(said(long, "error", [], "taizi"))).toEqual({ complete: true, reason: "forgiven_exit" });
    expect(judge(said("结果。", "error", [], "taizi")).reason).toBe("nonzero_exit");
    const handed = [said("", "toolUse", ["sessions_send"], "taizi"), said(`${long}稍候`, "stop", [], "taizi")];
    expect(judge(...handed)).toEqual({ complete: false, reason: "routing_only" });
    // What the others write is not its word.
    expect(judge(said("短", "stop", [], "taizi"), said(long, "stop", [], "zhongshu")).complete).toBe(false);
  });
});

describe("completion phrases", () => {
  it.each(["Done", "task is done!", "I  HAVE finished the request.", "任务完成！", "…sure. Completed."])(
    "%s",
    (text) => {
      expect(claimsCompletion(text)).toBe(true);
    },
  );
  it.each(["not done yet", "I will say done", "未完成", "还没完成", ""])("%s is none", (text) => {
    expect(claimsCompletion(text)).toBe(false);
  });
  it("a line is one only as a whole", () => {
    expect(isCompletionPhrase(" Done. ")).toBe(true);
    expect(isCompletionPhrase("Done, see results")).toBe(false);
    expect(isCompletionPhrase("好的，我已完成")).toBe(false);
  });
});

describe("reading OpenClaw's transcript", () => {
  it("numbers events and keeps where they came from; what it does not know becomes system", () => {
    const read = openClawEvents([said("hi", "stop", ["exec"]), { type: "session" }, 42, null, result], "t.jsonl", 5);
    expect(read.map(({ seq, kind, raw }) => [seq, kind, raw.line])).toEqual([
      [5, "message", 1],
      [6, "tool_call", 1],
      [7, "system", 2],
      [8, "system", 3],
      [9, "system", 4],
      [10, "tool_result", 5],
    ]);
    expect(read[0]).toMatchObject({ role: "assistant", text: "hi", stopReason: "stop" });
    expect(read[1]).toMatchObject({ tool: "exec", callId: "exec", args: {} });
  });
});
