/**
 * A small sweep of its own in a temporary folder, run by the built command line as a process of its own: what these
 * tests kill, stop and take up again. Its temporary files are its own too, so that leftovers can be counted.
 */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { openRuns, type Runs } from "../../../lib/platform/local/open-runs.ts";
import type { Lease, ScoreTable, SweepRecord } from "../../../lib/platform/ports.ts";
import type { ScoreRow } from "../../../lib/results/score-row.ts";
import { Proctor, processesNaming, until } from "./processes.ts";

export interface SweepGiven {
  name?: string;
  tasks?: string[];
  /** Globs of the sweep file. */
  only?: string[];
  models: string[];
  /** Fields of the sweep file that replace those of `sweep` below. */
  fields?: Record<string, unknown>;
}

/** Turns of a scripted model, as YAML documents hold them. */
export type Script = unknown[];

const program = fileURLToPath(new URL("../../../dist/proctor.js", import.meta.url));

export class SweepWorld {
  readonly folder: string;
  readonly runs: string;
  readonly temporary: string;
  readonly #isolation: "bwrap" | "none";
  readonly #started: Proctor[] = [];
  #reader: Runs | null = null;

  constructor(isolation: "bwrap" | "none" = "none") {
    // Short, since sockets stand below it: macOS has long names for its temporary files.
    const place = process.platform === "darwin" ? "/tmp" : tmpdir();
    this.folder = realpathSync(mkdtempSync(join(place, "pw-")));
    this.runs = join(this.folder, "runs");
    this.temporary = join(this.folder, "t");
    this.#isolation = isolation;
    mkdirSync(this.temporary);
  }

  write(path: string, content: string): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  /** A package whose only checkpoint is that results/answer.txt says `right`; `judged` leaves half of it to a model. */
  addTask(id: string, judged = false): void {
    this.write(
      `packages/tasks/102_exploration/${id}.yaml`,
      stringify({ task_id: id, category: "102_exploration", network: "offline", task: "Write the right answer." }),
    );
    const half = "| ID | What | Weight |\n|---|---|---|\n| CP1 | the answer | 0.5 |\n| CP2 | the reason | 0.5 |\n";
    const rubric = `# Rubric\n\n## 5. Checkpoint Rubric\n\n${half}`;
    this.write(`packages/injection/102_exploration/${id}/references/eval_rule.md`, rubric);
    const check = {
      kind: "expression",
      files: { answer: { file: "results/answer.txt", as: "text" } },
      expression: '$trim($answer) = "right"',
    };
    const checkpoints = judged
      ? [
          { id: "CP1", weight: 0.5, check },
          { id: "CP2", weight: 0.5, judge: true },
        ]
      : [{ id: "CP1", weight: 1, check }];
    this.write(`checks/${id}.yaml`, stringify({ checkpoints }));
  }

  /** Turn `turn` of a scripted model's role. */
  script(model: string, role: "executor" | "supervisor" | "simulator", turn: number, answers: Script): void {
    this.write(`scripts/${model}/${role}/_any/turn-0${turn}.yaml`, stringify(answers));
  }

  /** Writes the sweep file and the models that it names. @returns its path */
  sweep({ name = "s", only = ["*"], models, fields = {} }: SweepGiven): string {
    const all = [...models, "judge", "person"];
    this.write(
      "models.yaml",
      stringify({
        providers: {
          scripted: {
            api: "scripted",
            price: { input: 1, output: 1 },
            models: Object.fromEntries(all.map((model) => [model, { script: `scripts/${model}` }])),
          },
        },
      }),
    );
    const file = `${name}.yaml`;
    this.write(
      file,
      stringify({
        name,
        packages: "packages",
        checks: "checks",
        tasks: only,
        agents: ["mini"],
        models: models.map((model) => ({ name: model, provider: "scripted" })),
        supervisor: "checks",
        userSimulator: "none",
        retries: { infra: 0, rateLimit: 0 },
        order: "as-listed",
        ...fields,
        limits: { concurrency: 3, turnSeconds: 20, totalSeconds: 40, ...(fields.limits as object | undefined) },
      }),
    );
    return join(this.folder, file);
  }

