/**
 * Whole attempts, from the sweep file to the row: the null agent, checks only, one turn. In process (the same runner,
 * turn server, HTTP and evidence, no child processes), and with real processes in bubblewrap.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runSweepFile } from "../bin/commands/run.ts";
import type { ChosenLauncher } from "../bin/sweeps/local-launcher.ts";
import { openBubblewrapLauncher } from "../lib/platform/local/launcher/bubblewrap.ts";
import { openInProcessLauncher } from "../lib/platform/local/launcher/in-process.ts";
import { detectIsolation } from "../lib/platform/local/launcher/isolation.ts";
import { localRunner } from "../lib/platform/local/runner.ts";
import type { Measure } from "./measure.ts";

const inProcess: ChosenLauncher = {
  open: (at) => openInProcessLauncher({ ...at, runner: localRunner() }),
  warning: null,
};

interface Ran {
  perSecond: number;
  /** Resident memory in MB after each fifth of the attempts. */
  memory: number[];
}

async function run(attempts: number, concurrency: number, launcher: ChosenLauncher): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "proctor-bench-"));
  try {
    writeSweep(folder, attempts, concurrency);
    const memory: number[] = [];
    let ended = 0;
    const started = performance.now();
    const outcome = await runSweepFile(join(folder, "sweep.yaml"), {
      runs: join(folder, "runs"),
      unisolated: false,
      launcher,
      write(text) {
        if (!text.startsWith("[")) return;
        ended += 1;
        if (ended % Math.ceil(attempts / 5) !== 0) return;
        globalThis.gc?.();
        memory.push(process.memoryUsage.rss() / 1e6);
      },
    });
    const seconds = (performance.now() - started) / 1000;
    if (outcome.statuses.pass !== attempts) throw new Error(`not all passed: ${JSON.stringify(outcome.statuses)}`);
    return { perSecond: attempts / seconds, memory };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Packages that any answer passes, as often as asked. */
function writeSweep(folder: string, attempts: number, concurrency: number): void {
  const packages = Math.ceil(attempts / 1000);
  mkdirSync(join(folder, "tasks", "102_exploration"), { recursive: true });
  for (let n = 0; n < packages; n++) {
    const id = `task_bench_${n}`;
    const references = join(folder, "injection", "102_exploration", id, "references");
    mkdirSync(references, { recursive: true });
    writeFileSync(
      join(folder, "tasks", "102_exploration", `${id}.yaml`),
      `task_id: ${id}\ncategory: 102_exploration\ntask: Write a file.\nreferences: [references/eval_rule.md]\n`,
    );
    writeFileSync(join(references, "eval_rule.md"), "## 5. Checkpoint Rubric\n\n- 1.00 File: it is there.\n");
    writeFileSync(
      join(references, "checks.yaml"),
      "checkpoints:\n  - { id: CP1, weight: 1, check: { kind: file_exists, file: results/a.txt } }\n",
    );
  }
  writeFileSync(join(folder, "models.yaml"), "providers:\n  none: { api: scripted, script: . }\n");
  writeFileSync(
    join(folder, "sweep.yaml"),
    [
      "name: bench",
      "packages: .",
      "agents: [{ name: 'null', options: { message: done, writeFile: { path: results/a.txt, content: a } } }]",
      "models: [{ name: none, provider: none }]",
      `epochs: ${Math.ceil(attempts / packages)}`,
      "supervisor: checks",
      "userSimulator: none",
      `limits: { concurrency: ${concurrency} }`,
      "",
    ].join("\n"),
  );
}

export async function measure(): Promise<Measure[]> {
  const warm = await run(200, 16, inProcess);
  const long = await run(3000, 16, inProcess);
  const measures: Measure[] = [
    { name: "attempts in process, 200", value: warm.perSecond, unit: "1/s", target: "at least 30" },
    { name: "attempts in process, 3,000", value: long.perSecond, unit: "1/s", target: "at least 30" },
    { name: "memory after 3,000 attempts", value: Math.max(...long.memory), unit: "MB", target: "at most 400" },
    {
      name: "memory, last fifth over first fifth",
      value: (long.memory.at(-1) ?? 0) / (long.memory[0] ?? 1),
      unit: "ratio",
      target: "about 1",
    },
  ];
  const found = await detectIsolation();
  if (found.bwrap) {
    const real = await run(60, 4, { open: (at) => openBubblewrapLauncher({ ...at, bwrap: found }), warning: null });
    measures.push({
      name: "attempts with real processes in bubblewrap",
      value: real.perSecond,
      unit: "1/s",
      target: "at least 4",
    });
  }
  return measures;
}
