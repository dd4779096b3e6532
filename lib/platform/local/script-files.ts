/**
 * Files of scripted models: `<script>/<role>/<task id or _any>/turn-NN.yaml`, each a list of answers by the index of the
 * call within its turn. After the last answer the last one repeats; a later turn without a file uses the last one present.
 *
 *     - tools: [{name: bash, arguments: {command: "ls"}}]
 *     - any:
 *         - {when: "No such file", text: "The folder is empty."}
 *         - {json: {verdict: pass}, tokens: {input: 900, output: 40}}
 *     - {text: "Done.", fault: {kind: rate_limit, times: 2}}
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { type ModelRole, modelRole } from "../../attempt/vocabulary.ts";
import { ProblemsError, zodProblems } from "../../tasks/problem.ts";

const scriptFault = z.strictObject({
  kind: z.enum(["rate_limit", "quota", "server_error", "disconnect", "html", "empty", "garbage", "hang"]),
  /** How often, before the answer beside it is given; without it, for ever. */
  times: z.number().int().positive().optional(),
});
export type ScriptFault = z.infer<typeof scriptFault>;

const answerFields = {
  text: z.string().optional(),
  /** `arguments`: any value, sent as JSON; a string is sent as it stands, so that a script can break it. */
  tools: z.array(z.strictObject({ name: z.string().min(1), arguments: z.unknown() })).optional(),
  /** Sent as the answer's text, in JSON. */
  json: z.unknown().optional(),
  finish: z.string().optional(),
  tokens: z
    .strictObject({
      input: z.number().int().nonnegative(),
      cached: z.number().int().nonnegative().optional(),
      output: z.number().int().nonnegative(),
    })
    .optional(),
  delayMs: z.number().nonnegative().optional(),
  fault: scriptFault.optional(),
};

interface Says {
  text?: string | undefined;
  tools?: unknown[] | undefined;
  json?: unknown;
  fault?: ScriptFault | undefined;
}
const saysSomething = (answer: Says): boolean =>
  answer.text !== undefined || answer.tools !== undefined || answer.json !== undefined;
const complete = (answer: Says): boolean =>
  saysSomething(answer) || (answer.fault !== undefined && answer.fault.times === undefined);
const completeMessage =
  "an answer with `text`, `tools` or `json`, or a `fault` without `times` (a fault with `times` needs the answer that follows it)";
const oneText = (answer: Says): boolean => answer.text === undefined || answer.json === undefined;
const oneTextMessage = "`text` or `json`, not both";

const plainAnswer = z.strictObject(answerFields).refine(complete, completeMessage).refine(oneText, oneTextMessage);
const regularExpression = z.string().refine((text) => compiled(text) !== null, "a JavaScript regular expression");
const conditionalAnswer = z
  .strictObject({ when: regularExpression.optional(), ...answerFields })
  .refine(complete, completeMessage)
  .refine(oneText, oneTextMessage);

/** One entry: an answer, or the first of several whose `when` is found in the messages' contents. */
const scriptEntry = z.union([z.strictObject({ any: z.array(conditionalAnswer).min(1) }), plainAnswer]);
const scriptTurn = z.array(scriptEntry).min(1);
export type ScriptAnswer = z.infer<typeof plainAnswer>;
export type ScriptTurn = z.infer<typeof scriptTurn>;

/** A call that no script answers; the message says which file would. */
export class NoScript extends Error {
  override readonly name = "NoScript";
}

export interface ScriptCall {
  script: string;
  role: string;
  task: string;
  turn: number;
  /** Model calls of this turn before this one. */
  index: number;
  /** All message contents, one after the other. */
  contents: string;
}

/** Scripts of one machine, each file read when it is first needed and kept. */
export class ScriptFiles {
  readonly #folders = new Map<string, Promise<number[] | null>>();
  readonly #turns = new Map<string, Promise<ScriptTurn>>();

