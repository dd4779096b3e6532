/**
 * Takes what an agent left (the tar of GET /results) into evidence, file by file, as a stream. Nothing is unpacked to a
 * disk: a name is data, a key in the store at most. What can not be taken is named with its reason; links are never
 * followed, and nothing that an archive says can make this hold more than one small file in memory.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { evidenceFileKey, type TryName } from "../../firewall/keys.ts";
import { type ObjectStore, StoreError } from "../../platform/ports.ts";
import type { EvidenceFile, SkippedFile } from "../../trajectory/evidence-manifest.ts";
import { type CollectLimits, collectLimits, resultsEnd, resultsEndName } from "../turn-protocol.ts";
import { readTar, type TarEntry, TarError } from "./tar-reader.ts";

export interface Collected {
  files: EvidenceFile[];
  skipped: SkippedFile[];
  /** Contents of transcript/**, by the name below it: the latest that came whole. */
  transcripts: Map<string, Buffer>;
  /** Null when the archive came whole, with its last entry; else what was wrong, and whether asking again may help. */
  cut: { reason: string; again: boolean } | null;
}

export interface CollectorOptions {
  objects: ObjectStore;
  try: TryName;
  turn: number;
  limits?: Partial<CollectLimits>;
}

/** Longest list of skipped files that a manifest keeps; the rest is a count. */
const maxSkipped = 1000;
const maxKeyBytes = 1024;
const maxEndBytes = 4 * 1024 ** 2;
/** Files up to this size are taken whole: one write instead of a stream. */
const smallFileBytes = 256 * 1024;

/**
 * A collector keeps what it took: `take` may be called again after a stream was cut, and goes on with what is missing.
 * @throws StoreError when the store fails (no space, unavailable): that is never the agent's doing
 */
