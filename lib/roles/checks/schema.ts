/**
 * checks.yaml: checkpoints of a rubric that code decides, and caps.
 *
 *     checkpoints:
 *       - id: CP1
 *         weight: 0.75
 *         check:
 *           kind: expression
 *           files:
 *             answer: { file: results/answer.json, as: json }
 *             truth: { file: hidden/references/ground_truth.json, as: json }
 *           expression: $answer.total = $truth.total
 *       - { id: CP2, weight: 0.25, judge: true }
 *     caps:
 *       - { id: no_plot, max: 0.6, when: { kind: file_exists, file: results/plot.png, absent: true } }
 *
 * A file is `results/…` (the turn's deliverables), `sources/…` (what the agent was given) or `hidden/…` (the hidden part,
 * `hidden/references/…` say). Weights sum to 1. Caps apply by minimum, after the sum.
 *
 * `expression` is JSONata over `$name` for each file, giving true, false or 0..1. Beside JSONata's own functions there are
 * those of expression-functions.ts ($toGrid, $isGrid, $rows, $columns,
 * $boxes, $isPermutation, $isFilled, $hasEmptyCell, $keepsGivens, $fraction);
 * $eval, $now, $millis, $random and $shuffle are refused, since a score must come out the same again.
 */
import { z } from "zod";
import { nearest, type Problem, shown, zodProblems } from "../../tasks/problem.ts";
import { readYaml } from "../../tasks/yaml-text.ts";
import { expressionProblem } from "./expression.ts";
import { flagsProblem, patternProblem } from "./pattern.ts";

const fileSource = z.enum(["results", "sources", "hidden"]);
export type FileSource = z.infer<typeof fileSource>;
const fileFormat = z.enum(["json", "csv", "lines", "grid", "text"]);
export type FileFormat = z.infer<typeof fileFormat>;

const filePath = z
  .string()
  .max(1024)
  .refine(
    (path) =>
      /^(results|sources|hidden)\/./.test(path) &&
      path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== ".." && !/\0/.test(segment)),
    "a path that begins with results/, sources/ or hidden/ and has no `..`",
  );

/** A file and how it is read. An optional one that is missing or can not be read as that is undefined. */
const fileUse = z.strictObject({ file: filePath, as: fileFormat, optional: z.boolean().optional() });

const jsonata = z.string().min(1).max(20_000);
const fraction = z.number("a number from 0 to 1").min(0, "a number from 0 to 1").max(1, "a number from 0 to 1");
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** Every kind, by its name; `kind` itself is added below. */
const kinds = {
  expression: z.strictObject({
    kind: z.literal("expression"),
    files: z.record(z.string().regex(/^[a-z][a-z0-9_]*$/, "names of small letters, digits and `_`"), fileUse),
    expression: jsonata,
  }),
  /** 1 where the file is there (and is not empty); with `absent`, where it is not. */
  file_exists: z.strictObject({ kind: z.literal("file_exists"), file: filePath, absent: z.boolean().optional() }),
  /** 1 where the file is JSON, and its top level has the required members. */
  json_valid: z.strictObject({
    kind: z.literal("json_valid"),
    file: filePath,
    required: z.array(z.string()).optional(),
  }),
  /** The credit of the first band that holds the number that `value` (JSONata over `$file`) gives; 0 outside all. */
  number_within: z.strictObject({
    kind: z.literal("number_within"),
    file: filePath,
    as: fileFormat.optional(),
    value: jsonata,
    bands: z
      .array(z.strictObject({ min: z.number(), max: z.number(), credit: fraction }))
      .min(1)
      .refine((bands) => bands.every(({ min, max }) => min <= max), "bands with min <= max"),
  }),
  /**
   * The list that `value` (JSONata over `$file`) gives against the expected one, order and repeats aside: 1 when equal.
   * With `partial`, what both have over what either has. Strings are compared trimmed; with `ignore_case` folded.
   */
  set_equals: z.strictObject({
    kind: z.literal("set_equals"),
    file: filePath,
    as: fileFormat.optional(),
    value: jsonata,
    expected: z.union([
      z.array(scalar).min(1),
      z.strictObject({ file: filePath, as: fileFormat.optional(), value: jsonata }),
    ]),
    ignore_case: z.boolean().optional(),
    partial: z.boolean().optional(),
  }),
  /** 1 where the text has the pattern (a JavaScript regular expression); with `absent`, where the file has it not. */
  text_matches: z.strictObject({
    kind: z.literal("text_matches"),
    file: filePath,
    pattern: z.string().min(1).max(2000),
    flags: z.string().optional(),
    absent: z.boolean().optional(),
  }),
  /** 1 where the rows that one SELECT gives of a database are the expected ones, as lists of columns, in order. */
  sqlite_query: z.strictObject({
    kind: z.literal("sqlite_query"),
    file: filePath,
    query: z
      .string()
      .max(10_000)
      .regex(/^\s*(select|with)\b[^;]*;?\s*$/i, "one SELECT, without a `;` inside"),
    rows: z.array(z.array(scalar)).max(1000),
  }),
  /** 1 where the turn called a tool of this name at least `min` (1) and at most `max` times. */
  tool_used: z.strictObject({
    kind: z.literal("tool_used"),
    tool: z.string().min(1),
    min: z.number().int().nonnegative().optional(),
    max: z.number().int().nonnegative().optional(),
  }),
} as const;
/** Kinds of the format that can not be decided yet, each with the reason. */
const unavailable: Readonly<Record<string, string>> = {
  intercepted: "a kind that works without a recording of the intercepted web, which nothing here makes yet",
};

