/** Runs the read tools for a model. Whatever a model asks for, it gets a text back; what is shown is fenced. */
import type { z } from "zod";
import { type EvidenceView, listArguments, readArguments, searchArguments } from "../trajectory/evidence-view.ts";
import { fenced } from "./fence.ts";

export async function runReadTool(view: EvidenceView, name: string, args: string): Promise<string> {
  switch (name) {
    case "list":
      return await withArguments(listArguments, args, async ({ prefix }) =>
        fenced(`files below ${JSON.stringify(prefix ?? "")}`, view.list(prefix ?? "")),
      );
    case "read":
      return await withArguments(readArguments, args, async (ask) =>
        fenced(`file ${JSON.stringify(ask.path)}`, await view.read(ask)),
      );
    case "search":
      return await withArguments(searchArguments, args, async (ask) =>
        fenced(`lines with ${JSON.stringify(ask.text)}`, await view.search(ask)),
      );
    default:
      return `There is no tool ${JSON.stringify(name.slice(0, 80))}, only list, read and search.`;
  }
}

async function withArguments<T>(
  schema: z.ZodType<T>,
  args: string,
  run: (value: T) => Promise<string>,
): Promise<string> {
  let value: unknown;
  try {
    value = JSON.parse(args.trim() === "" ? "{}" : args);
  } catch {
    return "The arguments are not JSON. Call the tool again.";
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return run(parsed.data);
  const issue = parsed.error.issues[0]!;
  return `The arguments do not fit: ${issue.path.join(".") || "arguments"}: ${issue.message}. Call the tool again.`;
}
