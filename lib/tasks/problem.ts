/** Something wrong with a file that a user wrote: which file, which field, what was found, what is expected. */
import { distance } from "fastest-levenshtein";
import type { z } from "zod";

export interface Problem {
  file: string;
  /** Path inside the file, `codex.max_user_followups` say; empty for the file as a whole. */
  field: string;
  severity: "error" | "warning";
  found: string;
  expected: string;
}

/** One line for people: everything but the file. */
function problemMessage(problem: Problem): string {
  return `found ${problem.found}, expected ${problem.expected}`;
}

/** The form in which `--json` lists problems. */
export function problemJson(problem: Problem): { file: string; field: string; severity: string; message: string } {
  return { file: problem.file, field: problem.field, severity: problem.severity, message: problemMessage(problem) };
}

export function problemLine(problem: Problem): string {
  const where = problem.field === "" ? problem.file : `${problem.file}: ${problem.field}`;
  return `${problem.severity}: ${where}: ${problemMessage(problem)}`;
}

/** A call or file that is wrong; every problem at once. */
export class ProblemsError extends Error {
  override readonly name = "ProblemsError";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(problemLine).join("\n"));
  }
}

/** A value as it is shown to a person: short, on one line. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    return "a value that holds itself";
  }
  return short(text);
}

const short = (text: string): string => (text.length > 80 ? `${text.slice(0, 77)}…` : text);

/** The known name that is nearest to an unknown one, if it is near at all. */
export function nearest(name: string, known: readonly string[]): string | null {
  const limit = Math.max(2, Math.floor(name.length / 3));
  const best = known
    .map((candidate) => ({ candidate, far: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.far - b.far)[0];
  return best && best.far <= limit ? best.candidate : null;
}

/** Issues of a zod parse as problems. `known` names the fields of the object that stands at a path, for hints on unknown ones. */
export function zodProblems(
  file: string,
  value: unknown,
  error: z.ZodError,
  known: (path: readonly PropertyKey[]) => readonly string[] = () => [],
): Problem[] {
  return error.issues.flatMap(innermost).flatMap((issue): Problem[] => {
    const field = issue.path.map(String).join(".");
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => {
        const near = nearest(key, known(issue.path));
        return {
          file,
          field: [...issue.path.map(String), short(key)].join("."),
          severity: "error",
          found: "an unknown field",
          expected: near
            ? `\`${near}\`, the nearest known field`
            : `one of ${known(issue.path).join(", ") || "the known fields"}`,
        };
      });
    }
    const found = issue.path.reduce<unknown>(
      (at, step) => (typeof at === "object" && at !== null ? (at as Record<PropertyKey, unknown>)[step] : undefined),
      value,
    );
    return [{ file, field, severity: "error", found: shown(found), expected: expectedBy(issue) }];
  });
}

/** zod's own words for a type are no words for a user; messages that a schema states are. */
function expectedBy(issue: z.core.$ZodIssue): string {
  if (!/^(Invalid|Too (small|big)|Unrecognized)/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return typeWords[issue.expected] ?? `a ${issue.expected}`;
    case "invalid_value":
      return issue.values.map(String).join(" or ");
    case "too_small":
      return `at least ${issue.minimum}${sizeWords[issue.origin] ?? ""}`;
    case "too_big":
      return `at most ${issue.maximum}${sizeWords[issue.origin] ?? ""}`;
    default:
      return issue.message.replace(/^Invalid (input|string): /, "");
  }
}
const typeWords: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object with its fields",
  record: "an object with its fields",
};
const sizeWords: Readonly<Record<string, string>> = { string: " characters", array: " entries" };

/** Issues of the one branch of a union that the value was meant for, where there is one: the branch whose kind it has. */
function innermost(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.filter(
    (branch) => branch.length > 0 && branch.every((sub) => sub.path.length > 0 || sub.code === "unrecognized_keys"),
  );
  const [branch, second] = meant;
  if (!branch || second) return [issue];
  return branch.flatMap((sub) => innermost({ ...sub, path: [...issue.path, ...sub.path] }));
}
