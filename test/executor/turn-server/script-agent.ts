/** An agent that runs what its options say: tests put it into the turn server in place of the real ones. */
import { z } from "zod";
import type { AgentAdapter } from "../../../lib/agents/adapter.ts";

const options = z.strictObject({ command: z.array(z.string()).min(1) });

export const scriptAgent: AgentAdapter = {
  name: "script",
  version: "1",
  options,
  networks: ["web", "offline", "guarded"],
  transcript: ["script.jsonl"],
  command(place, assignment) {
    const [command, ...args] = options.parse(assignment.options).command;
    return {
      command: command as string,
      args,
      env: { MESSAGE: assignment.message, BASE_URL: assignment.gateway.baseUrl, KEY: assignment.gateway.key },
      files: { [`${place.state}/turn.txt`]: `${assignment.turn}` },
    };
  },
  *read() {},
  completion: () => ({ complete: true, reason: "exit_zero" }),
};

export const agentByName = (name: string): AgentAdapter | null => (name === "script" ? scriptAgent : null);
