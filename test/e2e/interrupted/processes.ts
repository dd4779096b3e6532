/** The command line as a process, and what can be seen of processes from outside. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";

/** Generous: a machine may be busy with many other tests. Nothing waits so long unless it fails. */
const patienceMs = 25_000;

/** Waits for a condition. @throws Error that names what did not come */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUp = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > giveUp) throw new Error(`waited ${patienceMs / 1000} s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

export class Proctor {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  hasEnded = false;
  out = "";
  err = "";
  readonly #child: ChildProcess;

  constructor(command: string, args: string[], env: NodeJS.ProcessEnv) {
    // In a process group of its own, as a shell starts it, so that a signal can go to all of it.
    this.#child = spawn(command, args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    this.pid = this.#child.pid as number;
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.out += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.err += text;
    });
    this.ended = new Promise((resolve) => {
      this.#child.once("exit", () => {
        this.hasEnded = true;
      });
      this.#child.once("close", (code, signal) => resolve({ code, signal, out: this.out, err: this.err }));
    });
  }

  /** Waits until standard error says it. @throws Error when the process ends before */
  async says(text: RegExp): Promise<void> {
    await this.until(() => text.test(this.err), `${text} in: ${this.err}`);
  }

  /** Waits for a condition while the process runs. @throws Error when the process ends before */
  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    await until(async () => {
      if (await condition()) return true;
      if (this.hasEnded) throw new Error(`it ended before ${what}\n${this.err}${this.out}`);
      return false;
    }, what);
  }

  /** To the process alone. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** To its process group, as a terminal does on Ctrl-C. */
  interrupt(): void {
    process.kill(-this.pid, "SIGINT");
  }

  /** Kills it where it stands. @returns the processes that it had below it then */
  async kill(): Promise<number[]> {
    if (!this.hasEnded) this.signal("SIGSTOP");
    const below = descendants(this.pid);
    if (!this.hasEnded) this.signal("SIGKILL");
    await this.ended;
    return below;
  }
}

/** Processes that run, with their parents: zombies are none. Where there is no /proc, as `ps` tells. */
function processes(): Map<number, number> {
  const lines = hasProc
    ? processIds().map((pid) => {
        const stat = textOf(`/proc/${pid}/stat`);
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return `${pid} ${parent} ${state}`;
      })
    : execFileSync("ps", ["-A", "-o", "pid=,ppid=,state="], { encoding: "utf8" }).split("\n");
  const found = new Map<number, number>();
  for (const line of lines) {
    const [pid, parent, state] = line.trim().split(/\s+/);
    if (pid && parent && state && !state.startsWith("Z")) found.set(Number(pid), Number(parent));
  }
  return found;
}

/** Ids of all processes below one, as they are now. */
export function descendants(of: number): number[] {
  const all = [...processes()];
  const found: number[] = [];
  for (const next = [of]; next.length > 0; ) {
    const parent = next.pop();
    for (const [pid, its] of all) {
      if (its !== parent) continue;
      found.push(pid);
      next.push(pid);
    }
  }
  return found;
}

/** Those of the given processes that still run. */
export function alive(pids: readonly number[]): number[] {
  const all = processes();
  return pids.filter((pid) => all.has(pid));
}

/**
 * Processes, this one apart, whose command line, environment or mounts name a folder: those of runners and turn servers
 * do, daemons of agents too. Where there is no /proc, command lines alone.
 */
export function processesNaming(folder: string): number[] {
  const name = basename(folder);
  if (!hasProc) {
    return execFileSync("ps", ["-A", "-o", "pid=,command="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(name))
      .map((line) => Number.parseInt(line, 10));
  }
  return processIds()
    .filter((pid) => pid !== process.pid)
    .filter((pid) => ["cmdline", "environ", "mountinfo"].some((file) => textOf(`/proc/${pid}/${file}`).includes(name)));
}

const hasProc = existsSync("/proc/self/environ");

const processIds = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Gone meanwhile, a zombie, or another user's.
    return "";
  }
}
