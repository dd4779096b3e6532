/** Bytes of unknown origin as text that a model, a terminal and JSON can take. */

const signatures: readonly { kind: string; bytes: readonly number[] }[] = [
  { kind: "PNG image", bytes: [0x89, 0x50, 0x4e, 0x47] },
  { kind: "JPEG image", bytes: [0xff, 0xd8, 0xff] },
  { kind: "GIF image", bytes: [0x47, 0x49, 0x46, 0x38] },
  { kind: "PDF document", bytes: [0x25, 0x50, 0x44, 0x46] },
  { kind: "ZIP archive or office document", bytes: [0x50, 0x4b, 0x03, 0x04] },
  { kind: "gzip archive", bytes: [0x1f, 0x8b] },
  { kind: "SQLite database", bytes: [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20, 0x66] },
  { kind: "ELF program", bytes: [0x7f, 0x45, 0x4c, 0x46] },
];

/** What a file is when it is no text, judged by its first bytes; null for text. A stray NUL or 0xFF does not make a text binary. */
export function binaryKind(head: Uint8Array): string | null {
  const known = signatures.find(({ bytes }) => bytes.every((byte, index) => head[index] === byte));
  if (known) return known.kind;
  const sample = head.subarray(0, 8192);
  if (sample.length === 0) return null;
  const text = new TextDecoder("utf-8").decode(sample);
  // The last character may be cut by the sample's end.
  let strange = 0;
  for (const character of text.slice(0, -1)) {
    const code = character.codePointAt(0)!;
    if (code === 0xfffd || (code < 32 && code !== 9 && code !== 10 && code !== 13 && code !== 27)) strange += 1;
  }
  return strange > Math.max(8, text.length / 10) ? "binary file" : null;
}

/** UTF-8 bytes as text, with U+FFFD for what is no UTF-8, made safe. */
export function decodeText(bytes: Uint8Array): string {
  return safeText(new TextDecoder("utf-8").decode(bytes));
}

/** Lone surrogates become U+FFFD and control characters their pictures (NUL becomes ␀); line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(/[\uD800-\uDFFF]/gu, "\uFFFD").replace(/[^\P{Cc}\t\n\r]/gu, pictureOf);
}

function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : "\uFFFD";
}

/** Each line at most `most` characters, what is left out counted. */
export function cutLines(text: string, most: number): string {
  return text
    .split("\n")
    .map((line) => (line.length <= most ? line : `${headOf(line, most)} … [${line.length - most} more characters]`))
    .join("\n");
}

/** A long text as its beginning and its end, with a marker that says how much is between. */
export function headAndTailText(text: string, each: number): string {
  if (text.length <= 2 * each) return text;
  const between = text.length - 2 * each;
  const tail = text.slice(-each).replace(/^[\uDC00-\uDFFF]/, "");
  return `${headOf(text, each)}\n… [${between} characters left out] …\n${tail}`;
}

/** The first characters, without half of a pair of surrogates at the end. */
function headOf(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}
