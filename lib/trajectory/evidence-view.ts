/**
 * What a judging role may open, as one tree of paths: evidence by turn (`turn-01/results/a.txt`), the request, its
 * sources and, for the supervisor alone, hidden references. Everything is read through the role's own store, so the
 * access matrix holds here too. All of it is data of unknown origin: shown bounded, binary said to be binary.
 */
import { z } from "zod";
import {
  evidenceFileKey,
  evidenceFiles,
  type ObjectName,
  packagePrefix,
  type TryName,
  turnFolder,
} from "../firewall/keys.ts";
import { type ObjectStore, StoreError } from "../platform/ports.ts";
import { publishedFiles } from "../tasks/published.ts";
import { headAndTail, longTranscriptBytes, partsOf, pieceEnd } from "./chunking.ts";
import { type TrajectoryEvent, trajectoryEvent } from "./events.ts";
import { type EvidenceKind, type EvidenceManifest, evidenceManifest } from "./evidence-manifest.ts";
import { binaryKind, cutLines, decodeText, safeText } from "./plain-text.ts";

/** Bounds of one look. */
const viewLimits = {
  listed: 400,
  pageBytes: 30 * 1024,
  /** Largest transcript that is opened in parts. */
  wholeBytes: 64 * 1024 ** 2,
  searchedFileBytes: 8 * 1024 ** 2,
  searchedBytes: 48 * 1024 ** 2,
  matches: 40,
  lineCharacters: 6000,
  matchCharacters: 300,
} as const;

export type ViewReader = Pick<ObjectStore, "get" | "stream" | "list">;

export interface ViewFile {
  /** As the role names it. */
  path: string;
  bytes: number;
  kind: EvidenceKind | "request" | "source" | "reference";
  /** The turn whose evidence it is; null for what stands in the package. */
  turn: number | null;
  sha256: string | null;
  name: ObjectName;
}

export interface ViewScope {
  of: TryName;
  package: { task: string; digest: string };
  /** Turns 1 to this one. */
  turn: number;
  /** Kinds of evidence that are shown. */
  kinds: readonly EvidenceKind[];
  /** Hidden references too. */
  hidden: boolean;
}

/** Collects what there is. A turn without a manifest does not exist. @throws StoreError what the store refuses. */
export async function openView(reader: ViewReader, scope: ViewScope): Promise<EvidenceView> {
  const files: ViewFile[] = [];
  const manifests = new Map<number, EvidenceManifest>();
  for (let turn = 1; turn <= scope.turn; turn++) {
    const manifest = await readManifest(reader, scope.of, turn);
    if (!manifest) continue;
    manifests.set(turn, manifest);
    for (const file of manifest.files.filter(({ kind }) => scope.kinds.includes(kind))) {
      const path = `${turnFolder(turn)}/${file.path}`;
      const name = evidenceFileKey(scope.of, turn, file.path);
      files.push({ path, bytes: file.bytes, kind: file.kind, turn, sha256: file.sha256, name });
    }
  }
  const { task, digest } = scope.package;
  const agent = packagePrefix(task, digest, "agent");
  for await (const info of reader.list(agent)) {
    const path = info.key.slice(agent.key.length);
    const kind = path === publishedFiles.request ? "request" : "source";
    files.push({ path, bytes: info.bytes, kind, turn: null, sha256: null, name: { ...agent, key: info.key } });
  }
  if (scope.hidden) {
    const hidden = packagePrefix(task, digest, "hidden");
    for await (const info of reader.list({ ...hidden, key: hidden.key + publishedFiles.references })) {
      const path = info.key.slice(hidden.key.length);
      const name = { ...hidden, key: info.key };
      files.push({ path, bytes: info.bytes, kind: "reference", turn: null, sha256: null, name });
    }
  }
  return new EvidenceView(reader, files, manifests, scope.turn);
}

/** @returns null when the turn left none. */
export async function readManifest(reader: ViewReader, of: TryName, turn: number): Promise<EvidenceManifest | null> {
  const bytes = await getOrNull(reader, evidenceFileKey(of, turn, evidenceFiles.manifest));
  return bytes && evidenceManifest.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
}

/** An object's bytes, or null where there is none. */
export async function getOrNull(reader: Pick<ObjectStore, "get">, name: ObjectName): Promise<Uint8Array | null> {
  try {
    return await reader.get(name);
  } catch (error) {
    if (error instanceof StoreError && error.code === "not_found") return null;
    throw error;
  }
}

export const readArguments = z.strictObject({
  path: z.string(),
  /** Byte from which to show; pages are about 30 KB. */
  offset: z.number().int().nonnegative().nullish(),
  /** Part of a long transcript, from 1. */
  part: z.number().int().positive().nullish(),
});
export const listArguments = z.strictObject({ prefix: z.string().nullish() });
export const searchArguments = z.strictObject({ text: z.string().min(1).max(500), prefix: z.string().nullish() });

export class EvidenceView {
  readonly #reader: ViewReader;
  readonly #byPath: ReadonlyMap<string, ViewFile>;
  readonly #events = new Map<number, Promise<TrajectoryEvent[]>>();

