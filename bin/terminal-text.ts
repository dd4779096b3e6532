/** Text for a terminal: what came from files, packages and models may hold signs that a terminal obeys. */

/** Control signs but line feed and tab, and signs that turn the direction of writing. */
const obeyed = /(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;

/** The same text with such signs written out, `\u001b` say. */
export function harmless(text: string): string {
  return text.replace(obeyed, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A message for the user while a command works: on standard error, so that standard output keeps the result. */
export function tell(text: string): void {
  process.stderr.write(harmless(text));
}
