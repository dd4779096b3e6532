/** JSONata expressions of checks: what is refused when a file is loaded, and how one is evaluated. */
import jsonata from "jsonata";
import { nearest } from "../../tasks/problem.ts";
import { expressionFunctions } from "./expression-functions.ts";

/** They give another answer at another time, or run what evidence holds as code. */
const refusedNames = ["eval", "now", "millis", "random", "shuffle"];
const builtIn = (
  "sum count max min average string substring substringBefore substringAfter lowercase uppercase length trim pad match " +
  "contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs sqrt power " +
  "boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error assert type " +
  "sort distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl toMillis " +
  "fromMillis clone"
).split(" ");

/**
 * What is wrong with an expression over these files: its syntax, or a `$name` that nothing gives. Left to the
 * evaluation, a name that nothing gives would be undefined, and a misspelt check would give every agent 0.
 */
export function expressionProblem(text: string, files: readonly string[]): { found: string; expected: string } | null {
  let tree: unknown;
  try {
    tree = jsonata(text).ast();
  } catch (error) {
    const at = positionOf(error);
    const where = at === null ? "" : ` at character ${at}`;
    return { found: `a syntax error${where}: ${messageOf(error)}`, expected: "a JSONata expression" };
  }
  const names = { used: new Set<string>(), bound: new Set<string>() };
  collectNames(tree, names);
  const known = [...files, ...names.bound, ...Object.keys(expressionFunctions), ...builtIn];
  for (const name of names.used) {
    if (name === "" || name === "$" || known.includes(name)) continue;
    if (refusedNames.includes(name)) {
      return { found: `$${name}`, expected: "an expression that gives the same again: this function is refused" };
    }
    const near = nearest(name, known);
    const expected = near
      ? `\`$${near}\`, the nearest known name`
      : `one of ${files.map((file) => `$${file}`).join(", ")} or a function`;
    return { found: `$${name}, which nothing gives`, expected };
  }
  return null;
}

/** Names that a tree uses, and those that it binds somewhere: by `:=`, as a function's argument, by `@` or `#`. */
function collectNames(node: unknown, into: { used: Set<string>; bound: Set<string> }): void {
  if (Array.isArray(node)) {
    for (const each of node) collectNames(each, into);
    return;
  }
  if (typeof node !== "object" || node === null) return;
  const { type, value, lhs, arguments: passed, focus, index } = node as Record<string, unknown>;
  if (type === "variable" && typeof value === "string") into.used.add(value);
  if (type === "bind") bind(lhs, into.bound);
  if (type === "lambda" && Array.isArray(passed)) for (const each of passed) bind(each, into.bound);
  if (typeof focus === "string") into.bound.add(focus);
  if (typeof index === "string") into.bound.add(index);
  for (const each of Object.values(node)) collectNames(each, into);
}

function bind(node: unknown, bound: Set<string>): void {
  if (typeof node === "object" && node !== null && "value" in node && typeof node.value === "string")
    bound.add(node.value);
}

/** JSONata's error, or what the evaluation ran into. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

const compiled = new Map<string, jsonata.Expression>();

/**
 * The value of an expression over files by name; undefined where it gives nothing.
 * @throws ExpressionError
 */
export async function evaluateExpression(text: string, files: Readonly<Record<string, unknown>>): Promise<unknown> {
  try {
    return await expressionOf(text).evaluate({}, files);
  } catch (error) {
    throw new ExpressionError(messageOf(error), { cause: error });
  }
}

function expressionOf(text: string): jsonata.Expression {
  const known = compiled.get(text);
  if (known) return known;
  const made = jsonata(text);
  for (const [name, call] of Object.entries(expressionFunctions)) made.registerFunction(name, call);
  made.registerFunction("pad", pad, "<s-ns?:s>");
  if (compiled.size >= 1000) compiled.clear();
  compiled.set(text, made);
  return made;
}

/** As many characters as JSONata lets a range have items. */
const maxPadWidth = 1e7;

/** JSONata's $pad with a limit on the width, which may be a number that an agent wrote. @throws RangeError */
function pad(text: string | undefined, width: number, character?: string): string | undefined {
  if (text === undefined) return undefined;
  if (!(Math.abs(width) <= maxPadWidth)) throw new RangeError(`$pad to ${width} characters: at most ${maxPadWidth}`);
  const lacking = Math.ceil(Math.abs(width)) - [...text].length;
  if (lacking <= 0) return text;
  const pattern = [...(character || " ")];
  const whole = pattern.join("").repeat(Math.floor(lacking / pattern.length));
  const padding = whole + pattern.slice(0, lacking % pattern.length).join("");
  return width > 0 ? text + padding : padding + text;
}

/** JSONata throws objects that are no errors. */
function messageOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "message" in error) return String(error.message).slice(0, 300);
  return String(error).slice(0, 300);
}

function positionOf(error: unknown): number | null {
  if (typeof error === "object" && error !== null && "position" in error && typeof error.position === "number") {
    return error.position;
  }
  return null;
}
