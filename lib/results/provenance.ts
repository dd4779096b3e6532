/** What a report says of how its numbers came about: roles, prompts, rubrics, images, seeds, isolation, lowered limits. */
import type { Isolation } from "../attempt/vocabulary.ts";
import type { ManifestLine } from "../sweep/manifest-line.ts";
import type { StoredSweep } from "../sweep/stored-sweep.ts";
import type { ScoreRow } from "./score-row.ts";

export interface Provenance {
  /** Attempts by isolation of the rows that have one. */
  isolation: Partial<Record<Isolation, number>>;
  executors: string[];
  /** `checks`, or the supervisor's model. */
  supervisors: string[];
  /** `none`, or the user simulator's model. */
  userSimulators: string[];
  /** Of the roles, as the rows have them: supervisor's alone, or with the user simulator's where it wrote. */
  prompts: string[];
  /** Hash of what agents were told before each request. */
  preamble: string;
  rubrics: number;
  images: string[];
  /** The sweep's; that of each attempt follows from it. */
  seed: number;
  compat: boolean;
  /** Limits that the sweep lowered below the packages' own, with the values in force. */
  loweredLimits: Record<string, number[]>;
}

export function provenanceOf(
  { seed, preamble }: Pick<StoredSweep, "seed" | "preamble">,
  planned: readonly ManifestLine[],
  rows: readonly ScoreRow[],
): Provenance {
  const isolation: Provenance["isolation"] = {};
  const loweredLimits: Record<string, number[]> = {};
  for (const row of rows) {
    if (row.isolation) isolation[row.isolation] = (isolation[row.isolation] ?? 0) + 1;
    for (const [name, value] of Object.entries(row.lowered_limits)) {
      loweredLimits[name] = distinct([...(loweredLimits[name] ?? []), value]).sort((a, b) => a - b);
    }
  }
  return {
    isolation,
    executors: distinct(planned.map(({ agent, model }) => `${agent.name} ${agent.version} with ${model.name}`)),
    supervisors: distinct(
      planned.map(({ supervisor }) =>
        supervisor.kind === "checks" ? "checks" : `${supervisor.model.name} (${supervisor.effort})`,
      ),
    ),
    userSimulators: distinct(
      planned.map(({ userSimulator }) => (userSimulator.kind === "none" ? "none" : userSimulator.model.name)),
    ),
    prompts: distinct(rows.flatMap(({ digests }) => digests.prompts ?? [])),
    rubrics: distinct(rows.flatMap(({ digests }) => digests.rubric ?? [])).length,
    images: distinct(rows.flatMap(({ digests }) => digests.image ?? [])),
    seed,
    preamble,
    compat: planned.some(({ compat }) => compat !== null),
    loweredLimits,
  };
}

/** The head of a report, for people. */
export function provenanceText(provenance: Provenance): string[] {
  const isolation = Object.entries(provenance.isolation).map(([name, count]) => `${name} (${count} tries)`);
  const lines = [
    `isolation: ${isolation.join(", ") || "no try yet"}`,
    `supervisor: ${provenance.supervisors.join(", ")}; user simulator: ${provenance.userSimulators.join(", ")}`,
  ];
  const lowered = Object.entries(provenance.loweredLimits).map(([name, values]) => `${name} ${values.join("/")}`);
  if (lowered.length > 0) lines.push(`limits lowered by the sweep: ${lowered.join(", ")}`);
  lines.push(`seed: ${provenance.seed}; preamble: ${provenance.preamble.slice(0, 12)}`);
  if (provenance.compat) lines.push("compat: uniclawbench");
  return lines;
}

function distinct<T>(items: readonly T[]): T[] {
  return [...new Set(items)];
}
