/**
 * All processes that descend from agents, also those that left their process group, their session and their parent.
 * In a sandbox that is the whole process namespace but its first process and the turn server. Without one it is what
 * carries a mark in its environment or hangs on a known process: as far as it goes, and no further.
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export interface ProcessScope {
  /** The command line that starts an agent in this scope. */
  wrap(command: string[]): string[];
  /** What an agent's environment gets in addition. */
  env: Record<string, string>;
  endAll(): Promise<void>;
  anythingLeft(): Promise<boolean>;
}

/**
 * The process namespace of a sandbox. The turn server holds one capability that means nothing outside the sandbox
 * (SETPCAP); agents start without it, and the kernel lets nobody trace or read the memory, environment or descriptors
 * of a process that has more capabilities than oneself. So an agent cannot read the secret out of its turn server,
 * although both are the same user.
 *
 * @param guard command line that agents are started through; it takes the capability away
 * @throws when this process is not the sandbox's second: `kill(-1)` is for there alone.
 */
export function sandboxScope(guard: string[]): ProcessScope {
  const inSandbox = (): boolean => process.pid === 2 && process.ppid === 1;
  if (!inSandbox()) throw new Error("the turn server is not the second process of a sandbox");
  const others = (): string[] =>
    readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== "1" && name !== "2" && !isZombie(name));
  return {
    wrap: (command) => [...guard, ...command],
    env: {},
    async endAll() {
      // Everything in this process namespace except its first process and the caller, in one step, so that nothing
      // can fork out of the way.
      for (let round = 0; round < 50 && inSandbox() && others().length > 0; round++) {
        try {
          process.kill(-1, "SIGKILL");
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
        }
        await sleep(round < 5 ? 2 : 20);
      }
    },
    anythingLeft: async () => others().length > 0,
  };
}

function isZombie(pid: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) === "Z";
  } catch {
    return true;
  }
}

/** Name of the mark in the environment of agents that run without a sandbox. */
const markName = "PROCTOR_EXECUTOR";

/** Processes that carry `mark`, a random name of one executor. */
export function markedScope(mark: string): ProcessScope {
  return {
    wrap: (command) => command,
    env: { [markName]: mark },
    async endAll() {
      for (let round = 0; round < 20; round++) {
        const left = await marked(mark);
        if (left.length === 0) return;
        for (const pid of left) {
          try {
            process.kill(pid, "SIGKILL");
          } catch {
            // Gone by itself.
          }
        }
        await sleep(5);
      }
    },
    anythingLeft: async () => (await marked(mark)).length > 0,
  };
}

/** Ids of processes of this user whose environment carries the mark. */
async function marked(mark: string): Promise<number[]> {
  const entry = `${markName}=${mark}`;
  if (existsSync("/proc/self/environ")) {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => {
        try {
          return readFileSync(`/proc/${name}/environ`, "latin1").split("\0").includes(entry) && !isZombie(name);
        } catch {
          return false;
        }
      })
      .map(Number);
  }
  // macOS: ps shows environments of one's own processes.
  return new Promise((resolve) => {
    execFile("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: 64 * 1024 ** 2 }, (_error, text) => {
      const lines = text.split("\n").filter((line) => line.split(" ").includes(entry));
      resolve(lines.map((line) => Number.parseInt(line, 10)).filter((pid) => pid > 1 && pid !== process.pid));
    });
  });
}
