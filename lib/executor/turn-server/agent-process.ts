/** Starting an agent and ending it with everything that it started. */
import { type ChildProcess, spawn } from "node:child_process";
import { Readable } from "node:stream";
import type { TurnAssignment, TurnCommand, TurnPlace } from "../../agents/adapter.ts";
import type { ProcessScope } from "./process-scope.ts";

export interface AgentExit {
  code: number | null;
  signal: string | null;
}

export interface AgentProcess {
  out: Readable;
  err: Readable;
  exited: Promise<AgentExit>;
  /** Asks the agent's process group to end. */
  ask(): void;
}

export interface AgentCall {
  /** Name of the agent. */
  agent: string;
  command: TurnCommand;
  cwd: string;
  env: Record<string, string>;
  /** For agents that are functions. */
  place: TurnPlace;
  assignment: TurnAssignment;
}

export interface StartAgent {
  /** @throws when the agent cannot be started at all. */
  start(call: AgentCall): Promise<AgentProcess>;
  /** Ends, at once, everything that agents started and that still lives. */
  endAll(): Promise<void>;
  /** Whether anything that an agent started still lives, and could change files. */
  anythingLeft(): Promise<boolean>;
}

/** Agents as processes: each in a process group of its own, with an environment of its own. */
export function agentsAsProcesses(scope: ProcessScope): StartAgent {
  return {
    async start({ command, cwd, env }) {
      const [file, ...args] = scope.wrap([command.command, ...command.args]);
      const child = spawn(file as string, args, {
        cwd,
        env: { ...env, ...scope.env },
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      });
      const pid = child.pid as number;
      return {
        out: child.stdout,
        err: child.stderr,
        exited: exitOf(child),
        ask: () => signalGroup(pid, "SIGTERM"),
      };
    },
    endAll: () => scope.endAll(),
    anythingLeft: () => scope.anythingLeft(),
  };
}

function exitOf(child: ChildProcess): Promise<AgentExit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/** Signals a process group; one that is gone is no error. macOS says EPERM of one that has only zombies left. */
function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/** What an agent that is a function gets, and how it speaks. */
export interface FunctionAgentCall {
  place: TurnPlace;
  assignment: TurnAssignment;
  write(stream: "out" | "err", text: string): void;
  signal: AbortSignal;
}
/** Answers with its exit code. */
export type FunctionAgent = (call: FunctionAgentCall) => Promise<number>;

/** Agents as functions of this process, by name: for benchmarks of ours and quick tests. */
export function agentsAsFunctions(agents: Record<string, FunctionAgent>): StartAgent {
  const running = new Set<AbortController>();
  return {
    async start(call) {
      const agent = agents[call.agent];
      if (agent === undefined) throw new Error(`agent "${call.agent}" cannot run inside this process`);
      const out = new Readable({ read: () => {} });
      const err = new Readable({ read: () => {} });
      const control = new AbortController();
      running.add(control);
      const work = agent({
        place: call.place,
        assignment: call.assignment,
        write: (stream, text) => (stream === "out" ? out : err).push(text),
        signal: control.signal,
      });
      const exited = work
        .then(
          (code): AgentExit => (control.signal.aborted ? { code: null, signal: "SIGTERM" } : { code, signal: null }),
          (error: unknown): AgentExit => {
            err.push(String(error));
            return control.signal.aborted ? { code: null, signal: "SIGTERM" } : { code: 1, signal: null };
          },
        )
        .finally(() => {
          running.delete(control);
          out.push(null);
          err.push(null);
        });
      return { out, err, exited, ask: () => control.abort() };
    },
    async endAll() {
      for (const control of running) control.abort();
    },
    anythingLeft: async () => running.size > 0,
  };
}
