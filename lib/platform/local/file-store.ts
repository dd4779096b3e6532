/**
 * The object store on files of this machine, one file an object: `<root>/<bucket>/<path of key-paths.ts>`.
 *
 * An object is made by writing a file in `<root>/.new` and linking it to its name: link(2) fails where the name exists,
 * so of several creators one wins, and a reader finds a whole object or none, also after a `kill -9` at any moment.
 *
 * Nothing is flushed to the disk. What that can lose, in a crash of the machine and not of a process, is objects of the
 * last seconds, which may be missing or empty. A turn is believed by its manifest.json, written last, with length and
 * hash of every other file: evidence that was cut does not parse or does not match, counts as a turn that does not
 * exist, and is run again in a new try. Fifteen flushes an attempt would cost more than everything else we do.
 *
 * The guard is the access matrix. It keeps our own roles apart in this process; the sandbox keeps agents away from the
 * folder. Links that stand in the folder are not followed.
 */
import fs from "node:fs";
import { open as openFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { buckets, type ObjectName } from "../../firewall/keys.ts";
import { allows, type Verb } from "../../firewall/matrix.ts";
import { type Identity, type ObjectInfo, type ObjectStore, StoreError } from "../ports.ts";
import { decodeSegment, folderPath, isPiece, keySegments, objectPath } from "./key-paths.ts";
import { processAlive } from "./process-alive.ts";

/** Bodies up to this size are read and written at once: for small files that costs less than going through threads. */
const smallBytes = 256 * 1024;
/** Of a stream, so much is held while it is written. */
const gatheredBytes = 1024 * 1024;
const newFolder = ".new";
let counter = 0;

/**
 * The store below `root` as `identity` sees it. `root` is made when it is not there.
 * @throws StoreError unavailable when `root` is something else than a folder or can not be made
 */
export function openFileStore(root: string, identity: Identity): ObjectStore {
  try {
    for (const folder of [newFolder, ...buckets]) fs.mkdirSync(join(root, folder), { recursive: true, mode: 0o700 });
    return new FileStore(fs.realpathSync.native(root), identity);
  } catch (error) {
    throw storeError(error, `the object store in ${root} can not be opened`);
  }
}

/** Removes what creators that were killed left in `.new`; what a living process writes stays. */
export function removeLeftovers(root: string): void {
  for (const name of readFolder(join(root, newFolder)).map((entry) => entry.name)) {
    const pid = Number(/^(\d+)-/.exec(name)?.[1]);
    if (Number.isInteger(pid) && !processAlive(pid)) fs.rmSync(join(root, newFolder, name), { force: true });
  }
}

class FileStore implements ObjectStore {
  readonly #root: string;
  readonly #identity: Identity;

  constructor(root: string, identity: Identity) {
    this.#root = root;
    this.#identity = identity;
  }

  async get(name: ObjectName): Promise<Uint8Array> {
    const file = this.#open(name);
    try {
      const { size } = fs.fstatSync(file);
      if (size > smallBytes) {
        // The path can not change under us: objects are neither renamed nor written over.
        const whole = await openFile(this.#path(name), fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
        return await whole.readFile().finally(() => whole.close());
      }
      const body = Buffer.alloc(size);
      let read = 0;
      while (read < size) {
        const more = fs.readSync(file, body, read, size - read, read);
        if (more === 0) break;
        read += more;
      }
      return body.subarray(0, read);
    } catch (error) {
      throw storeError(error, `${shown(name)} can not be read`);
    } finally {
      fs.closeSync(file);
    }
  }

  async stream(name: ObjectName, range: { start: number; end?: number } = { start: 0 }): Promise<Readable> {
    const file = this.#open(name);
    if (range.end !== undefined && range.end <= range.start) {
      fs.closeSync(file);
      return Readable.from([]);
    }
    return fs.createReadStream("", {
      fd: file,
      start: range.start,
      ...(range.end === undefined ? {} : { end: range.end - 1 }),
    });
  }

  async create(name: ObjectName, body: Uint8Array | string | Readable): Promise<ObjectInfo> {
    const made = join(this.#root, newFolder, `${process.pid}-${process.hrtime.bigint().toString(36)}-${counter++}`);
    try {
      const segments = this.#admit("create", name);
      const path = join(this.#root, name.bucket, ...objectPath(segments));
      if (fs.existsSync(path)) throw exists(name);
      const bytes = body instanceof Readable ? await writeStream(made, body) : writeBody(made, body);
      this.#makeFolder(path);
      fs.linkSync(made, path);
      return { key: name.key, bytes };
    } catch (error) {
      if (body instanceof Readable) body.destroy();
      if (codeOf(error) === "EEXIST") throw exists(name);
      throw storeError(error, `${shown(name)} can not be written`);
    } finally {
      fs.rmSync(made, { force: true });
    }
  }

  async *list(prefix: ObjectName): AsyncIterable<ObjectInfo> {
    this.#allow("list", prefix);
    // The last part may be half a name, as in any object store: `turn-0` finds what is below `turn-01/`.
    const whole = prefix.key.slice(0, prefix.key.lastIndexOf("/") + 1);
    const folders = whole === "" ? [] : keySegments(whole.slice(0, -1));
    const rest = prefix.key.slice(whole.length);
    const path = join(this.#root, prefix.bucket, ...folderPath(folders));
    if (!this.#isInside(path)) return;
    yield* below(path, whole, rest);
  }

  /** The parts of a key that this identity may use so. @throws StoreError bad_key, access_denied */
  #admit(verb: Verb, name: ObjectName): string[] {
    const segments = keySegments(name.key);
    this.#allow(verb, name);
    return segments;
  }

  #allow(verb: Verb, name: ObjectName): void {
    if (allows(this.#identity, verb, name)) return;
    const { role } = this.#identity;
    throw new StoreError("access_denied", `the role ${role} may not ${verb} ${shown(name)}`);
  }

  #path(name: ObjectName): string {
    return join(this.#root, name.bucket, ...objectPath(keySegments(name.key)));
  }

  #open(name: ObjectName): number {
    this.#admit("get", name);
    const path = this.#path(name);
    // A pipe or device that somebody put there must not hold us: it is opened without waiting and refused.
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
    try {
      const file = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      if (fs.fstatSync(file).isFile() && this.#isInside(dirname(path))) return file;
      fs.closeSync(file);
    } catch (error) {
      if (!["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(codeOf(error) ?? "")) {
        throw storeError(error, `${shown(name)} can not be read`);
      }
    }
    throw new StoreError("not_found", `there is no object ${shown(name)}`);
  }

  #makeFolder(path: string): void {
    const folder = dirname(path);
    if (this.#isInside(folder)) return;
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!this.#isInside(folder)) throw new StoreError("unavailable", `${folder} leads out of the object store`);
  }

  /** True when the folder is there and no link leads to it. */
  #isInside(folder: string): boolean {
    try {
      return fs.realpathSync.native(folder) === folder;
    } catch {
      return false;
    }
  }
}

/** Writes a whole small or large body into a file that is not there yet; gives its length. */
function writeBody(path: string, body: Uint8Array | string): number {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const file = fs.openSync(path, "wx", 0o600);
  try {
    let written = 0;
    while (written < bytes.byteLength) written += fs.writeSync(file, bytes, written);
    return written;
  } finally {
    fs.closeSync(file);
  }
}

async function writeStream(path: string, body: Readable): Promise<number> {
  // A write for each chunk of a socket would wait for the one before; so they gather, and the source runs ahead.
  const out = fs.createWriteStream(path, { flags: "wx", mode: 0o600, highWaterMark: gatheredBytes });
  await pipeline(body, out);
  return out.bytesWritten;
}

interface Found {
  segment: string;
  of: "object" | "folder";
  path: string;
}

/** Objects below a folder in key order, folder by folder; `start` is what the first segment begins with. */
async function* below(folder: string, key: string, start: string): AsyncIterable<ObjectInfo> {
  const entries = entriesOf(folder, [])
    .filter((entry) => entry.segment.startsWith(start))
    .map((entry) => ({ ...entry, order: Buffer.from(entry.of === "folder" ? `${entry.segment}/` : entry.segment) }))
    .sort((a, b) => a.order.compare(b.order));
  for (const entry of entries) {
    if (entry.of === "folder") {
      yield* below(entry.path, `${key}${entry.segment}/`, "");
      continue;
    }
    const state = fs.lstatSync(entry.path, { throwIfNoEntry: false });
    if (state?.isFile()) yield { key: key + entry.segment, bytes: state.size };
  }
}

/** What stands in a folder, long names put together; strangers' files and links are passed over. */
function entriesOf(folder: string, chain: readonly string[]): Found[] {
  return readFolder(folder).flatMap((entry): Found[] => {
    const path = join(folder, entry.name);
    const names = [...chain, entry.name];
    if (entry.isDirectory() && isPiece(entry.name)) return entriesOf(path, names);
    const decoded = decodeSegment(names);
    if (!decoded) return [];
    const fits = decoded.of === "folder" ? entry.isDirectory() : entry.isFile();
    return fits ? [{ ...decoded, path }] : [];
  });
}

function readFolder(folder: string): fs.Dirent[] {
  try {
    return fs.readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw storeError(error, `${folder} can not be read`);
  }
}

const shown = (name: ObjectName): string => `${name.bucket}/${name.key.slice(0, 300)}`;

function exists(name: ObjectName): StoreError {
  return new StoreError("already_exists", `${shown(name)} exists already, and objects are written once`);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** A failure of the file system as the store says it; others (a source stream's own) pass unchanged. */
function storeError(error: unknown, what: string): unknown {
  const code = codeOf(error);
  if (error instanceof StoreError || code === undefined || (error as NodeJS.ErrnoException).syscall === undefined) {
    return error;
  }
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
    case "EFBIG":
      return new StoreError("no_space", `the disk is full (${code}), make room and run the same again: ${what}`, {
        cause: error,
      });
    case "ENAMETOOLONG":
      return new StoreError("bad_key", `${what}: its path is too long for this file system`, { cause: error });
    case "EPERM":
    case "ENOTSUP":
    case "EOPNOTSUPP":
      return new StoreError(
        "unavailable",
        `${what} (${code}): the folder's file system may have no hard links; choose another with --runs`,
        { cause: error },
      );
    default:
      return new StoreError("unavailable", `${what}: ${(error as Error).message}`, { cause: error });
  }
}
