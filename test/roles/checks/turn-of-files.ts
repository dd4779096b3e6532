import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CheckRunner } from "../../../lib/platform/ports.ts";
import { decideCheck } from "../../../lib/roles/checks/decide.ts";
import type { EvidenceReader } from "../../../lib/roles/checks/evaluate.ts";
import { type Checks, parseChecks } from "../../../lib/roles/checks/schema.ts";
import { problemLine } from "../../../lib/tasks/problem.ts";

export const repository = fileURLToPath(new URL("../../../", import.meta.url));

/** Decides in this thread, without limits. */
export const inThread: CheckRunner = {
  evaluate: (job) =>
    Promise.all(
      job.checks.map(({ id }) =>
        decideCheck(job, id, () => {
          throw new Error("no database here");
        }),
      ),
    ),
};

export function checksOf(text: string): Checks {
  const parsed = parseChecks(text, "checks.yaml");
  if (Array.isArray(parsed)) throw new Error(parsed.map(problemLine).join("\n"));
  return parsed.value;
}

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Files by the names that checks give them, `results/a.txt` say; what is not among them, from a package's folder. */
export function readerOf(files: Files, injection?: string): EvidenceReader {
  return async (source, path, maxBytes) => {
    const given = files[`${source}/${path}`];
    if (given !== undefined) {
      const bytes = typeof given === "string" ? Buffer.from(given) : given;
      if (bytes.byteLength > maxBytes) return { status: "too_large", bytes: bytes.byteLength };
      return { status: "ok", bytes };
    }
    if (injection === undefined || source === "results") return { status: "missing" };
    const below = source === "sources" ? join("sources", path) : path;
    return {
      status: "ok",
      bytes: await readFile(join(repository, "test/fixtures/uniclawbench/injection", injection, below)),
    };
  };
}
