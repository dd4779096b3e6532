/** YAML that a user wrote, read with limits: a hostile file costs an error message, never the process. */
import { parseDocument } from "yaml";
import type { Problem } from "./problem.ts";

const yamlLimits = {
  /** Bytes of one file. The largest public task file has 10 KB. */
  bytes: 1_048_576,
  /** How often aliases may be resolved in all: stops files that unfold to gigabytes. */
  aliases: 100,
} as const;

export type YamlResult = { ok: true; value: unknown } | { ok: false; problem: Problem };

/**
 * One document of YAML 1.2 as plain data. A broken file is one problem with the line of the first fault; keys that stand
 * twice are a fault.
 */
export function readYaml(text: string, file: string): YamlResult {
  const broken = (found: string, expected: string): YamlResult => ({
    ok: false,
    problem: { file, field: "", severity: "error", found, expected },
  });
  if (text.length > yamlLimits.bytes) {
    return broken(`${text.length} characters`, `at most ${yamlLimits.bytes}`);
  }
  try {
    const document = parseDocument(text, { prettyErrors: false });
    const fault = document.errors[0];
    if (fault) {
      const before = text.slice(0, fault.pos[0]).split("\n");
      const where = `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
      return broken(`broken YAML at ${where}: ${firstLine(fault.message)}`, "one YAML document");
    }
    return { ok: true, value: document.toJS({ maxAliasCount: yamlLimits.aliases }) as unknown };
  } catch (error) {
    // The parser recurses, so absurd nesting ends as RangeError; too many aliases end as ReferenceError.
    const nested = error instanceof RangeError;
    return broken(
      nested ? "YAML nested too deeply" : `YAML that cannot be resolved: ${firstLine(String(error))}`,
      nested ? "a file nested a few levels" : `a file with at most ${yamlLimits.aliases} uses of aliases`,
    );
  }
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? text;
}
