/**
 * The public half of a task package: `tasks/<category>/<file>.yaml`, in UniClawBench's format (arXiv 2607.08768 and its
 * public repository) with Proctor's own optional fields `network`, `type` and `twin`.
 */
import { z } from "zod";
import { network } from "../attempt/vocabulary.ts";
import { nearest, type Problem, shown, zodProblems } from "./problem.ts";

/** Longest task id: a published package's folder is `<task id>@<64 hexadecimal digits>` and has to fit a file name. */
const maxTaskIdLength = 180;

const identifier = z
  .string("a name")
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    "a name of letters, digits, `.`, `_` and `-` that starts with a letter or digit",
  )
  .max(maxTaskIdLength, `a name of at most ${maxTaskIdLength} characters`);

/** A path inside the package, with `/` between its parts. The slash at a folder's end is dropped. */
const relativePath = z
  .string("a relative path")
  .refine((path) => {
    const parts = path.replace(/\/$/, "").split("/");
    const plain = !/[\\\0]/.test(path) && !/^[A-Za-z]:/.test(path);
    return plain && parts.every((part) => part !== "" && part !== "." && part !== "..");
  }, "a relative path inside the package, without `..`, `.`, `\\` or a leading `/`")
  .transform((path) => path.replace(/\/$/, ""));

const aliases: Record<string, string> = { edict: "openclaw_edict", "openclaw+edict": "openclaw_edict" };
const agentSystems = ["openclaw", "openclaw_edict", "nanobot"] as const;
const agentSystem = z.string("an agent system").superRefine((name, context) => {
  if ((agentSystems as readonly string[]).includes(name)) return;
  const right = aliases[name.toLowerCase()] ?? nearest(name, agentSystems);
  const message = right ? `\`${right}\`, which is the name of that agent system` : `one of ${agentSystems.join(", ")}`;
  context.addIssue({ code: "custom", message });
});

const seconds = z
  .number("a number of seconds")
  .positive("seconds, more than 0")
  .max(86_400, "at most 86400 seconds, a day");
const text = z.string("text").refine((value) => value.trim() !== "", "text that is not empty");
const effort = z.enum(["low", "medium", "high"], "low, medium or high");

const headedWords: Record<string, "auto" | boolean> = {
  auto: "auto",
  true: true,
  headed: true,
  "1": true,
  yes: true,
  false: false,
  headless: false,
  "0": false,
  no: false,
};
const headed = z
  .union([z.boolean(), z.number(), z.string()], "auto, true, headed, 1, yes, false, headless, 0 or no")
  .transform((value, context) => {
    const word = headedWords[String(value).toLowerCase()];
    if (word !== undefined) return word;
    context.addIssue({ code: "custom", message: "auto, true, headed, 1, yes, false, headless, 0 or no" });
    return z.NEVER;
  });

const service = z.strictObject({
  name: identifier,
  path: relativePath,
  start: text,
  oneshot: z.boolean("true or false").default(false),
});

const roleModel = {
  model: text.default("gpt-5.4"),
  provider: z.string("a provider's name").optional(),
  config: z.string("a path").optional(),
  reasoning_effort: effort.default("high"),
};
const userSimulator = z.strictObject({ ...roleModel, policy: text.optional() });
const supervisor = z.strictObject({ ...roleModel, instructions: text.optional() });
const codex = z.strictObject({
  max_user_followups: z.number("a number").int("a whole number").min(0, "0 or more").max(20, "at most 20").default(2),
  user_simulator: userSimulator.prefault({}),
  supervisor: supervisor.prefault({}),
});

const taskFile = z.strictObject({
  task_id: identifier,
  category: identifier,
  agent_sys: agentSystem.default("openclaw"),
  agent_id: identifier.default("main"),
  model: text.default("gpt-5.4"),
  /** Default: `model`. */
  image_model: text.optional(),
  /** Executor seconds of one turn, and over all turns. */
  timeout_seconds: seconds.default(1200),
  max_total_seconds: seconds.default(1800),
  success_threshold: z.number("a number").min(0, "0 to 1").max(1, "0 to 1").default(1),
  recording: z.enum(["none", "low", "high"], "none, low or high").default("none"),
  headed: headed.default("auto"),
  task: text,
  task_snapshot: text.optional(),
  references: z.array(relativePath, "a list of paths").default([]),
  sources: z.array(relativePath, "a list of paths").default([]),
  skills: z.array(relativePath, "a list of skill folders").default([]),
  services: z.array(service, "a list of services").default([]),
  pre_exec: z
    .array(
      relativePath.refine(
        (path) => !/^sources(\/|$)/i.test(path),
        "a script outside sources/, which the agent could read",
      ),
      "a list of scripts",
    )
    .default([]),
  pre_exec_parallel_safe: z.boolean("true or false").default(false),
  codex: codex.prefault({}),
  network: network.default("web"),
  type: z.enum(["closed_loop", "interception"], "closed_loop or interception").default("closed_loop"),
  /** Task id of the same task in the other language. */
  twin: identifier.optional(),
});
export type TaskFile = z.infer<typeof taskFile>;

/** Fields that the format refuses by name, with what to do instead. */
const refused: Record<string, string> = {
  privacy: "names of environment variables in the package's `.privacy` file, one a line",
  task_live: "`task` for the live request and `task_snapshot` for the one in snapshot mode",
};

/** Fields of the object at a path of the file. */
function knownFields(path: readonly PropertyKey[]): readonly string[] {
  const at = path
    .map(String)
    .filter((step) => !/^\d+$/.test(step))
    .join(".");
  const shape = {
    "": taskFile.shape,
    services: service.shape,
    codex: codex.shape,
    "codex.user_simulator": userSimulator.shape,
    "codex.supervisor": supervisor.shape,
  }[at];
  return shape ? Object.keys(shape) : [];
}

/** YAML's `field:` with nothing behind it means that the field is not there. */
function withoutEmpty(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [name, depth < 2 ? withoutEmpty(member, depth + 1) : member]),
  );
}

export interface TaskFileResult {
  /** Null when something is wrong; then `problems` says what, all of it. */
  task: TaskFile | null;
  problems: Problem[];
}

/** A parsed YAML document as a task, or everything that is wrong with it. */
export function readTaskFile(document: unknown, file: string): TaskFileResult {
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    const problem: Problem = {
      file,
      field: "",
      severity: "error",
      found: shown(document),
      expected: "the fields of a task",
    };
    return { task: null, problems: [problem] };
  }
  const value = withoutEmpty(document) as Record<string, unknown>;
  const problems: Problem[] = [];
  for (const [name, instead] of Object.entries(refused)) {
    // Looked up in the document as written: an empty `privacy:` is refused too.
    if (!Object.hasOwn(document, name)) continue;
    problems.push({ file, field: name, severity: "error", found: "a field that is refused", expected: instead });
    delete value[name];
  }
  const parsed = taskFile.safeParse(value);
  if (!parsed.success) problems.push(...zodProblems(file, value, parsed.error, knownFields));
  if (parsed.success && parsed.data.max_total_seconds < parsed.data.timeout_seconds) {
    problems.push({
      file,
      field: "max_total_seconds",
      severity: "warning",
      found: `${parsed.data.max_total_seconds}`,
      expected: `at least timeout_seconds, ${parsed.data.timeout_seconds}: no turn can last that long`,
    });
  }
  const wrong = problems.some((problem) => problem.severity === "error");
  return { task: parsed.success && !wrong ? parsed.data : null, problems };
}
