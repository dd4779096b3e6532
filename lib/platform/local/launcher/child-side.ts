/** A side of an executor as a child process that leaves when its standard input ends. */
import { spawn } from "node:child_process";
import { rename } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import type { Side, SideEnd } from "./launcher.ts";

export interface ChildSide {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** First line of its standard input: what it must know and nobody else may see. */
  firstLine: string;
  /** A listening socket that it inherits as descriptor 3. */
  listening?: Server;
  /** What it reads, to its end, from descriptor 4. */
  data?: string;
  /** Milliseconds between the end of its standard input and its own, at most. */
  graceMs: number;
  /** Ends what the child may have left, after it has ended. */
  sweep?: () => Promise<void>;
}

const saidAtMost = 4096;

/** @throws the system's error when the process cannot be started. */
export async function startChild(options: ChildSide): Promise<Side> {
  const { command, args, env, firstLine, listening, data, graceMs } = options;
  const child = spawn(command, args, {
    env,
    cwd: "/",
    // In a process group of its own: a Ctrl-C at the terminal is for who runs the sweep to understand.
    detached: true,
    stdio: [
      "pipe",
      "ignore",
      "pipe",
      listening === undefined ? "ignore" : descriptorOf(listening),
      data === undefined ? "ignore" : "pipe",
    ],
  });
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-saidAtMost);
  });
  const closed = new Promise<SideEnd>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal, said }));
  });
  // A child that has ended takes no more input; its exit says why.
  child.stdin?.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  if (data !== undefined) {
    const to = child.stdio[4] as NodeJS.WritableStream;
    to.on("error", () => {});
    to.end(data);
  }
  child.stdin?.write(`${firstLine}\n`);
  let forced = false;
  const ended = closed.then(async (end) => {
    await options.sweep?.();
    return forced ? { code: null, signal: null, said } : { ...end, said };
  });
  return {
    ended,
    async end() {
      child.stdin?.end();
      const timer = setTimeout(() => {
        forced = child.kill("SIGKILL");
      }, graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

/**
 * A socket that listens on `path`, to be inherited by a child. It is released here once the child has it.
 *
 * Closing it here would take its path away; so it is made under another name, and moved.
 */
export async function listenFor<T>(path: string, give: (listening: Server) => Promise<T>): Promise<T> {
  const server = createServer();
  const before = `${path}-`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(before, resolve);
  });
  try {
    await rename(before, path);
    return await give(server);
  } finally {
    server.close();
  }
}

/** Node has no public name for a server's descriptor. @throws when a later Node has none at all. */
function descriptorOf(server: Server): number {
  const handle: unknown = Reflect.get(server, "_handle");
  const fd: unknown = typeof handle === "object" && handle !== null ? Reflect.get(handle, "fd") : undefined;
  if (typeof fd !== "number" || fd < 0) throw new Error(`Node ${process.version} does not tell a server's descriptor`);
  return fd;
}
