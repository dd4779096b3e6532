/** mini: a loop with bash, read and write over the chat completions API. The smallest honest agent. */
import { completionByTranscript, completionRules } from "../../attempt/completion.ts";
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
  completion: (events, exitCode) => completionByTranscript(completionRules.mini, events, exitCode),
};
