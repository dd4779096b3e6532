/**
 * Deciding one check over files that are at hand.
 *
 * Whose fault is a failure? A file of ours that is missing or unreadable is ours. A deliverable that is missing or can
 * not be read as what was asked for is the agent's. When an expression or query fails on deliverables, it is evaluated
 * again with every deliverable taken away: if it fails then too, the check is broken whatever an agent writes, else it is
 * this evidence that made it fail, and counts as 0 with a note. So a type error on a number written as text is the
 * agent's, and a call of a function with too few arguments is ours.
 */
import { ExpressionError, evaluateExpression } from "./expression.ts";
import { type CheckJob, type CheckOutcome, type FileContent, sourceOf } from "./job.ts";
import { readAs, UnreadableFile } from "./read-file.ts";
import type { Check, FileFormat } from "./schema.ts";

/** Runs a query over a database that nobody trusts. @throws UnreadableFile when it can not, QueryError when the query is wrong */
export type QueryDatabase = (database: Uint8Array, query: string) => unknown[][];
export class QueryError extends Error {
  override readonly name = "QueryError";
}

type Verdict = { credit: number; note: string | null };
class Missing extends Error {}
class OursUnreadable extends Error {}

/** Decides the check `id` of a job. Does not throw for what a file or an expression does. */
export async function decideCheck(job: CheckJob, id: string, query: QueryDatabase): Promise<CheckOutcome> {
  const found = job.checks.find((each) => each.id === id);
  if (!found) return { id, status: "broken", note: `the job has no check ${id}` };
  const files = new Files(job);
  try {
    return { id, status: "decided", ...(await verdictOf(found.check, files, job, query)) };
  } catch (error) {
    if (error instanceof Missing) return { id, status: "missing", note: error.message };
    if (error instanceof UnreadableFile) return { id, status: "evidence", note: error.message };
    if (error instanceof ExpressionError || error instanceof QueryError) {
      const alone = await failsAlone(job, found.check, query);
      return { id, status: alone ? "broken" : "evidence", note: `the check failed: ${error.message}` };
    }
    return { id, status: "broken", note: error instanceof Error ? error.message : String(error) };
  }
}

/** The same job with every deliverable taken away: what fails on that fails on any. */
export function withoutEvidence(job: CheckJob): CheckJob {
  return {
    ...job,
    toolCounts: {},
    files: job.files.map((file) =>
      sourceOf(file.path) === "results" ? { path: file.path, content: { status: "missing" } } : file,
    ),
  };
}

async function failsAlone(job: CheckJob, check: Check, query: QueryDatabase): Promise<boolean> {
  const alone = withoutEvidence(job);
  try {
    await verdictOf(check, new Files(alone, true), alone, query);
    return false;
  } catch (error) {
    return !(error instanceof Missing || error instanceof UnreadableFile);
  }
}

/** Files of a job by path. `lenient`: a deliverable that is missing is undefined, as if it were optional. */
class Files {
  readonly #contents: Map<string, FileContent>;
  readonly #lenient: boolean;

  constructor(job: CheckJob, lenient = false) {
    this.#contents = new Map(job.files.map(({ path, content }) => [path, content]));
    this.#lenient = lenient;
  }

  has(path: string): boolean {
    return this.#contents.get(path)?.status === "ok" || this.#contents.get(path)?.status === "too_large";
  }

  /** @throws Missing, UnreadableFile for deliverables; OursUnreadable for files of the package */
  bytes(path: string): Uint8Array {
    const content = this.#contents.get(path) ?? { status: "missing" };
    if (content.status === "ok") return content.bytes;
    const ours = sourceOf(path) !== "results";
    const what =
      content.status === "missing" ? `${path} is not there` : `${path} has ${content.bytes} bytes, too many to read`;
    if (ours) throw new OursUnreadable(`${what}, and it belongs to the package`);
    if (content.status === "missing") throw new Missing(what);
    throw new UnreadableFile(what);
  }

