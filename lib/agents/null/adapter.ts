/** The agent that does nothing, or just what its options say: a baseline that must score 0, and a fixture. */
import { exitZeroCompletion } from "../../attempt/completion.ts";
import type { AgentAdapter, TurnAssignment, TurnPlace } from "../adapter.ts";
import { type NullJob, nullOptions, nullVersion, transcriptName } from "./run-null.ts";
import { readNullLine } from "./transcript.ts";

/** The job of a turn, as null-main.js and the in-process launcher take it. */
export function nullJob(place: TurnPlace, assignment: TurnAssignment): NullJob {
  return {
    turn: assignment.turn,
    message: assignment.message,
    workspace: place.workspace,
    state: place.state,
    options: nullOptions.parse(assignment.options),
  };
}

export const nullAgent: AgentAdapter = {
  name: "null",
  version: nullVersion,
  options: nullOptions,
  networks: ["web", "offline", "guarded"],
  transcript: [transcriptName],
  command(place, assignment) {
    const job = `${place.state}/null-turn.json`;
    return {
      command: place.node,
      args: [`${place.bundles}/null-main.js`, job],
      env: {},
      files: { [job]: JSON.stringify(nullJob(place, assignment)) },
    };
  },
  *read(file, lines, firstSeq) {
    let seq = firstSeq;
    let line = 0;
    for (const text of lines) yield { ...readNullLine(text), v: 1, seq: seq++, raw: { file, line: ++line } };
  },
  completion: (_events, exitCode) => exitZeroCompletion(exitCode),
};
