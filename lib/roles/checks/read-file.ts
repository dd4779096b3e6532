/**
 * Bytes of a file as a check reads them. Files of results/ are hostile: what is returned has no prototype to reach
 * through, a bounded depth and size, and finite numbers are not promised (JSON's 1e309 is Infinity).
 */
import { type Cell, cellOf } from "./expression-functions.ts";
import type { FileFormat } from "./schema.ts";

const fileLimits = {
  /** Bytes of one file that a check parses, and of a database. */
  parsedBytes: 8 * 1024 * 1024,
  databaseBytes: 64 * 1024 * 1024,
  depth: 100,
  values: 1_000_000,
} as const;

/** The file is not what it should be: the agent's doing where it wrote the file, the task's where not. */
export class UnreadableFile extends Error {
  override readonly name = "UnreadableFile";
}

/** @throws UnreadableFile */
export function readAs(bytes: Uint8Array, format: FileFormat): unknown {
  if (bytes.byteLength > fileLimits.parsedBytes) {
    throw new UnreadableFile(`it has ${bytes.byteLength} bytes, more than the ${fileLimits.parsedBytes} that are read`);
  }
  // Bytes that are no UTF-8 become U+FFFD; a byte order mark goes.
  const text = new TextDecoder().decode(bytes);
  switch (format) {
    case "text":
      return text;
    case "lines":
      return readLines(text);
    case "json":
      return readJson(text);
    case "csv":
      return readCsv(text);
    case "grid":
      return readGrid(text);
  }
}

function readLines(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.at(-1) === "") lines.pop();
  return bounded(lines);
}

function readJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UnreadableFile(`it is no JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  return harmless(value, { left: fileLimits.values }, 0);
}

/** The same data in objects without prototype, so that `constructor` and `__proto__` are names like others. */
function harmless(value: unknown, budget: { left: number }, depth: number): unknown {
  if (--budget.left < 0) throw new UnreadableFile(`it has more than ${fileLimits.values} values`);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= fileLimits.depth) throw new UnreadableFile(`it is nested more than ${fileLimits.depth} deep`);
  if (Array.isArray(value)) return value.map((item) => harmless(item, budget, depth + 1));
  const copy: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [key, member] of Object.entries(value)) copy[key] = harmless(member, budget, depth + 1);
  return copy;
}

/** Rows as objects by the names of the first line. RFC 4180; a name that stands twice keeps its last column. */
function readCsv(text: string): Record<string, string>[] {
  const [header = [], ...rows] = csvRows(text);
  return rows.map((cells) => {
    const row: Record<string, string> = Object.create(null) as Record<string, string>;
    for (const [at, name] of header.entries()) row[name.trim()] = cells[at] ?? "";
    return row;
  });
}

function csvRows(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let cells = 0;
  const endCell = (): void => {
    row.push(cell);
    cell = "";
    if (++cells > fileLimits.values) throw new UnreadableFile(`it has more than ${fileLimits.values} cells`);
  };
  const endRow = (): void => {
    endCell();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length; at++) {
    const c = text[at] as string;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === ",") endCell();
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[at + 1] === "\n") at++;
      endRow();
    } else cell += c;
  }
  if (cell !== "" || row.length > 0) endRow();
  return rows;
}

/**
 * Lines of cells: numbers, single characters, or marks of empty cells, apart by spaces, commas, bars or brackets, or, where a line has
 * one word of digits and marks, by nothing. Lines of anything else (comments, titles, rules between boxes) are no rows.
 */
function readGrid(text: string): Cell[][] {
  const rows: Cell[][] = [];
  for (const line of readLines(text)) {
    if (/^\s*#/.test(line)) continue;
    const words = line.split(/[\s,;|│┃[\]]+/).filter((word) => word !== "");
    if (words.length === 0 || words.some((word) => /^[-+=─━┼╋]{2,}$/.test(word) || word === "+")) continue;
    const [first = ""] = words;
    const marks = words.length === 1 && first.length > 1 && /^[\d._?*]+$/.test(first) ? [...first] : words;
    if (marks.every((mark) => /^-?\d+$/.test(mark) || [...mark].length === 1)) rows.push(marks.map(cellOf));
  }
  return bounded(rows);
}

function bounded<T>(list: T[]): T[] {
  if (list.length > fileLimits.values) throw new UnreadableFile(`it has more than ${fileLimits.values} lines`);
  return list;
}