export const check = z.discriminatedUnion("kind", [
  kinds.expression,
  kinds.file_exists,
  kinds.json_valid,
  kinds.number_within,
  kinds.set_equals,
  kinds.text_matches,
  kinds.sqlite_query,
  kinds.tool_used,
]);
export type Check = z.infer<typeof check>;

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "an id of letters, digits, `.`, `_`, `-`");
const checkpoint = z.union([
  z.strictObject({ id, weight: fraction, check }),
  z.strictObject({ id, weight: fraction, judge: z.literal(true) }),
]);
const cap = z.strictObject({ id, max: fraction, when: check });

/** As published in checks.json. */
export const checks = z.strictObject({
  checkpoints: z.array(checkpoint).min(1).max(100),
  caps: z.array(cap).max(100).default([]),
});
export type Checks = z.infer<typeof checks>;

/** Reads checks.yaml; everything that is wrong with it at once. */
export function parseChecks(text: string, file: string): { value: Checks } | Problem[] {
  const yaml = readYaml(text, file);
  if (!yaml.ok) return [yaml.problem];
  const problems = shapeProblems(yaml.value, file);
  if (problems.length > 0) return problems;
  const parsed = checks.safeParse(yaml.value);
  if (!parsed.success) return zodProblems(file, yaml.value, parsed.error);
  const meaning = meaningProblems(parsed.data, file);
  return meaning.length > 0 ? meaning : { value: parsed.data };
}

const fields = {
  top: ["checkpoints", "caps"],
  checkpoint: ["id", "weight", "check", "judge"],
  cap: ["id", "max", "when"],
};

/** Faults that a union of schemas tells badly: what is wrong in which entry, by the kind that it names. */
function shapeProblems(value: unknown, file: string): Problem[] {
  if (!isObject(value)) return [problem(file, "", shown(value), "an object with `checkpoints`")];
  const found: Problem[] = unknownFields(file, "", value, fields.top);
  const entries = (name: "checkpoints" | "caps"): unknown[] => {
    const list = value[name];
    if (Array.isArray(list)) return list;
    if (list !== undefined || name === "checkpoints") found.push(problem(file, name, shown(list), "a list"));
    return [];
  };
  for (const [at, entry] of entries("checkpoints").entries()) {
    const field = `checkpoints.${at}`;
    if (!isObject(entry)) {
      found.push(problem(file, field, shown(entry), "an object with id, weight and check"));
      continue;
    }
    found.push(...unknownFields(file, field, entry, fields.checkpoint));
    found.push(...parseProblems(file, field, entry, z.object({ id, weight: fraction })));
    if ("check" in entry === "judge" in entry) {
      const both = "check" in entry ? "both check and judge" : "neither check nor judge";
      found.push(problem(file, field, both, "either `check: {kind, …}` or `judge: true`"));
    } else if ("check" in entry) found.push(...checkProblems(file, `${field}.check`, entry.check));
    else if (entry.judge !== true) found.push(problem(file, `${field}.judge`, shown(entry.judge), "true"));
  }
  for (const [at, entry] of entries("caps").entries()) {
    const field = `caps.${at}`;
    if (!isObject(entry)) {
      found.push(problem(file, field, shown(entry), "an object with id, max and when"));
      continue;
    }
    found.push(...unknownFields(file, field, entry, fields.cap));
    found.push(...parseProblems(file, field, entry, z.object({ id, max: fraction })));
    found.push(...checkProblems(file, `${field}.when`, entry.when));
  }
  return found;
}

