/** Calls and files that are wrong, through the built command line: an exit code, and words that say what to do. */
import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { runSweepFile } from "../../bin/commands/run.ts";
import { ProblemsError } from "../../lib/tasks/problem.ts";
import { bubblewrap, describeWithBubblewrap } from "../bubblewrap.ts";
import { proctorBundle, rubric, type SweepFolder, storedRows, sweepFolder } from "./sweep-folder.ts";

const checks = stringify({
  checkpoints: [{ id: "CP1", weight: 1, check: { kind: "file_exists", file: "results/a" } }],
});
const files = { "references/eval_rule.md": rubric(), "references/checks.yaml": checks };

let folder: SweepFolder;
const sweeps: SweepFolder[] = [];

/** A sweep that would run, spoiled by `spoil`. */
function spoiled(spoil: (made: SweepFolder) => void, fields: Record<string, unknown> = {}): SweepFolder {
  const made = sweepFolder();
  sweeps.push(made);
  made.packages.add("t", { files, fields: "timeout_seconds: 60" });
  made.script("m", "executor", [{ text: "I have finished the request." }]);
  made.sweep({ models: [{ name: "m", provider: "scripted" }], ...fields });
  spoil(made);
  return made;
}

beforeAll(() => {
  folder = spoiled(() => undefined, { agents: ["null"], name: "ok" });
});
afterAll(() => {
  for (const made of sweeps) made.remove();
});

it.each<[string, () => SweepFolder, RegExp]>([
  [
    "a sweep that is no YAML",
    () => spoiled((made) => made.write("sweep.yaml", "name: [")),
    /sweep\.yaml.*broken YAML at line 1/,
  ],
  [
    "a models.yaml that is no YAML",
    () => spoiled((made) => made.write("models.yaml", "a: b: c")),
    /models\.yaml.*broken YAML at line 1/,
  ],
  [
    "a task that is no YAML",
    () => spoiled((made) => made.write("tasks/102_exploration/t.yaml", "a: [")),
    /t\.yaml.*broken YAML at line 1/,
  ],
  [
    "checks that are no YAML",
    () => spoiled((made) => made.write("injection/102_exploration/t/references/checks.yaml", "a: [")),
    /checks\.yaml.*broken YAML at line 1/,
  ],
  [
    "a package without a rubric",
    () => {
      const made = spoiled(() => undefined);
      rmSync(join(made.path, "injection/102_exploration/t/references/eval_rule.md"));
      return made;
    },
    /eval_rule\.md/,
  ],
  [
    "limits above the package's",
    () => spoiled(() => undefined, { limits: { turnSeconds: 61 } }),
    /limits\.turnSeconds.*61/,
  ],
  ["an unknown agent", () => spoiled(() => undefined, { agents: ["minni"] }), /agents.*mini/],
  [
    "an unknown model",
    () => spoiled(() => undefined, { models: [{ name: "n", provider: "scripted" }] }),
    /models\.0.*\bm\b/,
  ],
  ["an unknown provider", () => spoiled(() => undefined, { models: [{ name: "m", provider: "scriptd" }] }), /scripted/],
  ["an unknown field", () => spoiled(() => undefined, { epoch: 3 }), /epoch.*`epochs`, the nearest known field/],
  ["ids that differ in case alone", () => spoiled((made) => made.packages.add("T", { files })), /case/],
  ["no models.yaml", () => spoiled(() => undefined, { modelsFile: "none.yaml" }), /none\.yaml.*ENOENT/],
  ["no folder of packages", () => spoiled(() => undefined, { packages: "none" }), /packages.*none/],
  [
    "a folder without packages",
    () => spoiled((made) => made.write("empty/a", ""), { packages: "empty" }),
    /packages.*empty/,
  ],
  [
    "a script that is not there",
    () =>
      spoiled((made) =>
        made.write("models.yaml", "providers: {scripted: {api: scripted, models: {m: {script: none}}}}"),
      ),
    /no folder .*none/,
  ],
  ["a name with a path in it", () => spoiled(() => undefined, { name: "../s" }), /name.*letters, digits/],
])("%s is refused before anything is started or published", async (_, make, words) => {
  const made = make();
  const options = { runs: made.runs, unisolated: false, write: () => undefined };
  const refused = await runSweepFile(join(made.path, "sweep.yaml"), options).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ProblemsError);
  expect((refused as ProblemsError).message).toMatch(words);
  expect([...made.files(made.path).keys()].filter((path) => /^runs\/objects\/./.test(path))).toEqual([]);
});

