/**
 * GET /results: what the agent left, as a tar whose last entry says that it is whole. Names are data; no link is
 * followed; only plain files are read; what is left out is named with its reason. The transcript comes first and within
 * limits of its own: however much an agent leaves in its results, what it said is not lost.
 */

import { closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, readSync, type Stats } from "node:fs";
import type { Readable } from "node:stream";
import { type Pack, pack } from "tar-stream";
import { type CollectLimits, type ResultsEnd, resultsEndName } from "../turn-protocol.ts";

export interface ResultsRoot {
  /** Name in the tar. */
  name: string;
  /** File or folder; one that is not there gives nothing. */
  path: string;
}

type Limits = Pick<CollectLimits, "files" | "bytes" | "fileBytes" | "depth" | "nameBytes">;
type AllLimits = Limits & Pick<CollectLimits, "transcriptFiles" | "transcriptBytes">;

const skippedAtMost = 1000;
const chunkBytes = 256 * 1024;

export function packResults(
  { transcripts, results }: { transcripts: ResultsRoot[]; results: ResultsRoot[] },
  limits: AllLimits,
): Readable {
  const tar = pack();
  const said = new Packing(tar, { ...limits, files: limits.transcriptFiles, bytes: limits.transcriptBytes });
  const made = new Packing(tar, limits);
  (async () => {
    for (const root of transcripts) await said.add(Buffer.from(root.path), Buffer.from(root.name), 0);
    for (const root of results) await made.add(Buffer.from(root.path), Buffer.from(root.name), 0);
    const end = Buffer.from(JSON.stringify(together(said.end(), made.end())));
    await made.write({ name: resultsEndName, size: end.length }, [end]);
    tar.finalize();
  })().catch((error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))));
  return tar as unknown as Readable;
}

function together(one: ResultsEnd, other: ResultsEnd): ResultsEnd {
  return {
    v: 1,
    files: one.files + other.files,
    bytes: one.bytes + other.bytes,
    skipped: [...one.skipped, ...other.skipped],
  };
}

/** Files of one kind, counted against one set of limits. */
class Packing {
  readonly #tar: Pack;
  readonly #limits: Limits;
  readonly #skipped: ResultsEnd["skipped"] = [];
  #unnamed = 0;
  #files = 0;
  #bytes = 0;
  #looked = 0;

  constructor(tar: Pack, limits: Limits) {
    this.#tar = tar;
    this.#limits = limits;
  }