  read(path: string, format: FileFormat, optional = false): unknown {
    try {
      return readAs(this.bytes(path), format);
    } catch (error) {
      if ((optional || this.#lenient) && (error instanceof Missing || error instanceof UnreadableFile))
        return undefined;
      if (!(error instanceof UnreadableFile)) throw error;
      const what = `${path} can not be read as ${format}: ${error.message}`;
      throw sourceOf(path) === "results" ? new UnreadableFile(what) : new OursUnreadable(what);
    }
  }
}

const yes = { credit: 1, note: null };
const no = (note: string): Verdict => ({ credit: 0, note });
const when = (condition: boolean, note: string): Verdict => (condition ? yes : no(note));

async function verdictOf(check: Check, files: Files, job: CheckJob, query: QueryDatabase): Promise<Verdict> {
  switch (check.kind) {
    case "expression": {
      const values: Record<string, unknown> = {};
      for (const [name, use] of Object.entries(check.files)) {
        values[name] = files.read(use.file, use.as, use.optional);
      }
      return creditOf(await evaluateExpression(check.expression, values));
    }
    case "file_exists": {
      const there = files.has(check.file) && files.bytes(check.file).byteLength > 0;
      if (check.absent) return when(!there, `${check.file} is there`);
      return when(there, `${check.file} is not there, or empty`);
    }
    case "json_valid": {
      const value = files.read(check.file, "json");
      const lacking = (check.required ?? []).filter((name) => !isRecord(value) || !(name in value));
      return when(lacking.length === 0, `${check.file} lacks ${lacking.join(", ")}`);
    }
    case "number_within": {
      const file = files.read(check.file, check.as ?? "json");
      const value = await evaluateExpression(check.value, { file });
      if (typeof value !== "number" || !Number.isFinite(value)) return no(`found ${shown(value)}, expected a number`);
      const band = check.bands.find(({ min, max }) => value >= min && value <= max);
      return { credit: band?.credit ?? 0, note: band?.credit === 1 ? null : `found ${value}` };
    }
    case "set_equals": {
      const fold = (value: unknown): Set<string> => asSet(value, check.ignore_case ?? false);
      const got = fold(await evaluateExpression(check.value, { file: files.read(check.file, check.as ?? "json") }));
      const { expected } = check;
      const wanted = Array.isArray(expected)
        ? fold(expected)
        : fold(await evaluateExpression(expected.value, { file: files.read(expected.file, expected.as ?? "json") }));
      const both = [...got].filter((item) => wanted.has(item)).length;
      const either = got.size + wanted.size - both;
      if (both === either) return yes;
      const note = `${both} of ${wanted.size} expected and ${got.size - both} others`;
      return { credit: check.partial ? both / either : 0, note };
    }
    case "text_matches": {
      if (check.absent && !files.has(check.file)) return yes;
      const text = files.read(check.file, "text");
      if (typeof text !== "string") return no(`${check.file} is not there`);
      const matches = new RegExp(check.pattern, check.flags).test(text);
      return when(matches !== (check.absent ?? false), `${check.file} ${matches ? "matches" : "does not match"}`);
    }
    case "sqlite_query": {
      const rows = query(files.bytes(check.file), check.query);
      return when(JSON.stringify(rows) === JSON.stringify(check.rows), `the query gave ${shown(rows)}`);
    }
    case "tool_used": {
      const times = Object.hasOwn(job.toolCounts, check.tool) ? (job.toolCounts[check.tool] ?? 0) : 0;
      const fits = times >= (check.min ?? 1) && times <= (check.max ?? Number.POSITIVE_INFINITY);
      return when(fits, `${check.tool} was called ${times} times`);
    }
  }
}

/** What an expression gave as a credit. Nothing is 0; what is no credit is the evidence's fault, as it came from there. */
function creditOf(value: unknown): Verdict {
  if (value === true) return yes;
  if (value === false) return { credit: 0, note: null };
  if (value === undefined) return no("the expression gave nothing");
  if (typeof value === "number" && value >= 0 && value <= 1) return { credit: value, note: null };
  throw new UnreadableFile(`the expression gave ${shown(value)}, expected true, false or a number from 0 to 1`);
}

function asSet(value: unknown, ignoreCase: boolean): Set<string> {
  const items: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  return new Set(
    items.map((item) => {
      if (typeof item !== "string") return JSON.stringify(item) ?? "null";
      const text = item.trim().normalize("NFC");
      return JSON.stringify(ignoreCase ? text.toLowerCase() : text);
    }),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = typeof value;
  }
  if (typeof value === "number" && !Number.isFinite(value)) text = String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
