/** The sweep file: which tasks, agents and models, how often, judged by whom, within which limits. */
import { z } from "zod";
import { price } from "../attempt/usage.ts";
import { type Problem, shown, zodProblems } from "../tasks/problem.ts";
import { effort } from "./manifest-line.ts";

const text = z.string("text").min(1, "text that is not empty");
const count = (expected: string): z.ZodInt => z.int(expected);
/** More than any budget, and small enough to be counted exactly. */
const mostDollars = 1_000_000;
const dollars = z
  .number("dollars, more than 0")
  .positive("dollars, more than 0")
  .max(mostDollars, `at most ${mostDollars} dollars`);
/** An agent that has less than a second could not even start. */
const seconds = z.number("seconds, 1 or more").min(1, "seconds, 1 or more");

/** A sweep's name stands in keys, in the names of executions, and in a partition of the results. */
const sweepName = z
  .string("a name")
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    "a name of letters, digits, `.`, `_` and `-` that starts with a letter or digit",
  )
  .max(64, "a name of at most 64 characters");

/** A model by its provider's name for it. `price` replaces that of models.yaml. */
const modelReference = z.strictObject({
  name: text,
  /** A provider of models.yaml. */
  provider: text,
  price: price.optional(),
});
export type ModelReference = z.infer<typeof modelReference>;

const agentReference = z.strictObject({
  name: text,
  /** Must be the version at hand. Default: that version. */
  version: text.optional(),
  options: z.record(z.string(), z.unknown(), "options by name").default({}),
});

const limits = z.strictObject({
  /** Dollars for the whole sweep. Default: no cap. */
  usd: dollars.nullable().default(null),
  /** Dollars of the executor's model in one attempt. Default: 5 with a cap on the sweep, else no cap. */
  usdPerAttempt: dollars.nullable().optional(),
  /** Dollars of supervisor and user simulator in one attempt. Default: 1 with a cap on the sweep, else no cap. */
  usdJudging: dollars.nullable().optional(),
  /** Executor tokens, in and out, of one attempt. Default: no cap. */
  tokensPerAttempt: count("a whole number of tokens").positive("1 or more").nullable().default(null),
  /** Attempts at the same time, over all models together. Default: 4. */
  concurrency: count("a whole number").min(1, "1 or more").max(10_000, "at most 10000").default(4),
  /**
   * Attempts at the same time on one model: one number for every model, or numbers by model name. Both this and
   * `concurrency` hold, so more than `concurrency` is the same as `concurrency`, which is the default: two models without
   * a number of their own, under a concurrency of 4, share 4 between them.
   */
  perModel: z
    .union(
      [count("a whole number").min(1, "1 or more"), z.record(z.string(), count("a whole number").min(1, "1 or more"))],
      "a whole number, 1 or more, or one for each model by its name",
    )
    .optional(),
  /** These four lower what a package, or the watchdog, allows; they never raise it. Seconds. */
  turnSeconds: seconds.optional(),
  totalSeconds: seconds.optional(),
  noStartSeconds: seconds.optional(),
  stallSeconds: seconds.optional(),
});

const supervisor = z.union(
  [
    z.literal("checks"),
    z.strictObject({
      model: modelReference,
      /** Default: what the package asks for. */
      effort: effort.optional(),
    }),
  ],
  "`checks`, or {model: {name, provider}, effort: low | medium | high}",
);
const userSimulator = z.union(
  [z.literal("none"), z.strictObject({ model: modelReference })],
  "`none`, or {model: {name, provider}}",
);

export const sweepFile = z.strictObject({
  name: sweepName,
  /** Folder of packages, relative to the sweep file. */
  packages: text,
  /** Folder of `<task id>.yaml` files with checks for other people's packages, relative to the sweep file. */
  checks: text.optional(),
  /** File of providers, relative to the sweep file. */
  modelsFile: text.default("models.yaml"),
  /** Globs on task id or category; those that start with `!` exclude. Default: every task. */
  tasks: z.array(text, "a list of globs").min(1, "at least one glob").default(["*"]),
  agents: z
    .array(z.union([text, agentReference], "an agent's name, or {name, version, options}"), "a list of agents")
    .min(1, "at least one agent"),
  models: z.array(modelReference, "a list of {name, provider}").min(1, "at least one model"),
  /** How often each task runs with each agent and model. */
  epochs: count("a whole number").min(1, "1 or more").max(1000, "at most 1000").default(1),
  supervisor,
  userSimulator,
  limits: limits.prefault({}),
  /** New tries of one attempt after faults that its agent did not cause. */
  retries: z
    .strictObject({
      infra: count("a whole number").min(0, "0 or more").max(20, "at most 20").default(2),
      rateLimit: count("a whole number").min(0, "0 or more").max(20, "at most 20").default(3),
    })
    .prefault({}),
  seed: count("a whole number").min(0, "0 or more").default(0),
  order: z.enum(["shuffled", "as-listed"], "shuffled or as-listed").default("shuffled"),
  /** Rules of another harness where they differ from ours. */
  compat: z.enum(["uniclawbench"], "uniclawbench").optional(),
});
export type SweepFile = z.infer<typeof sweepFile>;

function knownFields(path: readonly PropertyKey[]): readonly string[] {
  const at = path
    .map(String)
    .filter((step) => !/^\d+$/.test(step))
    .join(".");
  switch (at) {
    case "":
      return Object.keys(sweepFile.shape);
    case "agents":
      return Object.keys(agentReference.shape);
    case "models":
    case "supervisor.model":
    case "userSimulator.model":
      return Object.keys(modelReference.shape);
    case "supervisor":
      return ["model", "effort"];
    case "userSimulator":
      return ["model"];
    case "limits":
      return Object.keys(limits.shape);
    case "retries":
      return ["infra", "rateLimit"];
    default:
      return at.endsWith("price") ? Object.keys(price.shape) : [];
  }
}

/** A parsed YAML document as a sweep, or everything that is wrong with it. */
export function readSweepFile(document: unknown, file: string): { sweep: SweepFile | null; problems: Problem[] } {
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    return {
      sweep: null,
      problems: [{ file, field: "", severity: "error", found: shown(document), expected: "the fields of a sweep" }],
    };
  }
  const parsed = sweepFile.safeParse(document);
  if (!parsed.success) return { sweep: null, problems: zodProblems(file, document, parsed.error, knownFields) };
  return { sweep: parsed.data, problems: [] };
}