  /** Starts the command line. It and all that it starts is ended with this world. */
  proctor(...args: string[]): Proctor {
    const { PROCTOR_BWRAP: _bwrap, PROCTOR_RUNS: _runs, ...env } = process.env;
    const hidden = this.#isolation === "none" ? { PROCTOR_BWRAP: "/nowhere" } : {};
    const started = new Proctor(process.execPath, [program, "--runs", this.runs, ...args], {
      ...env,
      ...hidden,
      TMPDIR: this.temporary,
    });
    this.#started.push(started);
    return started;
  }

  /** Rows of a sweep, by attempt and try. */
  async rows(sweep = "s"): Promise<ScoreRow[]> {
    const rows: ScoreRow[] = [];
    for await (const row of this.#scores.rows(sweep)) rows.push(row);
    return rows;
  }

  record(sweep = "s"): Promise<SweepRecord | null> {
    return this.#scores.sweep(sweep);
  }

  leases(sweep = "s"): Promise<Lease[]> {
    return this.#scores.leases(sweep);
  }

  /** Every stored object: its path below objects/ and a hash of it. */
  objects(): Map<string, string> {
    const hashOf = (path: string): string =>
      createHash("sha256")
        .update(readFileSync(join(this.runs, "objects", path)))
        .digest("hex");
    return new Map(this.paths().map((path) => [path, hashOf(path)]));
  }

  /** Paths of all stored objects. */
  paths(): string[] {
    return filesBelow(join(this.runs, "objects"));
  }

  /** Folders of sessions and other temporary files that stand now; not the folder of sockets, which stays. */
  leftovers(): string[] {
    return readdirSync(this.temporary).filter((name) => name !== `proctor-${process.getuid?.() ?? 0}`);
  }

  sockets(): string[] {
    return filesBelow(join(this.temporary, `proctor-${process.getuid?.() ?? 0}`));
  }

  /** Ends what still runs of this world and removes it. */
  async remove(): Promise<void> {
    for (const one of this.#started) {
      if (!one.hasEnded) one.signal("SIGKILL");
      await one.ended;
    }
    await until(() => processesNaming(this.folder).length === 0, "its processes to end").catch(() => undefined);
    await this.#reader?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Read beside whoever runs. */
  get #scores(): ScoreTable {
    this.#reader ??= openRuns(this.runs, "operator");
    return this.#reader.scores;
  }
}

/** An executor that leaves a daemon behind and answers after `seconds`. */
export function answering(answer: string, seconds = 0): Script {
  const command = `(setsid sleep 300 >/dev/null 2>&1 &); sleep ${seconds}; mkdir -p /tmp_workspace/results; echo ${answer} > /tmp_workspace/results/answer.txt`;
  return [{ tools: [{ name: "bash", arguments: { command } }] }, { text: "The answer is saved." }];
}

/** A judge's answer on turn `turn`: full credit and a pass, or none and another turn. */
export function judging(credit: 0 | 1, turn: number, delayMs = 0): Script[number] {
  return {
    delayMs,
    json: {
      checkpoints: [{ id: "CP2", credit, evidence: [`turn-0${turn}/results/answer.txt`], note: "As scripted." }],
      caps: [],
      verdict: credit === 1 ? "pass" : "continue",
      attempt_state: credit === 1 ? "complete_and_passed" : "complete_but_failed",
      recoverable: true,
      confidence: "high",
      rationale: "As scripted.",
      missing_artifacts: [],
      guidance_tags: [],
    },
  };
}

/** The message of a user simulator. */
export function lookAgain(delayMs = 0): Script[number] {
  return {
    delayMs,
    json: { mode: "instruction", tone: "neutral", candidate_feedback: "Look again.", public_feedback_points: [] },
  };
}

/** Paths of all files below a folder, of what there is of it. */
function filesBelow(root: string, below = ""): string[] {
  const found: string[] = [];
  let entries: import("node:fs").Dirent[];
  try {
    entries = readdirSync(join(root, below), { withFileTypes: true });
  } catch {
    return found;
  }
  for (const entry of entries) {
    const path = join(below, entry.name);
    if (entry.name === ".new") continue;
    if (entry.isDirectory()) found.push(...filesBelow(root, path));
    else found.push(path);
  }
  return found;
}
