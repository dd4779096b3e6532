/** Preflight: what of a sweep can be seen to fail is refused before anything is launched, all of it at once. */
import { type PreflightResult, preflightEvent, preflightRefused, preflightResult } from "../lib/attempt/functions.ts";
import { type ObjectStore, type ScoreTable, StoreError } from "../lib/platform/ports.ts";
import type { ManifestLine } from "../lib/sweep/manifest-line.ts";
import { functionError } from "./function-error.ts";
import { manifestLines } from "./manifest-lines.ts";
import { publishedPackages } from "./published-package.ts";

export interface PreflightDeps {
  store: ObjectStore;
  scores: ScoreTable;
}

/** So many problems are named; the rest are counted. */
const namedProblems = 20;

/** @throws Proctor.PreflightRefused with all problems, StoreError */
export function preflightHandler(deps: PreflightDeps): (event: unknown) => Promise<PreflightResult> {
  const published = publishedPackages(deps.store);
  return async (event) => {
    const asked = preflightEvent.parse(event);
    const problems: string[] = [];
    const record = await deps.scores.sweep(asked.sweep);
    if (record === null) problems.push(`there is no sweep ${asked.sweep}`);
    else if (record.generation !== asked.generation) {
      problems.push(`sweep ${asked.sweep} is at generation ${record.generation}, not ${asked.generation}`);
    }
    const seen = new Set<string>();
    const packages = new Map<string, Pick<ManifestLine, "task" | "digest">>();
    const lanes: PreflightResult["lanes"] = [];
    for (const lane of asked.lanes) {
      let attempts = 0;
      try {
        for await (const read of manifestLines(deps.store, { bucket: "results", key: lane.manifestKey })) {
          attempts += 1;
          const problem = read.kind === "bad" ? read.reason : lineProblem(read.line, asked, seen);
          if (problem !== null) problems.push(`${lane.manifestKey} line ${read.number}: ${problem}`);
          if (read.kind === "line") packages.set(`${read.line.task}@${read.line.digest}`, read.line);
        }
      } catch (error) {
        if (!(error instanceof StoreError && error.code === "not_found")) throw error;
        problems.push(`${lane.manifestKey} is not there`);
      }
      lanes.push({ ...lane, attempts });
    }
    for (const { task, digest } of packages.values()) {
      const found = await published(task, digest);
      if (found.kind === "unusable") problems.push(found.reason);
    }
    if (problems.length > 0) throw functionError(preflightRefused, problemList(problems));
    return preflightResult.parse({ v: 1, lanes });
  };
}

function lineProblem(
  line: ManifestLine,
  asked: { sweep: string; generation: number },
  seen: Set<string>,
): string | null {
  if (line.sweep !== asked.sweep || line.generation !== asked.generation) {
    return `is of ${line.sweep} generation ${line.generation}, expected ${asked.sweep} generation ${asked.generation}`;
  }
  if (seen.has(line.attempt)) return `has the attempt ${line.attempt} for the second time`;
  seen.add(line.attempt);
  return null;
}

function problemList(problems: readonly string[]): string {
  const more = problems.length - namedProblems;
  return [...problems.slice(0, namedProblems), ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
