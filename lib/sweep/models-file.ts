/**
 * models.yaml: the providers of models, read by the command line alone.
 *
 *     providers:
 *       openai:
 *         api: chat                       # chat | responses | messages | scripted
 *         baseUrl: https://api.openai.com/v1
 *         keyName: OPENAI_API_KEY         # name of the environment variable that holds the key; leave out where none is needed
 *         rateLimits: {requestsPerMinute: 500, tokensPerMinute: 2000000}   # not kept yet; limits.concurrency is
 *         price: {input: 5, output: 20}   # dollars for a million tokens, of models that name none of their own
 *         models:                         # when it is there, the only models that a sweep may name
 *           gpt-5.4: {price: {input: 1.25, cached: 0.125, output: 10}}
 *       rehearsed:
 *         api: scripted                   # answers from files, through the same code as real ones; costs nothing unless priced
 *         script: scripts/solver          # folder of turns, relative to this file
 *         models:
 *           slow-solver: {script: scripts/slow}
 */
import { z } from "zod";
import { price } from "../attempt/usage.ts";
import { type Problem, shown, zodProblems } from "../tasks/problem.ts";

const text = z.string("text").min(1, "text that is not empty");
const rateLimits = z.strictObject({
  requestsPerMinute: z.int("a whole number").positive("1 or more").optional(),
  tokensPerMinute: z.int("a whole number").positive("1 or more").optional(),
});

const model = z.strictObject({ price: price.optional() });
const scriptedModel = z.strictObject({ price: price.optional(), script: text.optional() });

const realProvider = z.strictObject({
  api: z.enum(["chat", "responses", "messages"]),
  baseUrl: z.url({ protocol: /^https?$/, error: "an address that starts with http:// or https://" }),
  keyName: z
    .string("a name")
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable that holds the key, never the key itself")
    .optional(),
  rateLimits: rateLimits.optional(),
  price: price.optional(),
  models: z.record(text, model.nullable(), "models by name").optional(),
});
const scriptedProvider = z.strictObject({
  api: z.literal("scripted"),
  script: text.optional(),
  price: price.optional(),
  models: z.record(text, scriptedModel.nullable(), "models by name").optional(),
});
const apis = "chat, responses, messages or scripted";
const provider = z.discriminatedUnion("api", [realProvider, scriptedProvider], apis);

export const modelsFile = z.strictObject({ providers: z.record(text, provider, "providers by name") });
export type ModelsFile = z.infer<typeof modelsFile>;

/** A parsed YAML document as providers with warnings, or everything that is wrong with it. */
export function readModelsFile(document: unknown, file: string): { models: ModelsFile | null; problems: Problem[] } {
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    const expected = "`providers:` with a provider under each name";
    return { models: null, problems: [{ file, field: "", severity: "error", found: shown(document), expected }] };
  }
  const parsed = modelsFile.safeParse(document);
  if (parsed.success) return { models: parsed.data, problems: unkept(parsed.data, file) };
  const known = (path: readonly PropertyKey[]): readonly string[] => {
    if (path.length === 0) return ["providers"];
    const at = path.at(-1);
    if (at === "price") return Object.keys(price.shape);
    if (at === "rateLimits") return Object.keys(rateLimits.shape);
    const named = (document as { providers?: Record<string, { api?: unknown } | null> }).providers?.[String(path[1])];
    const scripted = named?.api === "scripted";
    if (path.length === 2) return Object.keys((scripted ? scriptedProvider : realProvider).shape);
    return path.length === 4 ? Object.keys((scripted ? scriptedModel : model).shape) : [];
  };
  const problems = zodProblems(file, document, parsed.error, known).map((problem) =>
    // What stands where a key's name belongs may be the key.
    problem.field.endsWith(".keyName") ? { ...problem, found: "something that is no name" } : problem,
  );
  return { models: null, problems };
}

/** A limit that somebody relies on and nobody keeps costs rejected calls and then attempts. */
function unkept({ providers }: ModelsFile, file: string): Problem[] {
  return Object.entries(providers).flatMap(([name, of]): Problem[] =>
    of.api === "scripted" || of.rateLimits === undefined
      ? []
      : [
          {
            file,
            field: `providers.${name}.rateLimits`,
            severity: "warning",
            found: "limits that this version does not keep",
            expected: "`limits.perModel` in the sweep, low enough for them",
          },
        ],
  );
}
