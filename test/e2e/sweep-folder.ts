/** A sweep with packages and scripted models of its own in a temporary folder, and the built command line to run it with. */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { type ScoreRow, scoreRow } from "../../lib/results/score-row.ts";
import { type PackageFolder, packageFolder } from "../support/package-folder.ts";

export const proctorBundle = fileURLToPath(new URL("../../dist/proctor.js", import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface SweepFolder {
  path: string;
  /** Folder of runs that `proctor` uses. */
  runs: string;
  packages: PackageFolder;
  write(path: string, content: string | Uint8Array): void;
  /** Answers of a scripted model; `task` is `_any` unless given. */
  script(
    model: string,
    role: "executor" | "supervisor" | "simulator",
    answers: unknown[],
    at?: { task?: string; turn?: number },
  ): void;
  /** Writes models.yaml with every model that has a script and these other providers, and sweep.yaml. */
  sweep(fields: Record<string, unknown>, providers?: Record<string, unknown>): string;
  proctor(args: string[], options?: ProctorOptions): Promise<Ended>;
  /** Every file below a folder, by its path in it. */
  files(below?: string): Map<string, Buffer>;
  remove(): void;
}

export interface ProctorOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Without `--runs`. */
  bare?: boolean;
  /** Put before the command: `unshare` and its options, say. */
  through?: string[];
}

/** A rubric in the form of the public ones: two checkpoints of equal weight. */
export const rubric = (more = ""): string => `# Hidden evaluation rule

## 5. Checkpoint Rubric

| ID  | What matters | Weight |
| --- | ------------ | ------ |
| CP1 | The answer is there. ${more} | 0.50 |
| CP2 | The answer is right. | 0.50 |

## 6. Score caps

- none
`;

/** A supervisor's answer in the form that it is asked for. */
export const judged = (credits: Record<string, number>, more: Record<string, unknown> = {}): { json: unknown } => ({
  json: {
    checkpoints: Object.entries(credits).map(([id, credit]) => ({
      id,
      credit,
      evidence: [`turn-01/transcript.jsonl`],
      note: "looked at",
    })),
    caps: [],
    verdict: "pass",
    attempt_state: "complete_and_passed",
    recoverable: false,
    confidence: "high",
    rationale: "It is as asked.",
    missing_artifacts: [],
    guidance_tags: [],
    ...more,
  },
});

export function sweepFolder(): SweepFolder {
  const packages = packageFolder();
  const path = packages.path;
  const runs = join(path, "runs");
  const scripted = new Set<string>();
  const write = (name: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  };
  return {
    path,
    runs,
    packages,
    write,
    script(model, role, answers, { task = "_any", turn = 1 } = {}) {
      scripted.add(model);
      write(`scripts/${model}/${role}/${task}/turn-${String(turn).padStart(2, "0")}.yaml`, stringify(answers));
    },
    sweep(fields, providers = {}) {
      const models = Object.fromEntries([...scripted].map((model) => [model, { script: `scripts/${model}` }]));
      write("models.yaml", stringify({ providers: { scripted: { api: "scripted", models }, ...providers } }));
      write(
        "sweep.yaml",
        stringify({
          name: "s",
          packages: ".",
          agents: ["mini"],
          supervisor: "checks",
          userSimulator: "none",
          retries: { infra: 0, rateLimit: 0 },
          ...fields,
        }),
      );
      return join(path, "sweep.yaml");
    },
    proctor: (args, options = {}) =>
      proctor(options.bare ? args : [...args, "--runs", runs], { cwd: path, ...options }),
    files: (below = runs) => filesBelow(below),
    remove: () => packages.remove(),
  };
}

/** Rows of a sweep, as its last compaction wrote them. */
export function storedRows(of: SweepFolder): ScoreRow[] {
  const last = [...of.files()]
    .filter(([path]) => /^objects\/results\/scores\/.*\.jsonl$/.test(path))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .at(-1);
  if (last === undefined) return [];
  return last[1]
    .toString("utf8")
    .trim()
    .split("\n")
    .map((line) => scoreRow.parse(JSON.parse(line)));
}

/** Runs the built command line to its end. */
export function proctor(args: string[], options: ProctorOptions = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const [file = "", ...rest] = [...(options.through ?? []), process.execPath, proctorBundle, ...args];
    const child = spawn(file, rest, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => out.push(part));
    child.stderr.on("data", (part: Buffer) => err.push(part));
    child.on("error", reject);
    child.on("close", (code) =>
      resolve({ code, stdout: Buffer.concat(out).toString("utf8"), stderr: Buffer.concat(err).toString("utf8") }),
    );
  });
}

function filesBelow(folder: string): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile()) found.set(relative(folder, file), readFileSync(file));
  }
  return found;
}