it("what is refused is exit 2, with every problem in one JSON object", async () => {
  const made = spoiled(() => undefined, { epoch: 3, agents: [] });
  const ended = await made.proctor(["run", "sweep.yaml", "--json"]);
  expect(ended.code).toBe(2);
  expect(JSON.parse(ended.stdout).problems.map(({ field }: { field: string }) => field)).toEqual(["agents", "epoch"]);
});

it.each<[string, string[], number, RegExp]>([
  ["no command", [], 2, /no command/],
  ["an unknown command", ["frobnicate"], 2, /unknown command/],
  ["an unknown option", ["run", "sweep.yaml", "--frob"], 2, /unknown option/],
  ["a missing argument", ["abort"], 2, /missing required argument/],
  ["an unknown sweep", ["report", "none", "--runs", "empty-runs"], 2, /no sweep none/],
  ["runs that are not there", ["status", "none", "--runs", "nowhere"], 2, /no folder nowhere/],
  ["a status that is no error", ["retry", "ok", "--status", "pass"], 2, /pass is not an error/],
  ["packages that are not there", ["tasks", "validate", "nowhere"], 2, /no such folder/],
  ["runs that are a file", ["run", "sweep.yaml", "--runs", "models.yaml"], 3, /is a file, not a folder/],
  ["runs below a file", ["run", "sweep.yaml", "--runs", "models.yaml/x"], 3, /is a file, not a folder/],
  ["runs that hold something else", ["run", "sweep.yaml", "--runs", "tasks"], 3, /holds something else/],
  ["runs where no folder can be made", ["run", "sweep.yaml", "--runs", "/proc/proctor/runs"], 3, /can not be used/],
])("%s: an exit code and one JSON object", async (_, args, code, words) => {
  mkdirSync(join(folder.path, "empty-runs"), { recursive: true });
  const ended = await folder.proctor([...args, "--json"], { bare: true });
  expect(ended.code).toBe(code);
  expect(JSON.parse(ended.stdout)).toMatchObject({ error: expect.stringMatching(words), problems: [] });
});

describeWithBubblewrap("a folder of runs on a read-only disk", () => {
  it("is said so: exit 3", async () => {
    const closed = join(folder.path, "closed");
    mkdirSync(closed);
    const through = [bubblewrap().path, "--dev-bind", "/", "/", "--ro-bind", closed, closed];
    const ended = await folder.proctor(["run", "sweep.yaml", "--runs", closed, "--json"], { bare: true, through });
    expect(ended.code).toBe(3);
    expect(JSON.parse(ended.stdout).error).toMatch(/closed can not be used: .*read-only/);
  });
});

it("readers that leave, and streams that are closed, end no sweep", async () => {
  const shell = (command: string): Promise<number | null> =>
    new Promise((resolve) => {
      const child = spawn("/bin/sh", ["-c", command], { cwd: folder.path, stdio: "ignore" });
      child.on("close", resolve);
    });
  const proctor = `'${process.execPath}' '${proctorBundle}'`;
  const run = `${proctor} run sweep.yaml --json`;
  const codes = await Promise.all([
    shell(`{ ${run} --runs r1 2>&1 >r1.json; echo $? > r1.code; } | head -c 1; exit $(cat r1.code)`),
    shell(`${run} --runs r2 <&- >r2.json`),
    shell(`{ ${run} --runs r3; echo $? > r3.code; } | true; exit $(cat r3.code)`),
  ]);
  expect(codes).toEqual([0, 0, 0]);
  for (const runs of ["r1", "r2", "r3"]) {
    const rows = storedRows({ ...folder, files: () => folder.files(join(folder.path, runs)) });
    expect(rows.map(({ status }) => status)).toEqual(["budget_exhausted"]);
  }
});
