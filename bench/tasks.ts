/**
 * Loading all task packages of a repository as large as UniClawBench's, without hashing. Each round is a process of its
 * own, `proctor tasks list --json`, so nothing is warm but the system's cache of files.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { loadPackages } from "../lib/tasks/load.ts";
import { type Measure, median } from "./measure.ts";
import { proctor } from "./startup.ts";
import { publicShape, writeSyntheticRepository } from "./synthetic-repository.ts";

const rounds = 7;
const listed = z.object({ packages: z.number(), ok: z.number(), elapsedMs: z.number() });

export async function measure(): Promise<Measure[]> {
  const root = await mkdtemp(join(tmpdir(), "proctor-bench-"));
  try {
    writeSyntheticRepository(root);
    const loads: number[] = [];
    const processes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      const text = execFileSync(process.execPath, [proctor(), "tasks", "list", root, "--json"], {
        encoding: "utf8",
        maxBuffer: 64 * 1024 ** 2,
      });
      processes.push(performance.now() - started);
      const { packages, ok, elapsedMs } = listed.parse(JSON.parse(text));
      expectAll(packages, ok);
      loads.push(elapsedMs);
    }
    const again: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      const loaded = loadPackages(root, { env: {} });
      again.push(performance.now() - started);
      expectAll(loaded?.found ?? 0, loaded?.ok ?? 0);
    }
    const all = `load ${publicShape.packages} task packages`;
    return [
      { name: `${all}, first load of a process`, value: median(loads) / 1000, unit: "s", target: "at most 1.0" },
      { name: `${all}, the slowest of ${rounds} processes`, value: Math.max(...loads) / 1000, unit: "s", target: null },
      { name: `${all}, again in one process`, value: median(again) / 1000, unit: "s", target: "at most 1.0" },
      { name: "proctor tasks list of them, whole process", value: median(processes) / 1000, unit: "s", target: null },
    ];
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

function expectAll(found: number, ok: number): void {
  if (found === publicShape.packages && ok === found) return;
  throw new Error(`the synthetic repository did not load: ${ok} of ${found} packages ok`);
}