  constructor(
    reader: ViewReader,
    readonly files: readonly ViewFile[],
    readonly manifests: ReadonlyMap<number, EvidenceManifest>,
    readonly turn: number,
  ) {
    this.#reader = reader;
    this.#byPath = new Map(files.map((file) => [file.path, file]));
  }

  /** One line a file: path in JSON (agents choose names), bytes, kind. */
  list(prefix = ""): string {
    const found = this.files.filter((file) => file.path.startsWith(prefix));
    if (found.length === 0) return `nothing below ${JSON.stringify(prefix)}`;
    const lines = found
      .slice(0, viewLimits.listed)
      .map((file) => `${JSON.stringify(safeText(file.path))}  ${file.bytes} bytes  ${file.kind}`);
    if (found.length > lines.length) lines.push(`… ${found.length - lines.length} more: list a longer prefix`);
    return lines.join("\n");
  }

  /**
   * A page of a text file. A transcript over 80 KB is shown as head and tail, with the number of its parts; `part` opens
   * one, `offset` shows from a byte on.
   */
  async read(ask: z.infer<typeof readArguments>): Promise<string> {
    const file = this.find(ask.path);
    if (!file) return `no file ${JSON.stringify(ask.path)} here; list shows what there is`;
    const head = await this.#range(file, 0, Math.min(file.bytes, 8192));
    const binary = binaryKind(head);
    if (binary) return `${binary}, ${file.bytes} bytes: not shown as text`;
    const long = isTranscript(file) && file.bytes > longTranscriptBytes;
    if (ask.part != null || (long && ask.offset == null)) return this.#transcript(file, ask.part ?? null);

    const offset = ask.offset ?? 0;
    if (offset >= file.bytes)
      return offset === 0 ? "[empty file]" : `[offset ${offset} is at or after the end, ${file.bytes} bytes]`;
    const page = await this.#range(file, offset, Math.min(file.bytes, offset + viewLimits.pageBytes + 4));
    const end =
      offset +
      (offset + page.length >= file.bytes && page.length <= viewLimits.pageBytes
        ? page.length
        : pieceEnd(page, 0, viewLimits.pageBytes));
    const text = cutWithOffsets(page.subarray(0, end - offset), offset);
    return end < file.bytes ? `${text}\n[bytes ${offset} to ${end} of ${file.bytes}; go on with offset ${end}]` : text;
  }

  /** Lines that hold a text, whatever its case, over all text files below a prefix. */
  async search(ask: z.infer<typeof searchArguments>): Promise<string> {
    const wanted = ask.text.toLowerCase();
    const lines: string[] = [];
    let left: number = viewLimits.searchedBytes;
    for (const file of this.files.filter((candidate) => candidate.path.startsWith(ask.prefix ?? ""))) {
      if (lines.length >= viewLimits.matches) break;
      if (left <= 0) {
        lines.push("… the search stopped here: give a longer prefix");
        break;
      }
      const bytes = await this.#range(file, 0, Math.min(file.bytes, viewLimits.searchedFileBytes, left));
      left -= bytes.length;
      if (binaryKind(bytes)) continue;
      decodeText(bytes)
        .split("\n")
        .forEach((line, index) => {
          const at = line.toLowerCase().indexOf(wanted);
          if (at < 0 || lines.length >= viewLimits.matches) return;
          const from = Math.max(0, at - viewLimits.matchCharacters / 2);
          const excerpt = line.slice(from, from + viewLimits.matchCharacters);
          lines.push(`${where(file, line, index + 1)}: ${from > 0 ? "…" : ""}${safeText(excerpt)}`);
        });
      if (file.bytes > bytes.length) lines.push(`… only the first ${bytes.length} bytes of ${file.path} were searched`);
    }
    if (lines.length === 0) return `nothing holds ${JSON.stringify(ask.text)}`;
    return lines.length >= viewLimits.matches
      ? `${lines.join("\n")}\n… at most ${viewLimits.matches} matches`
      : lines.join("\n");
  }

