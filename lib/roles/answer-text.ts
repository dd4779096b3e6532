/** A model's final answer as one JSON object. What is merely near to it is not repaired but sent back: a guess could be a verdict that nobody gave. */
import type { z } from "zod";
import type { Reading } from "./conversation.ts";

/** Takes exactly one object, bare or in one code fence, and holds it against a schema. */
export function readAnswer<T>(content: string, schema: z.ZodType<T>): Reading<T> {
  const text = content.replace(/^\uFEFF/, "").trim();
  if (text === "") return { ok: false, problem: "it was empty" };
  const inner = /^```(?:json|JSON)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/.exec(text)?.[1] ?? text;
  let value: unknown;
  try {
    value = JSON.parse(inner);
  } catch {
    return { ok: false, problem: "it is not one JSON object and nothing else" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, problem: "it is JSON, but no object" };
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issues = parsed.error.issues
    .slice(0, 5)
    .map((issue) => `${issue.path.join(".") || "answer"}: ${issue.message}`);
  return { ok: false, problem: issues.join("; ") };
}

/** What is said after an answer that could not be used. */
export function askAgain(problem: string): string {
  return `Your answer could not be used: ${problem}. Answer again with one JSON object in the given form, with nothing before or after it.`;
}
