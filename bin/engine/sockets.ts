/** Where this machine's Unix sockets stand: a short path, the same each time, that nobody else can enter. */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { CommandError } from "../command.ts";

/** Longest path of a Unix socket that every system takes, in bytes. */
const longestPath = 95;

export interface SweepSockets {
  /** Takes answers to turn tokens. */
  tokens: string;
  /** Serves scripted models. */
  models: string;
}

/**
 * The sockets of one sweep in one folder of runs. The names are made from both, so that a line of a manifest is the same
 * after a restart, and a process that was killed leaves nothing that its successor does not use again.
 * @throws CommandError when the folder belongs to somebody else
 */
export function sweepSockets(runsFolder: string, sweep: string): SweepSockets {
  const user = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `proctor-${user}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== user || (found.mode & 0o077) !== 0) {
    throw new CommandError(3, `${folder} is not a folder of yours alone; remove it, or set TMPDIR to another place`);
  }
  const name = createHash("sha256")
    .update(`${realPath(runsFolder)}\0${sweep}`)
    .digest("hex")
    .slice(0, 16);
  const sockets = { tokens: join(folder, `${name}.tokens`), models: join(folder, `${name}.models`) };
  if (Buffer.byteLength(sockets.tokens) > longestPath) {
    throw new CommandError(3, `${folder} is too long a path for sockets; set TMPDIR to a shorter one`);
  }
  return sockets;
}

/** Removes sockets beside these on which nobody listens: their process was killed, and its sweep may never be run again. */
export async function removeDeadSockets(beside: SweepSockets): Promise<void> {
  const folder = dirname(beside.tokens);
  const others = readdirSync(folder)
    .filter((name) => /\.(tokens|models)(\.\d+)?$/.test(name))
    .map((name) => join(folder, name))
    .filter((path) => path !== beside.tokens && path !== beside.models);
  await Promise.all(
    others.map(async (path) => {
      if (await isRefused(path)) rmSync(path, { force: true });
    }),
  );
}

function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(false);
    });
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}

/** The same path for the same folder, before it is made too, and whatever links lead to it. */
function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync.native(absolute);
  } catch {
    const above = dirname(absolute);
    return above === absolute ? absolute : join(realPath(above), basename(absolute));
  }
}
