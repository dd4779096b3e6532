/** Loading all task packages of a repository as large as UniClawBench's, without hashing. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPackages } from "../lib/tasks/load.ts";
import { type Measure, median } from "./measure.ts";
import { publicShape, writeSyntheticRepository } from "./synthetic-repository.ts";

const rounds = 5;

export async function measure(): Promise<Measure[]> {
  const root = await mkdtemp(join(tmpdir(), "proctor-bench-"));
  try {
    writeSyntheticRepository(root);
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      const loaded = loadPackages(root, { env: {} });
      times.push((performance.now() - started) / 1000);
      if (loaded?.found !== publicShape.packages || loaded.ok !== loaded.found) {
        throw new Error(`the synthetic repository did not load: ${loaded?.ok} of ${loaded?.found} packages ok`);
      }
    }
    const first = times[0] ?? 0;
    const round3 = (seconds: number): number => Math.round(seconds * 1000) / 1000;
    return [
      { name: "load 404 task packages, first time", value: round3(first), unit: "s", target: "at most 1.0" },
      { name: "load 404 task packages, median of 5", value: round3(median(times)), unit: "s", target: "at most 1.0" },
    ];
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
