/**
 * Turn server and runner in this process, with the same HTTP over the same Unix sockets, and agents as functions: for
 * our own benchmark and quick tests. There is nothing between such an agent and us, so only agents of ours run here.
 */
import { nullJob } from "../../../agents/null/adapter.ts";
import { runNull } from "../../../agents/null/run-null.ts";
import { agentByName } from "../../../agents/registry.ts";
import type { RunnerInput, RunRunner } from "../../../executor/runner-input.ts";
import { agentsAsFunctions, type FunctionAgent } from "../../../executor/turn-server/agent-process.ts";
import { TurnServer } from "../../../executor/turn-server/turn-server.ts";
import type { Launcher, LaunchSpec } from "../../ports.ts";
import { LocalLauncher, type LocalLauncherOptions, type Side, type SideEnd } from "./launcher.ts";
import type { ExecutorFolder } from "./session.ts";

export interface InProcessLauncherOptions extends LocalLauncherOptions {
  runner: RunRunner;
  /** Agents as functions, by name; in addition to `null`. */
  agents?: Record<string, FunctionAgent>;
}

export function openInProcessLauncher(options: InProcessLauncherOptions): Promise<Launcher> {
  const agents: Record<string, FunctionAgent> = {
    null: ({ place, assignment, write, signal }) =>
      runNull(nullJob(place, assignment), (text) => write("out", text), signal),
    ...options.agents,
  };
  return LocalLauncher.open(
    async () => ({
      isolation: "none",
      gatewayPath: (folder) => folder.gatewaySocket,
      startAgentSide: (folder, spec) => startTurnServer(folder, spec, agents),
      startRunner: async (input) => runHere(options.runner, input),
    }),
    options,
  );
}

async function startTurnServer(
  folder: ExecutorFolder,
  spec: LaunchSpec,
  agents: Record<string, FunctionAgent>,
): Promise<Side> {
  const turnServer = new TurnServer({
    secret: spec.turnSecret,
    place: { workspace: folder.workspace, home: folder.home, bundles: "/", node: process.execPath },
    agents: agentByName,
    start: agentsAsFunctions(agents),
  });
  await new Promise<void>((resolve, reject) => {
    turnServer.server.once("error", reject);
    turnServer.server.listen(folder.turnSocket, resolve);
  });
  let end: Promise<void> | null = null;
  return {
    ended: new Promise<SideEnd>((resolve) => {
      turnServer.server.once("close", () => resolve({ code: 0, signal: null, said: "" }));
    }),
    end: () => {
      end ??= turnServer.close();
      return end;
    },
  };
}

function runHere(runner: RunRunner, input: RunnerInput): Side {
  const stop = new AbortController();
  const ended = runner(input, stop.signal).then(
    (): SideEnd => ({ code: 0, signal: null, said: "" }),
    (error: unknown): SideEnd => ({ code: 1, signal: null, said: String(error) }),
  );
  return {
    ended,
    async end() {
      stop.abort();
      await ended;
    },
  };
}
