/**
 * An agent's output as text in pieces: whatever bytes it writes, each piece is sound Unicode and short enough that a
 * line of NDJSON with it stays below the protocol's bound, also where every character is escaped.
 */
const pieceLength = 10_000;

export class OutputText {
  /** What is no UTF-8 becomes U+FFFD; a character cut by the end of a chunk waits for its rest. */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  push(chunk: Uint8Array | string): string[] {
    return pieces(this.#decoder.decode(typeof chunk === "string" ? Buffer.from(chunk) : chunk, { stream: true }));
  }

  /** The rest, when the output has ended. */
  end(): string[] {
    return pieces(this.#decoder.decode());
  }
}

function pieces(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  while (from < text.length) {
    let to = Math.min(text.length, from + pieceLength);
    // A surrogate pair stays together.
    if (to < text.length && (text.charCodeAt(to) & 0xfc00) === 0xdc00) to--;
    found.push(text.slice(from, to));
    from = to;
  }
  return found;
}
