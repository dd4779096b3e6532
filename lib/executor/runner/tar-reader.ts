/**
 * Reads a tar stream that an enemy may have written: ustar, GNU long names, PAX. It keeps nothing but one header in
 * memory, gives names as bytes, and never trusts a length. What to do with an entry is the collector's to say.
 */

export type TarEntryKind = "file" | "folder" | "link" | "device" | "fifo" | "sparse" | "other";

export interface TarEntry {
  kind: TarEntryKind;
  /** As it stood in the archive. */
  name: Buffer;
  bytes: number;
  /** Set when the entry's extended header was too large to be read: its name is not known whole. */
  oversizedHeader: boolean;
  /** The content; what is not read of it is passed over before the next entry. @throws TarError when the stream is cut */
  body: AsyncIterable<Buffer>;
}

/** The stream is no tar, or broke off. Everything up to here was whole. */
export class TarError extends Error {
  override readonly name = "TarError";
  constructor(
    readonly kind: "cut" | "corrupt" | "too_large",
    message: string,
  ) {
    super(message);
  }
}

const blockBytes = 512;
/** Bytes of an extended header (long name, PAX records) that are read; longer ones are passed over. */
export const maxExtendedHeaderBytes = 64 * 1024;
/** Extended headers in a row before one entry. */
const maxExtendedHeaders = 8;

/**
 * Gives the entries in order. It ends at the end-of-archive mark.
 * @param maxBytes of the whole stream
 * @throws TarError cut when the stream ends without that mark, corrupt for a block that is no header, too_large
 */
export async function* readTar(stream: AsyncIterable<Buffer>, maxBytes: number): AsyncIterable<TarEntry> {
  const source = new ByteSource(stream, maxBytes);
  let extended: Extended = noExtended();
  for (let headersInRow = 0; ; ) {
    const block = await source.read(blockBytes);
    if (isZero(block)) return;
    const header = parseHeader(block);
    const { size } = header;
    const padding = (blockBytes - (size % blockBytes)) % blockBytes;
    if (header.type === "x" || header.type === "g" || header.type === "L" || header.type === "K") {
      if (++headersInRow > maxExtendedHeaders) throw new TarError("corrupt", "too many extended headers in a row");
      if (size > maxExtendedHeaderBytes) {
        await source.pass(size + padding);
        if (header.type !== "K") extended.oversized = true;
        continue;
      }
      const content = await source.read(size);
      await source.pass(padding);
      // A global header would rename every entry after it; our turn server writes none, so nobody needs one.
      if (header.type === "x") readPax(content, extended);
      else if (header.type === "L") extended.name = untilZero(content);
      continue;
    }
    headersInRow = 0;
    const bytes = extended.size ?? size;
    const end = source.position + bytes + ((blockBytes - (bytes % blockBytes)) % blockBytes);
    const entry: TarEntry = {
      kind: extended.sparse ? "sparse" : kindOf(header.type),
      name: extended.name ?? header.name,
      bytes,
      oversizedHeader: extended.oversized,
      body: source.chunks(bytes),
    };
    extended = noExtended();
    yield entry;
    await source.pass(end - source.position);
  }
}

interface Extended {
  name: Buffer | null;
  size: number | null;
  sparse: boolean;
  oversized: boolean;
}
const noExtended = (): Extended => ({ name: null, size: null, sparse: false, oversized: false });

function kindOf(type: string): TarEntryKind {
  switch (type) {
    case "0":
    case "\0":
    case "7":
      return "file";
    case "5":
      return "folder";
    case "1":
    case "2":
      return "link";
    case "3":
    case "4":
      return "device";
    case "6":
      return "fifo";
    case "S":
      return "sparse";
    default:
      return "other";
  }
}

function parseHeader(block: Buffer): { type: string; name: Buffer; size: number } {
  const told = octal(block.subarray(148, 156));
  let unsigned = 8 * 32;
  let signed = 8 * 32;
  for (let at = 0; at < blockBytes; at++) {
    if (at >= 148 && at < 156) continue;
    const byte = block[at] as number;
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  if (told !== unsigned && told !== signed) throw new TarError("corrupt", "a header's checksum is wrong");
  const size = numeric(block.subarray(124, 136));
  if (size === null) throw new TarError("corrupt", "a header's size is no number");
  const name = untilZero(block.subarray(0, 100));
  const isUstar = block.subarray(257, 262).toString("latin1") === "ustar";
  const prefix = isUstar && block[262] === 0 ? untilZero(block.subarray(345, 500)) : Buffer.alloc(0);
  return {
    type: String.fromCharCode(block[156] as number),
    name: prefix.length > 0 ? Buffer.concat([prefix, Buffer.from("/"), name]) : name,
    size,
  };
}

function octal(field: Buffer): number | null {
  const text = field
    .toString("latin1")
    .replace(/[\0 ]+$/, "")
    .trimStart();
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : text === "" ? 0 : null;
}

/** Octal, or base-256 where the first bit is set. Null for what is negative or beyond the safe integers. */
function numeric(field: Buffer): number | null {
  const first = field[0] as number;
  let value: number | null;
  if (first & 0x80) {
    if (first & 0x40) return null;
    value = first & 0x3f;
    for (const byte of field.subarray(1)) value = value * 256 + byte;
  } else value = octal(field);
  return value !== null && Number.isSafeInteger(value) ? value : null;
}

/** Records are `<length> <key>=<value>\n`, the length counting all of it. Unknown keys mean nothing to us. */
function readPax(content: Buffer, into: Extended): void {
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(32, at);
    const digits = space < 0 ? "" : content.subarray(at, space).toString("latin1");
    const length = /^\d{1,6}$/.test(digits) ? Number(digits) : 0;
    if (length < 5 || at + length > content.length || content[at + length - 1] !== 10) {
      throw new TarError("corrupt", "a PAX header is malformed");
    }
    const record = content.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(61);
    const key = record.subarray(0, Math.max(0, equals)).toString("latin1");
    const value = record.subarray(equals + 1);
    if (key === "path") into.name = Buffer.from(value);
    else if (key === "size") {
      const text = value.toString("latin1");
      const size = /^\d{1,16}$/.test(text) ? Number(text) : null;
      if (size === null || !Number.isSafeInteger(size)) throw new TarError("corrupt", "a PAX size is no number");
      into.size = size;
    } else if (key.startsWith("GNU.sparse.")) into.sparse = true;
    at += length;
  }
}

function untilZero(bytes: Buffer): Buffer {
  const zero = bytes.indexOf(0);
  return Buffer.from(zero < 0 ? bytes : bytes.subarray(0, zero));
}

function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** A stream, read by counts. */
class ByteSource {
  position = 0;
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);
  #received = 0;

  constructor(
    stream: AsyncIterable<Buffer>,
    private readonly maxBytes: number,
  ) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Exactly so many bytes; only for counts that are known to be small. */
  async read(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.chunks(count)) parts.push(part);
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async pass(count: number): Promise<void> {
    for await (const _ of this.chunks(count)) {
      // Passed over.
    }
  }

  async *chunks(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#held.length === 0) await this.#more();
      const part = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(part.length);
      this.position += part.length;
      left -= part.length;
      yield part;
    }
  }

  async #more(): Promise<void> {
    let next: IteratorResult<Buffer>;
    try {
      next = await this.#chunks.next();
    } catch (error) {
      throw new TarError("cut", `the stream broke: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (next.done) throw new TarError("cut", "the stream ended before the archive did");
    this.#received += next.value.length;
    if (this.#received > this.maxBytes) throw new TarError("too_large", `more than ${this.maxBytes} bytes`);
    this.#held = next.value;
  }
}
