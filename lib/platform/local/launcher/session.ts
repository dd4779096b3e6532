/**
 * Folders of a launcher: one for its session, with one for each executor that runs. Names are random and say nothing;
 * they are short, because a Unix socket's path may have about 100 bytes; nobody else may enter (0700).
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { processAlive } from "../process-alive.ts";

export interface ExecutorFolder {
  /** Random name of the executor's folder. */
  name: string;
  /** Where the turn server listens. The agent's side gets the open socket, not this path. */
  turnSocket: string;
  /** Folder that holds the gateway's socket and nothing else: the agent's side sees it, read-only. */
  gatewayFolder: string;
  gatewaySocket: string;
  /** The agent's files. */
  workspace: string;
  home: string;
  tmp: string;
  remove(): Promise<void>;
}

/**
 * How the name of a temporary folder of this process begins. It has the process's number, so that a folder whose process
 * was killed before it wrote anything there is known as a leftover too; the next session removes it.
 */
export const ownPrefix = `proctor-${process.pid}-`;
const named = /^proctor-(\d+)-/;
const ownerFile = "owner";

export class LaunchSession {
  /** Session folder, for sockets. */
  readonly folder: string;
  readonly #work: string;

  private constructor(folder: string, work: string) {
    this.folder = folder;
    this.#work = work;
  }

  /** Opens a session, and removes what sessions left whose process is gone. `work`: folder for agents' files. */
  static async open(work?: string): Promise<LaunchSession> {
    const folder = await mkdtemp(join(tmpdir(), ownPrefix));
    const owner = `${process.pid} ${startOf(process.pid) ?? ""}`;
    await writeFile(join(folder, ownerFile), owner);
    await removeLeftovers(tmpdir(), folder);
    if (work === undefined) return new LaunchSession(folder, folder);
    await mkdir(work, { recursive: true });
    const inWork = await mkdtemp(join(work, ownPrefix));
    await writeFile(join(inWork, ownerFile), owner);
    await removeLeftovers(work, inWork);
    return new LaunchSession(folder, inWork);
  }

  async executor(): Promise<ExecutorFolder> {
    const name = randomBytes(6).toString("hex");
    const sockets = join(this.folder, name);
    const files = join(this.#work, name);
    const gatewayFolder = join(sockets, "g");
    const folder = {
      name,
      turnSocket: join(sockets, "t"),
      gatewayFolder,
      gatewaySocket: join(gatewayFolder, "s"),
      workspace: join(files, "tmp_workspace"),
      home: join(files, "root"),
      tmp: join(files, "tmp"),
      remove: async () => {
        await removeWhole(sockets);
        if (files !== sockets) await removeWhole(files);
      },
    };
    try {
      for (const made of [sockets, files]) await mkdir(made, { mode: 0o700, recursive: true });
      for (const made of [gatewayFolder, folder.workspace, folder.home, folder.tmp]) await mkdir(made);
    } catch (error) {
      // A full disk: what was made is in nobody's hands.
      await folder.remove();
      throw error;
    }
    return folder;
  }

  async close(): Promise<void> {
    await removeWhole(this.folder);
    if (this.#work !== this.folder) await removeWhole(this.#work);
  }
}

const run = promisify(execFile);

/** Removes a folder with whatever an agent made in it: closed folders, very deep ones. */
async function removeWhole(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await run("chmod", ["-R", "u+rwx", folder]).catch(() => {});
    await run("rm", ["-rf", "--", folder]).catch(() => {});
  }
}

async function removeLeftovers(parent: string, own: string): Promise<void> {
  const uid = process.getuid?.();
  for (const name of await readdir(parent)) {
    const folder = join(parent, name);
    const pid = Number(named.exec(name)?.[1]);
    if (Number.isNaN(pid) || folder === own) continue;
    try {
      if ((await stat(folder)).uid !== uid || (alive(pid) && isOwner(pid, folder))) continue;
      await removeWhole(folder);
    } catch {
      // Another session has just removed it.
    }
  }
}

/** Whether the process that has this number now is the one that made the folder. */
function isOwner(pid: number, folder: string): boolean {
  try {
    const start = readFileSync(join(folder, ownerFile), "utf8").split(" ")[1] ?? "";
    return start === (startOf(pid) ?? "");
  } catch {
    // No owner written: one that is just being made, or that says nothing else.
    return true;
  }
}

function alive(pid: number): boolean {
  return !Number.isInteger(pid) || pid <= 0 || processAlive(pid);
}

/** When a process started, in the kernel's ticks: a process id may be another's by now. Null where there is no /proc. */
function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