  end(): ResultsEnd {
    const skipped = [...this.#skipped];
    if (this.#unnamed > 0) skipped.push({ path: "…", reason: `${this.#unnamed} more were left out` });
    return { v: 1, files: this.#files, bytes: this.#bytes, skipped };
  }

  /** Adds a file, or all files of a folder in the order of their names. */
  async add(path: Buffer, name: Buffer, depth: number): Promise<void> {
    let stat: Stats;
    try {
      stat = lstatSync(path);
    } catch {
      if (depth > 0) this.#skip(name, "it went away before it was read");
      return;
    }
    if (stat.isDirectory()) return this.#addFolder(path, name, depth);
    const reason = this.#refusal(stat, name);
    if (reason !== null) return this.#skip(name, reason);
    await this.#addFile(path, name);
  }

  #refusal(stat: Stats, name: Buffer): string | null {
    if (stat.isSymbolicLink()) return "a symbolic link";
    if (stat.isFIFO()) return "a FIFO";
    if (stat.isSocket()) return "a socket";
    if (!stat.isFile()) return "a device";
    if (!Buffer.from(name.toString("utf8")).equals(name)) return "its name is not UTF-8";
    if (name.length > this.#limits.nameBytes) return `its name has more than ${this.#limits.nameBytes} bytes`;
    if (stat.size > this.#limits.fileBytes) return `${stat.size} bytes, more than ${this.#limits.fileBytes}`;
    if (this.#files >= this.#limits.files) return `more than ${this.#limits.files} files`;
    if (this.#bytes + stat.size > this.#limits.bytes) return `more than ${this.#limits.bytes} bytes in all`;
    return null;
  }

  async #addFolder(path: Buffer, name: Buffer, depth: number): Promise<void> {
    if (depth >= this.#limits.depth) return this.#skip(name, `deeper than ${this.#limits.depth} folders`);
    const inside: Buffer[] = [];
    try {
      // latin1 keeps each byte of a name that is not UTF-8.
      const folder = opendirSync(path, { encoding: "latin1", bufferSize: 256 });
      try {
        for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
          // Files and what is passed over count: a folder without end is not read to its end.
          if (++this.#looked > 2 * this.#limits.files + skippedAtMost) {
            this.#skip(name, "too many entries; the rest of this folder was not looked at");
            break;
          }
          inside.push(Buffer.from(entry.name, "latin1"));
        }
      } finally {
        folder.closeSync();
      }
    } catch (error) {
      this.#skip(name, `the folder cannot be read (${codeOf(error)})`);
    }
    inside.sort(Buffer.compare);
    const slash = Buffer.from("/");
    for (const entry of inside) {
      await this.add(Buffer.concat([path, slash, entry]), Buffer.concat([name, slash, entry]), depth + 1);
    }
  }

  async #addFile(path: Buffer, name: Buffer): Promise<void> {
    let file: number;
    try {
      // It may have become a link or a FIFO since it was looked at: neither is followed, neither blocks.
      file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      return this.#skip(name, `it cannot be read (${codeOf(error)})`);
    }
    try {
      const stat = fstatSync(file);
      const reason = this.#refusal(stat, name);
      if (reason !== null) return this.#skip(name, reason);
      let missing = 0;
      const contents = function* (): Generator<Buffer> {
        for (let at = 0; at < stat.size; ) {
          const chunk = Buffer.alloc(Math.min(chunkBytes, stat.size - at));
          let read = 0;
          try {
            read = missing > 0 ? 0 : readSync(file, chunk, 0, chunk.length, at);
          } catch {
            // Taken like an end: the header has promised a size.
          }
          if (read === 0) missing += chunk.length;
          yield read === 0 ? chunk : chunk.subarray(0, read);
          at += read === 0 ? chunk.length : read;
        }
      };
      await this.write(
        {
          name: name.toString("utf8"),
          size: stat.size,
          mode: stat.mode & 0o777,
          mtime: new Date(Math.max(0, Math.trunc(stat.mtimeMs))),
        },
        contents(),
      );
      this.#files += 1;
      this.#bytes += stat.size;
      const after = fstatSync(file);
      if (missing > 0) this.#skip(name, `it shrank while it was read: its last ${missing} bytes are filled with zeros`);
      else if (after.size > stat.size) this.#skip(name, `it grew while it was read: cut at ${stat.size} bytes`);
      else if (after.mtimeMs !== stat.mtimeMs) this.#skip(name, "it changed while it was read");
    } finally {
      closeSync(file);
    }
  }

  /** One entry; waits while the reader is slow. */
  async write(
    header: { name: string; size: number; mode?: number; mtime?: Date },
    contents: Iterable<Buffer>,
  ): Promise<void> {
    let finish: (error?: Error | null) => void = () => {};
    const written = new Promise<void>((resolve, reject) => {
      finish = (error) => (error ? reject(error) : resolve());
    });
    const entry = this.#tar.entry({ type: "file", ...header }, (error) => finish(error));
    // A reader that went away ends the tar and with it this entry, whose callback says so.
    entry.on("error", () => {});
    for (const chunk of contents) {
      if (!entry.write(chunk))
        await Promise.race([new Promise<void>((resolve) => entry.once("drain", () => resolve())), written]);
    }
    entry.end(undefined);
    await written;
  }

  #skip(name: Buffer, reason: string): void {
    if (this.#skipped.length < skippedAtMost) this.#skipped.push({ path: name.toString("utf8").slice(0, 800), reason });
    else this.#unnamed += 1;
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);