function checkProblems(file: string, field: string, value: unknown): Problem[] {
  if (!isObject(value)) return [problem(file, field, shown(value), "an object with `kind`")];
  const { kind } = value;
  const names = Object.keys(kinds);
  if (typeof kind !== "string" || !Object.hasOwn(kinds, kind)) {
    const reason = typeof kind === "string" && Object.hasOwn(unavailable, kind) ? unavailable[kind] : undefined;
    const near = typeof kind === "string" ? nearest(kind, names) : null;
    const expected = near ? `\`${near}\`, the nearest known kind` : `one of ${names.join(", ")}`;
    return [problem(file, `${field}.kind`, shown(kind), reason ?? expected)];
  }
  const schema = kinds[kind as keyof typeof kinds];
  const parsed = schema.safeParse(value);
  if (parsed.success) return [];
  const known = (path: readonly PropertyKey[]): string[] =>
    path.length === 0
      ? Object.keys(schema.shape)
      : path[0] === "bands"
        ? ["min", "max", "credit"]
        : Object.keys(fileUse.shape);
  return zodProblems(file, value, parsed.error, known).map((each) => ({ ...each, field: `${field}.${each.field}` }));
}

/** What no shape says: ids, the sum, and whether expressions and patterns are such. */
function meaningProblems(of: Checks, file: string): Problem[] {
  const found: Problem[] = [];
  for (const [name, list] of [
    ["checkpoints", of.checkpoints],
    ["caps", of.caps],
  ] as const) {
    const seen = new Set<string>();
    for (const [at, entry] of list.entries()) {
      if (seen.has(entry.id))
        found.push(problem(file, `${name}.${at}.id`, `${entry.id} a second time`, "an id of its own"));
      seen.add(entry.id);
    }
  }
  const sum = of.checkpoints.reduce((total, { weight }) => total + weight, 0);
  if (Math.abs(sum - 1) > 1e-6) {
    found.push(problem(file, "checkpoints", `weights that sum to ${Number(sum.toFixed(6))}`, "weights that sum to 1"));
  }
  for (const [at, point] of of.checkpoints.entries()) {
    if ("check" in point) found.push(...codeProblems(file, `checkpoints.${at}.check`, point.check));
  }
  for (const [at, each] of of.caps.entries()) found.push(...codeProblems(file, `caps.${at}.when`, each.when));
  return found;
}

function codeProblems(file: string, field: string, of: Check): Problem[] {
  const expression = (name: string, text: string, files: readonly string[]): Problem[] => {
    const wrong = expressionProblem(text, files);
    return wrong ? [problem(file, `${field}.${name}`, wrong.found, wrong.expected)] : [];
  };
  switch (of.kind) {
    case "expression":
      return expression("expression", of.expression, Object.keys(of.files));
    case "number_within":
      return expression("value", of.value, ["file"]);
    case "set_equals":
      return [
        ...expression("value", of.value, ["file"]),
        ...(Array.isArray(of.expected) ? [] : expression("expected.value", of.expected.value, ["file"])),
      ];
    case "text_matches": {
      const wrongFlags = flagsProblem(of.flags ?? "");
      if (wrongFlags) return [problem(file, `${field}.flags`, shown(of.flags), wrongFlags)];
      const wrong = patternProblem(of.pattern, of.flags ?? "");
      return wrong ? [problem(file, `${field}.pattern`, wrong, "a JavaScript regular expression")] : [];
    }
    case "tool_used":
      return (of.min ?? 1) > (of.max ?? Number.POSITIVE_INFINITY)
        ? [problem(file, field, `min ${of.min ?? 1} above max ${of.max}`, "min <= max")]
        : [];
    case "file_exists":
    case "json_valid":
    case "sqlite_query":
      return [];
  }
}

function unknownFields(file: string, field: string, value: object, known: readonly string[]): Problem[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const near = nearest(key, known);
      const expected = near ? `\`${near}\`, the nearest known field` : `one of ${known.join(", ")}`;
      return problem(file, field === "" ? key : `${field}.${key}`, "an unknown field", expected);
    });
}

function parseProblems(file: string, field: string, value: unknown, schema: z.ZodType): Problem[] {
  const parsed = schema.safeParse(value);
  if (parsed.success) return [];
  return zodProblems(file, value, parsed.error).map((each) => ({ ...each, field: `${field}.${each.field}` }));
}

function problem(file: string, field: string, found: string, expected: string): Problem {
  return { file, field, severity: "error", found, expected };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
