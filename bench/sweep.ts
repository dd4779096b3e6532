/** Sweeps for measuring: packages that whatever the agent leaves passes, and a run of them from the sweep file to the rows. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runSweepFile } from "../bin/commands/run.ts";
import type { ChosenLauncher } from "../bin/sweeps/local-launcher.ts";
import type { HistoryEvent } from "../lib/platform/local/interpreter/interpreter.ts";
import { openBubblewrapLauncher } from "../lib/platform/local/launcher/bubblewrap.ts";
import { detectIsolation } from "../lib/platform/local/launcher/isolation.ts";

export interface BenchSweep {
  attempts: number;
  concurrency: number;
  launcher: ChosenLauncher;
  /** `null` says a word and leaves a file of one byte; `mini` asks a scripted model that has it run this command. */
  agent: "null" | { mini: string };
  /** The file below the workspace that decides the one checkpoint. */
  decides: string;
  /** An attempt has ended, with its row. */
  onEnded?(): void;
  onEvent?(event: HistoryEvent): void;
  /** Looks at what was written, before it is removed. */
  look?(runs: string): Promise<void>;
}

/**
 * Runs a sweep in a folder of its own, which is removed. Every attempt has a name of its own, and must pass.
 * @returns seconds from the call to the outcome
 */
export async function runBenchSweep(sweep: BenchSweep): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "proctor-bench-"));
  try {
    writeSweep(folder, sweep);
    const names = new Set<string>();
    const started = performance.now();
    const outcome = await runSweepFile(join(folder, "sweep.yaml"), {
      runs: join(folder, "runs"),
      unisolated: false,
      launcher: sweep.launcher,
      write: (text) => {
        if (text.startsWith("[")) sweep.onEnded?.();
      },
      onEvent(event) {
        if (event.machine === "attempt" && event.type === "ExecutionStarted") names.add(event.execution);
        sweep.onEvent?.(event);
      },
    });
    const seconds = (performance.now() - started) / 1000;
    const { pass } = outcome.statuses;
    if (pass !== sweep.attempts || names.size !== sweep.attempts) {
      throw new Error(
        `${sweep.attempts} attempts were to pass, ${pass ?? 0} did, under ${names.size} names: ${JSON.stringify(outcome.statuses)}`,
      );
    }
    await sweep.look?.(join(folder, "runs"));
    return seconds;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const mostEpochs = 1000;

function writeSweep(folder: string, { attempts, concurrency, agent, decides }: BenchSweep): void {
  const packages = Math.ceil(attempts / mostEpochs);
  if (attempts % packages !== 0) throw new Error(`${attempts} attempts are no multiple of ${packages} packages`);
  const tasks = join(folder, "tasks", "102_exploration");
  mkdirSync(tasks, { recursive: true });
  for (let n = 0; n < packages; n++) {
    const id = `task_bench_${n}`;
    const references = join(folder, "injection", "102_exploration", id, "references");
    mkdirSync(references, { recursive: true });
    const task = { task_id: id, category: "102_exploration", task: "Write a file.", network: "offline" };
    writeFileSync(
      join(tasks, `${id}.yaml`),
      JSON.stringify({ ...task, references: ["references/eval_rule.md"], codex: { max_user_followups: 0 } }),
    );
    writeFileSync(join(references, "eval_rule.md"), "## 5. Checkpoint Rubric\n\n- 1.00 File: it is there.\n");
    const check = { kind: "file_exists", file: decides };
    writeFileSync(join(references, "checks.yaml"), JSON.stringify({ checkpoints: [{ id: "CP1", weight: 1, check }] }));
  }
  const script = join(folder, "script", "executor", "_any");
  mkdirSync(script, { recursive: true });
  const answers = agent === "null" ? [] : [{ tools: [{ name: "bash", arguments: { command: agent.mini } }] }];
  writeFileSync(join(script, "turn-01.yaml"), JSON.stringify([...answers, { text: "The file is written." }]));
  writeFileSync(
    join(folder, "models.yaml"),
    JSON.stringify({ providers: { scripted: { api: "scripted", script: "script", price: { input: 0, output: 0 } } } }),
  );
  writeFileSync(
    join(folder, "sweep.yaml"),
    JSON.stringify({
      name: "bench",
      packages: ".",
      agents: [
        agent === "null"
          ? { name: "null", options: { message: "done", writeFile: { path: decides, content: "a" } } }
          : "mini",
      ],
      models: [{ name: "scripted-model", provider: "scripted" }],
      epochs: attempts / packages,
      supervisor: "checks",
      userSimulator: "none",
      limits: { concurrency },
    }),
  );
}

/** The launcher of real processes, or why there is none. */
export async function bubblewrapHere(): Promise<ChosenLauncher | { missing: string }> {
  const found = await detectIsolation();
  if (!found.bwrap) return { missing: `not measured: ${found.reason}` };
  return { open: (at) => openBubblewrapLauncher({ ...at, bwrap: found }), warning: null };
}