  /** The file of a path, also as an agent would write it (`/tmp_workspace/results/a.txt`, `results/a.txt`: this turn's). */
  find(path: string): ViewFile | null {
    const exact = this.#byPath.get(path);
    if (exact) return exact;
    const trimmed = path
      .trim()
      .replace(/^\.?\//, "")
      .replace(/^tmp_workspace\/clawbench\//, "")
      .replace(/^tmp_workspace\//, "");
    return this.#byPath.get(trimmed) ?? this.#byPath.get(`${turnFolder(this.turn)}/${trimmed}`) ?? null;
  }

  /**
   * A pointer to anything that can be opened, in its stored form: a path, or `turn-01/events.jsonl#12` for an event's
   * number. Null when there is no such thing.
   */
  async pointer(text: string): Promise<string | null> {
    const hash = text.lastIndexOf("#");
    if (hash < 0 || this.find(text)) return this.find(text)?.path ?? null;
    const file = this.find(text.slice(0, hash));
    const number = /^#(\d+)$/.exec(text.slice(hash))?.[1];
    if (!file || number === undefined || file.turn === null) return null;
    if (file.kind !== "events") return file.path;
    const events = await this.events(file.turn);
    return events.some((event) => event.seq === Number(number)) ? `${file.path}#${Number(number)}` : null;
  }

  /** Whether a stored pointer leads into what a turn left, and not to what the package brought. */
  isWork(pointer: string): boolean {
    return (this.#fileOf(pointer)?.turn ?? null) !== null;
  }

  /** A turn's events; lines that are none are left out. */
  events(turn: number): Promise<TrajectoryEvent[]> {
    const known = this.#events.get(turn);
    if (known) return known;
    const made = this.#readEvents(turn);
    this.#events.set(turn, made);
    return made;
  }

  /**
   * Whether a pointer names a result that this turn made, changed or took away, held against the turn before: what a new
   * deduction has to rest on.
   */
  isChangedArtifact(pointer: string): boolean {
    const file = this.#fileOf(pointer);
    if (!file || file.turn === null || file.kind !== "result") return false;
    const inTurn = (turn: number): ViewFile | undefined =>
      this.#byPath.get(turnFolder(turn) + file.path.slice(turnFolder(file.turn!).length));
    const before = [...this.manifests.keys()].filter((turn) => turn < this.turn).at(-1);
    if (before === undefined) return file.turn === this.turn;
    return inTurn(before)?.sha256 !== inTurn(this.turn)?.sha256;
  }

  #fileOf(pointer: string): ViewFile | undefined {
    return this.#byPath.get(pointer) ?? this.#byPath.get(pointer.replace(/#\d+$/, ""));
  }

  async #readEvents(turn: number): Promise<TrajectoryEvent[]> {
    const file = this.#byPath.get(`${turnFolder(turn)}/${evidenceFiles.events}`);
    if (!file) return [];
    const bytes = await this.#range(file, 0, Math.min(file.bytes, viewLimits.wholeBytes));
    return Buffer.from(bytes)
      .toString("utf8")
      .split("\n")
      .flatMap((line) => {
        const parsed = trajectoryEvent.safeParse(jsonOrNull(line));
        return parsed.success ? [parsed.data] : [];
      });
  }

  async #transcript(file: ViewFile, part: number | null): Promise<string> {
    if (file.bytes > viewLimits.wholeBytes)
      return `too long to be opened in parts (${file.bytes} bytes): read it by offset`;
    const bytes = await this.#range(file, 0, file.bytes);
    const parts = partsOf(bytes);
    if (part !== null) {
      const range = parts[part - 1];
      if (!range) return `there is no part ${part}: it has ${parts.length}`;
      const text = cutWithOffsets(bytes.subarray(range.start, range.end), range.start);
      return `[part ${part} of ${parts.length}, bytes ${range.start} to ${range.end} of ${file.bytes}]\n${text}`;
    }
    const ends = headAndTail(bytes);
    if (!ends) return decodeText(bytes);
    const show = ({ start, end }: { start: number; end: number }): string =>
      cutWithOffsets(bytes.subarray(start, end), start);
    return [
      show(ends.head).replace(/\n$/, ""),
      `[bytes ${ends.head.end} to ${ends.tail.start} of ${file.bytes} left out: open them as parts, part 1 to ${parts.length}]`,
      show(ends.tail),
    ].join("\n");
  }

  async #range(file: ViewFile, start: number, end: number): Promise<Uint8Array> {
    if (start >= end) return new Uint8Array();
    if (start === 0 && end >= file.bytes) return this.#reader.get(file.name);
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await this.#reader.stream(file.name, { start, end })) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

const transcripts: readonly ViewFile["kind"][] = ["transcript", "events", "raw-transcript", "model-calls"];
function isTranscript(file: ViewFile): boolean {
  return transcripts.includes(file.kind);
}

/** Very long lines are cut, each with the offset at which its rest can be read. */
function cutWithOffsets(bytes: Uint8Array, start: number): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const found = bytes.indexOf(0x0a, at);
    const end = found < 0 ? bytes.length : found;
    const line = bytes.subarray(at, end);
    if (line.length <= viewLimits.lineCharacters) {
      lines.push(decodeText(line));
    } else {
      const cut = pieceEnd(line, 0, viewLimits.lineCharacters);
      lines.push(
        `${decodeText(line.subarray(0, cut))} … [${line.length - cut} more bytes of this line: offset ${start + at + cut}]`,
      );
    }
    at = end + 1;
    if (found >= 0 && at >= bytes.length) lines.push("");
  }
  return lines.join("\n");
}

/** `path:line`, or the event's number where it is an event. */
function where(file: ViewFile, line: string, number: number): string {
  const seq = file.kind === "events" ? /"seq":\s*(\d+)/.exec(line)?.[1] : undefined;
  return seq === undefined ? `${cutLines(safeText(file.path), 300)}:${number}` : `${file.path}#${seq}`;
}

function jsonOrNull(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
