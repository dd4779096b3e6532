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

const prefix = "proctor-";
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
    const folder = await mkdtemp(join(tmpdir(), prefix));
    const owner = `${process.pid} ${startOf(process.pid) ?? ""}`;
    await writeFile(join(folder, ownerFile), owner);
    await removeLeftovers(tmpdir(), folder);
    if (work === undefined) return new LaunchSession(folder, folder);
    await mkdir(work, { recursive: true });
    const inWork = await mkdtemp(join(work, prefix));
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
    for (const made of [sockets, files]) await mkdir(made, { mode: 0o700, recursive: true });
    await Promise.all([gatewayFolder, folder.workspace, folder.home, folder.tmp].map((made) => mkdir(made)));
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
    if (!name.startsWith(prefix) || folder === own) continue;
    try {
      if ((await stat(folder)).uid !== uid) continue;
      const [pid, start] = readFileSync(join(folder, ownerFile), "utf8").split(" ");
      if (alive(Number(pid)) && (start ?? "") === (startOf(Number(pid)) ?? "")) continue;
      await removeWhole(folder);
    } catch {
      // No owner written: somebody else's, or one that is just being made.
    }
  }
}

function alive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
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
