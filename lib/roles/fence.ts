/**
 * Fences around what a model is to read as data. The fence's mark is a hash over the very text that it encloses, so no
 * text can hold its own closing mark: writing the mark into the text would change it.
 */
import { sha256Hex } from "../tasks/canonical.ts";
import { safeText } from "../trajectory/plain-text.ts";

/** `label` says what it is; both are made safe for JSON and terminals. */
export function fenced(label: string, text: string): string {
  const body = safeText(text);
  const mark = sha256Hex(`${label}\n${body}`).slice(0, 20);
  return `<<<DATA ${mark} ${safeText(label).replace(/[\r\n]+/g, " ")}\n${body}\nDATA ${mark}>>>`;
}
