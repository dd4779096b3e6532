/** The cause of a fault for people: what a state machine hands on is a function's error as JSON, cut off somewhere. */

/** The error's message in place of the JSON object that holds it, as Lambda and the interpreter write it. */
export function readableCause(cause: string): string {
  const start = cause.indexOf("{");
  if (start < 0) return cause;
  const message = /"errorMessage"\s*:\s*"((?:[^"\\]|\\.)*)/.exec(cause.slice(start))?.[1];
  if (message === undefined) return cause;
  return `${cause.slice(0, start)}${unescaped(message)}`;
}

function unescaped(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    // Cut within an escape.
    return text.replace(/\\[^\\]*$/, "");
  }
}
