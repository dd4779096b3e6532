/**
 * Long transcripts in pieces. Over 80 KB one is shown as its head and tail of 30 KB, with a marker between, and opened in
 * parts of at most 80 KB. Pieces are cut at line ends; a line that is longer than a piece is cut between characters.
 */

export const longTranscriptBytes = 80 * 1024;
const headTailBytes = 30 * 1024;
const partBytes = 80 * 1024;

const newline = 0x0a;

export interface ByteRange {
  start: number;
  /** First byte after it. */
  end: number;
}

/** Parts that together are the whole: each ends after a line end, or inside a line that is longer than a part. */
export function partsOf(bytes: Uint8Array, most: number = partBytes): ByteRange[] {
  const parts: ByteRange[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = pieceEnd(bytes, start, most);
    parts.push({ start, end });
    start = end;
  }
  return parts;
}

/** Head and tail at line ends; null when the whole is short enough to be shown. */
export function headAndTail(bytes: Uint8Array): { head: ByteRange; tail: ByteRange } | null {
  if (bytes.length <= longTranscriptBytes) return null;
  const head = { start: 0, end: pieceEnd(bytes, 0, headTailBytes) };
  const earliest = bytes.length - headTailBytes;
  const lineStart = bytes.indexOf(newline, earliest - 1) + 1;
  const start = lineStart > 0 && lineStart < bytes.length ? lineStart : characterStart(bytes, earliest);
  return { head, tail: { start, end: bytes.length } };
}

/** Where a piece of at most `most` bytes from `start` ends: after the last line end in it, else between characters. */
export function pieceEnd(bytes: Uint8Array, start: number, most: number): number {
  const limit = start + most;
  if (limit >= bytes.length) return bytes.length;
  const lastBreak = bytes.lastIndexOf(newline, limit - 1);
  if (lastBreak >= start) return lastBreak + 1;
  const end = characterEnd(bytes, limit);
  return end > start ? end : limit;
}

/** `at`, moved back to where a UTF-8 character begins. */
function characterEnd(bytes: Uint8Array, at: number): number {
  let end = at;
  for (let step = 0; step < 3 && end > 0 && isContinuation(bytes[end]); step++) end -= 1;
  return isContinuation(bytes[end]) ? at : end;
}

/** `at`, moved on to where a UTF-8 character begins. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  for (let step = 0; step < 3 && isContinuation(bytes[start]); step++) start += 1;
  return isContinuation(bytes[start]) ? at : start;
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