export class Collector {
  readonly #options: CollectorOptions;
  readonly #limits: CollectLimits;
  readonly #files = new Map<string, EvidenceFile>();
  readonly #transcripts = new Map<string, Buffer>();
  #skipped: SkippedFile[] = [];
  #skippedMore = 0;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#limits = { ...collectLimits, ...options.limits };
  }

  async take(stream: AsyncIterable<Buffer>): Promise<Collected> {
    this.#skipped = [];
    this.#skippedMore = 0;
    let cut: Collected["cut"] = { reason: `the archive has no ${resultsEndName}`, again: true };
    const seen = new Seen();
    const results = new Share(this.#limits.files, this.#limits.bytes);
    const transcript = new Share(this.#limits.transcriptFiles, this.#limits.transcriptBytes);
    // Headers, padding and skipped contents count too: an archive without an end comes to one.
    const archiveBytes = this.#limits.bytes + this.#limits.transcriptBytes + 64 * 1024 ** 2;
    try {
      for await (const entry of readTar(stream, archiveBytes)) {
        const name = readableName(entry.name);
        if (name === resultsEndName && entry.kind === "file") {
          const problem = await this.#takeEnd(entry);
          cut = problem === null ? null : { reason: problem, again: true };
          break;
        }
        const reason = entryProblem(entry, name, this.#limits);
        if (reason !== null) {
          if (reason !== "folder") this.#skip(name, reason);
          continue;
        }
        const clash = seen.add(name);
        if (clash !== null) {
          this.#skip(name, clash);
          continue;
        }
        const isTranscript = name.startsWith("transcript/");
        const excess = (isTranscript ? transcript : results).take(entry.bytes);
        if (excess !== null) this.#skip(name, excess);
        else if (isTranscript) this.#transcripts.set(name.slice("transcript/".length), await wholeBody(entry));
        else await this.#takeResult(entry, name);
      }
    } catch (error) {
      if (!(error instanceof TarError)) throw error;
      cut = { reason: error.message, again: error.kind !== "too_large" };
    }
    if (this.#skippedMore > 0) this.#skipped.push({ path: "", reason: `and ${this.#skippedMore} more` });
    return {
      files: [...this.#files.values()],
      skipped: this.#skipped,
      transcripts: new Map(this.#transcripts),
      cut,
    };
  }

  async #takeResult(entry: TarEntry, path: string): Promise<void> {
    // Taken by an earlier call: evidence is written once.
    if (this.#files.has(path)) return;
    const key = evidenceFileKey(this.#options.try, this.#options.turn, path);
    if (Buffer.byteLength(key.key) > maxKeyBytes)
      return this.#skip(path, `a name that gives a key of more than ${maxKeyBytes} bytes`);
    const hash = createHash("sha256");
    try {
      if (entry.bytes <= smallFileBytes) {
        const body = await wholeBody(entry);
        hash.update(body);
        await this.#options.objects.create(key, body);
      } else {
        const tarFault: { error: unknown } = { error: null };
        const body = Readable.from(hashed(entry.body, hash, tarFault), { objectMode: false });
        await this.#options.objects.create(key, body).catch((error: unknown) => {
          // A stream that was cut reaches us as the store's failure to read it.
          throw tarFault.error ?? error;
        });
      }
    } catch (error) {
      if (error instanceof StoreError && error.code === "bad_key")
        return this.#skip(path, "a name that can not be stored");
      throw error;
    }
    this.#files.set(path, { path, bytes: entry.bytes, sha256: hash.digest("hex"), kind: "result" });
  }

  async #takeEnd(entry: TarEntry): Promise<string | null> {
    if (entry.bytes > maxEndBytes) return `${resultsEndName} is larger than ${maxEndBytes} bytes`;
    let end: ReturnType<typeof resultsEnd.safeParse>;
    try {
      end = resultsEnd.safeParse(JSON.parse((await wholeBody(entry)).toString("utf8")));
    } catch (error) {
      if (error instanceof TarError) throw error;
      return `${resultsEndName} is not JSON`;
    }
    if (!end.success) return `${resultsEndName} is not what it should be`;
    for (const { path, reason } of end.data.skipped) this.#skip(path, reason);
    return null;
  }

  #skip(path: string, reason: string): void {
    if (this.#skipped.length >= maxSkipped) this.#skippedMore++;
    else this.#skipped.push({ path: shortened(path), reason: shortened(reason) });
  }
}

/** Why an entry is not taken; "folder" for folders, which are no loss; null when it is. */
function entryProblem(entry: TarEntry, name: string, limits: CollectLimits): string | null {
  if (entry.oversizedHeader) return "an extended header that is too large";
  switch (entry.kind) {
    case "folder":
      return "folder";
    case "link":
    case "device":
    case "fifo":
    case "sparse":
      return `a ${entry.kind}${entry.kind === "sparse" ? " file" : ""} is not collected`;
    case "other":
      return "an entry of unknown type";
    case "file":
      break;
  }
  if (entry.name.length > limits.nameBytes) return `a name of more than ${limits.nameBytes} bytes`;
  if (!Buffer.from(entry.name.toString("utf8")).equals(entry.name)) return "a name that is not UTF-8";
  if (name.startsWith("/")) return "an absolute name";
  if (name.includes("\0")) return "a name with NUL";
  const segments = name.split("/");
  if (segments.some((segment) => segment === "..")) return "a name that leads outside";
  if (segments.some((segment) => segment === "" || segment === ".")) return "a name with empty parts";
  if (segments.length > limits.depth) return `deeper than ${limits.depth} folders`;
  if (segments.length < 2 || (segments[0] !== "results" && segments[0] !== "transcript")) return "an unexpected place";
  if (entry.bytes > limits.fileBytes) return `larger than ${limits.fileBytes} bytes`;
  return null;
}

/** What one kind of files may have in one archive: what results use up is not taken from the transcript. */
class Share {
  #files = 0;
  #bytes = 0;

  constructor(
    private readonly maxFiles: number,
    private readonly maxBytes: number,
  ) {}

  /** @returns why a file can not be taken, or null when it now is */
  take(bytes: number): string | null {
    if (this.#files >= this.maxFiles) return `more than ${this.maxFiles} files`;
    if (this.#bytes + bytes > this.maxBytes) return `more than ${this.maxBytes} bytes in all`;
    this.#files++;
    this.#bytes += bytes;
    return null;
  }
}

/** Names that were taken: none twice, and none that is a folder of another. */
class Seen {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** @returns why the name can not be taken, or null when it now is */
  add(name: string): string | null {
    if (this.#files.has(name)) return "a name that was there before";
    if (this.#folders.has(name)) return "a file under the name of a folder";
    const folders: string[] = [];
    for (let slash = name.indexOf("/"); slash > 0; slash = name.indexOf("/", slash + 1)) {
      const folder = name.slice(0, slash);
      if (this.#files.has(folder)) return "a folder under the name of a file";
      folders.push(folder);
    }
    this.#files.add(name);
    for (const folder of folders) this.#folders.add(folder);
    return null;
  }
}

async function wholeBody(entry: TarEntry): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of entry.body) parts.push(part);
  return Buffer.concat(parts);
}

async function* hashed(
  body: AsyncIterable<Buffer>,
  hash: { update(data: Buffer): unknown },
  fault: { error: unknown },
): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      // What a writer throws in at `yield` is the writer's fault, not the archive's.
      const next = await chunks.next().catch((error: unknown) => {
        fault.error = error;
        throw error;
      });
      if (next.done) return;
      hash.update(next.value);
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

function readableName(name: Buffer): string {
  const text = name.toString("utf8");
  return text.startsWith("./") ? text.slice(2) : text;
}

function shortened(text: string): string {
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
