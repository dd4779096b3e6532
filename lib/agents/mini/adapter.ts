/** mini: a loop with bash, read and write over the chat completions API. The smallest honest agent. */
import type { TrajectoryEvent } from "../../trajectory/events.ts";
import type { Completion } from "../../trajectory/turn-report.ts";
import type { AgentAdapter } from "../adapter.ts";
import { type MiniJob, miniEnv, miniOptions, miniTranscript, miniVersion } from "./job.ts";
import { miniEvents } from "./transcript.ts";

export const mini: AgentAdapter = {
  name: "mini",
  version: miniVersion,
  options: miniOptions,
  networks: ["web", "offline"],
  transcript: [miniTranscript],
  command(place, assignment) {
    const path = `${place.state}/mini-turn.json`;
    const job: MiniJob = {
      turn: assignment.turn,
      message: assignment.message,
      model: assignment.model,
      workspace: place.workspace,
      state: place.state,
      options: miniOptions.parse(assignment.options),
    };
    return {
      command: place.node,
      args: [`${place.bundles}/mini-main.js`, path],
      env: { [miniEnv.baseUrl]: assignment.gateway.baseUrl, [miniEnv.key]: assignment.gateway.key },
      files: { [path]: JSON.stringify(job) },
    };
  },
  *read(file, lines, firstSeq) {
    let seq = firstSeq;
    let line = 0;
    for (const text of lines) {
      line++;
      for (const event of miniEvents(text)) yield { ...event, v: 1, seq: seq++, raw: { file, line } };
    }
  },
  completion: completionByStopReason,
};

/** Complete when the API says of the last assistant message that the model stopped by itself, with no tool call open. */
function completionByStopReason(events: readonly TrajectoryEvent[], exitCode: number | null): Completion {
  const at = events.findLastIndex((event) => event.kind === "message" && event.role === "assistant");
  const last = events[at];
  if (!last) return { complete: false, reason: "no_message" };
  if (exitCode !== null && exitCode !== 0) return { complete: false, reason: "nonzero_exit" };
  if (events.slice(at).some((event) => event.kind === "tool_call")) {
    return { complete: false, reason: "pending_tool_call" };
  }
  if (last.stopReason === undefined) return { complete: false, reason: "no_signal" };
  return ["stop", "end_turn", "stop_sequence"].includes(last.stopReason)
    ? { complete: true, reason: "api_stop" }
    : { complete: false, reason: "api_unfinished" };
}