  /** @throws NoScript when there is none; ProblemsError when the file is wrong. */
  async answer(call: ScriptCall): Promise<ScriptAnswer> {
    const role = modelRole.safeParse(call.role);
    if (!role.success) {
      throw new NoScript(`unknown role ${JSON.stringify(call.role)}, expected one of ${modelRole.options.join(", ")}`);
    }
    const file = await this.#file(call, role.data);
    const turn = await this.#turn(file);
    const entry = turn[Math.min(call.index, turn.length - 1)]!;
    if (!("any" in entry)) return entry;
    const chosen = entry.any.find((option) => option.when === undefined || compiled(option.when)!.test(call.contents));
    if (!chosen) {
      throw new NoScript(`${file}: answer ${call.index + 1}: no \`when\` fits; end \`any\` with an answer without one`);
    }
    const { when: _, ...answer } = chosen;
    return answer;
  }

  async #file(call: ScriptCall, role: ModelRole): Promise<string> {
    for (const name of [call.task, "_any"]) {
      if (!/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name)) continue;
      const folder = join(call.script, role, name);
      const turns = await remembered(this.#folders, folder, () => turnsIn(folder));
      const turn = turns?.filter((number) => number <= call.turn).at(-1);
      if (turn !== undefined) return join(folder, `turn-${String(turn).padStart(2, "0")}.yaml`);
    }
    throw new NoScript(
      `no script for role ${role}, task ${JSON.stringify(call.task)}, turn ${call.turn}: expected ` +
        `${join(call.script, role, call.task, "turn-01.yaml")} or ${join(call.script, role, "_any", "turn-01.yaml")}`,
    );
  }

  #turn(file: string): Promise<ScriptTurn> {
    return remembered(this.#turns, file, async () => readTurn(file, await readFile(file, "utf8")));
  }
}

/** @throws ProblemsError naming file and field. */
export function readTurn(file: string, text: string): ScriptTurn {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    const found = error instanceof Error ? error.message.split("\n")[0]! : String(error);
    throw new ProblemsError([{ file, field: "", severity: "error", found, expected: "YAML" }]);
  }
  const parsed = scriptTurn.safeParse(value);
  if (parsed.success) return parsed.data;
  // A union's own issue names no field; the branch that the entry means does.
  if (Array.isArray(value)) {
    const problems = value.flatMap((entry: unknown, index) => {
      const branch = typeof entry === "object" && entry !== null && "any" in entry ? 0 : 1;
      const result = branch === 0 ? scriptEntry.options[0].safeParse(entry) : scriptEntry.options[1].safeParse(entry);
      if (result.success) return [];
      return zodProblems(file, entry, result.error, () => ["any", "when", ...Object.keys(answerFields)]).map(
        (problem) => ({ ...problem, field: [index, problem.field].filter((part) => part !== "").join(".") }),
      );
    });
    if (problems.length > 0) throw new ProblemsError(problems);
  }
  throw new ProblemsError(zodProblems(file, value, parsed.error));
}

/** Numbers of the turns that a folder has, ascending; null without the folder. */
async function turnsIn(folder: string): Promise<number[] | null> {
  try {
    return (await readdir(folder))
      .flatMap((name) => {
        const found = /^turn-(\d{2,})\.yaml$/.exec(name);
        return found ? [Number(found[1])] : [];
      })
      .sort((a, b) => a - b);
  } catch {
    return null;
  }
}

const expressions = new Map<string, RegExp | null>();
/** A dot matches line breaks too: contents are long texts. Null: no regular expression. */
function compiled(text: string): RegExp | null {
  const known = expressions.get(text);
  if (known !== undefined) return known;
  let made: RegExp | null;
  try {
    made = new RegExp(text, "s");
  } catch {
    made = null;
  }
  expressions.set(text, made);
  return made;
}

function remembered<T>(map: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = map.get(key);
  if (known) return known;
  const made = make();
  map.set(key, made);
  // What failed is read again next time: its author is mending it.
  made.catch(() => map.delete(key));
  return made;
}
