/** Tokens and dollars: one shape for every role. */
import { z } from "zod";
import { modelRole } from "./vocabulary.ts";

/** Tokens of one or more model calls. `input` includes `cached`. */
export const tokens = z.object({
  input: z.number().int().nonnegative(),
  cached: z.number().int().nonnegative(),
  output: z.number().int().nonnegative(),
});
export type Tokens = z.infer<typeof tokens>;

export const usage = tokens.extend({ usd: z.number().nonnegative() });
export type Usage = z.infer<typeof usage>;

export const noUsage: Usage = { input: 0, cached: 0, output: 0, usd: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return { input: a.input + b.input, cached: a.cached + b.cached, output: a.output + b.output, usd: a.usd + b.usd };
}

/** More than any model takes or gives in one call. A provider that tells more tells nonsense. */
const mostTokens = { input: 10_000_000, output: 2_000_000 };

/**
 * Tokens of one call as a provider tells them (`usage` of a chat completion).
 * @returns null when it tells none, or what cannot be: no whole numbers, less than none, more than any model has
 */
export function toldTokens(told: unknown): Tokens | null {
  if (typeof told !== "object" || told === null) return null;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = told as Record<string, unknown>;
  const count = (value: unknown, most: number): number | null =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most ? value : null;
  const input = count(prompt_tokens, mostTokens.input);
  const output = count(completion_tokens, mostTokens.output);
  if (input === null || output === null) return null;
  const details = (prompt_tokens_details ?? {}) as { cached_tokens?: unknown };
  return { input, output, cached: Math.min(input, count(details.cached_tokens, mostTokens.input) ?? 0) };
}

/** US dollars for a million tokens. Without `cached`, cached input is paid like any input. */
export const price = z.strictObject({
  input: z.number().nonnegative(),
  cached: z.number().nonnegative().optional(),
  output: z.number().nonnegative(),
});
export type Price = z.infer<typeof price>;

/** Dollars of one call at a price. */
export function costOf(used: Tokens, at: Price): number {
  const fresh = Math.max(0, used.input - used.cached);
  return (fresh * at.input + used.cached * (at.cached ?? at.input) + used.output * at.output) / 1_000_000;
}

/** Tokens of a text that no provider counted: a quarter of its characters. */
export const estimatedTokens = (text: string): number => Math.ceil(text.length / 4);

/** How a model call ended. `capped`: refused for the attempt's cap. `cancelled`: the caller went away, or its turn ended, first. */
export const modelCallStatus = z.enum([
  "ok",
  "rate_limited",
  "quota_exhausted",
  "bad_request",
  "provider_error",
  "disconnected",
  "timeout",
  "unreadable",
  "capped",
  "cancelled",
]);
export type ModelCallStatus = z.infer<typeof modelCallStatus>;

/** One line of a usage file: a model call without any text of it. `ms` is its wall time. */
export const usageLine = z.object({
  v: z.literal(1),
  role: modelRole,
  turn: z.number().int().positive(),
  model: z.string(),
  ms: z.number().nonnegative(),
  status: modelCallStatus,
  tokens,
  usd: z.number().nonnegative(),
});
export type UsageLine = z.infer<typeof usageLine>;
