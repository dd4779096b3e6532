import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeSyntheticRepository } from "../../bench/synthetic-repository.ts";
import { type LoadedFolder, type LoadOptions, loadPackages } from "../../lib/tasks/load.ts";
import { type Problem, problemLine } from "../../lib/tasks/problem.ts";
import { runnableProblems } from "../../lib/tasks/runnable.ts";
import { type PackageFolder, packageFolder, publicPackages } from "../support/package-folder.ts";

const errorsOf = (loaded: LoadedFolder): Problem[] => loaded.problems.filter((problem) => problem.severity === "error");

describe("the public packages", () => {
  const loaded = loadPackages(publicPackages, { env: {} }) as LoadedFolder;

  it("load, all twelve", () => {
    expect(loaded.found).toBe(12);
    expect(loaded.packages).toHaveLength(12);
    expect(loaded.ok).toBe(11);
    expect(loaded.byCategory["102_exploration"]).toEqual({ packages: 4, ok: 4 });
    expect(loaded.byCategory["104_multimodal"]).toEqual({ packages: 2, ok: 1 });
  });

  it("have one LFS pointer among them, which is not ok", () => {
    expect(errorsOf(loaded)).toMatchObject([
      {
        file: expect.stringMatching(/panel_sheet\.png$/),
        found: "a Git LFS pointer",
        expected: expect.stringContaining("git lfs pull"),
      },
    ]);
    expect(loaded.packages.find((pkg) => !pkg.ok)?.id).toBe("task_104_04_panel_figure3_reproduction");
  });

  it("warn about privacy values, once, until the environment has them", () => {
    const warnings = loaded.problems.filter((problem) => problem.severity === "warning");
    expect(warnings).toMatchObject([
      {
        file: expect.stringMatching(/task_103_07.*\.privacy$/),
        found: "no value for OUTLOOK_URL, EMAIL_ADDRESS, EMAIL_PASSWORD",
      },
    ]);
    const env = { OUTLOOK_URL: "u", EMAIL_ADDRESS: "a", EMAIL_PASSWORD: "p" };
    expect(loadPackages(publicPackages, { env })?.problems.filter((problem) => problem.severity === "warning")).toEqual(
      [],
    );
  });

  it("know their language, capability, twin and cluster", () => {
    const chinese = loaded.packages.find((pkg) => pkg.id === "task_202_35_sudoku_9x9_easiest");
    expect(chinese).toMatchObject({
      language: "zh",
      capability: "exploration",
      twin: "task_102_35_sudoku_9x9_easiest",
      cluster: "task_102_35_sudoku_9x9_easiest",
    });
    // Its request quotes a Chinese label.
    expect(loaded.packages.find((pkg) => pkg.id.startsWith("task_104_04"))?.language).toBe("en");
  });

  it("load from their tasks/ folder too", () => {
    expect(loadPackages(join(publicPackages, "tasks"), { env: {} })?.found).toBe(12);
  });
});

describe("a repository like the public one", () => {
  it("loads whole, templates aside", () => {
    const folder = packageFolder();
    try {
      const { packages } = writeSyntheticRepository(folder.path, 0.02);
      const loaded = loadPackages(folder.path, { env: { API_TOKEN: "x" } }) as LoadedFolder;
      expect(loaded).toMatchObject({ found: packages, ok: packages, problems: [] });
      expect(loaded.packages.every((pkg) => pkg.twin !== null)).toBe(true);
    } finally {
      folder.remove();
    }
  });
});

describe("a folder of packages", () => {
  let folder: PackageFolder;
  beforeEach(() => {
    folder = packageFolder();
  });
  afterEach(() => folder.remove());
  const load = (options: Partial<LoadOptions> = {}): LoadedFolder =>
    loadPackages(folder.path, { env: {}, ...options }) as LoadedFolder;
  const lines = (options: Partial<LoadOptions> = {}): string[] =>
    load(options).problems.map((problem) => problemLine(problem).replaceAll(`${folder.path}/`, ""));

  it("is none without tasks/", () => {
    expect(loadPackages(folder.path, { env: {} })).toBeNull();
    expect(loadPackages(join(folder.path, "missing"), { env: {} })).toBeNull();
  });

  it("skips templates, files and folders, but no task about templates", () => {
    folder.add("task_000_example", { category: "000_template" });
    folder.write("tasks/102_exploration/_template.yaml", "nonsense: [");
    folder.write("tasks/102_exploration/task_000_template_example.yaml", "nonsense: [");
    folder.add("task_102_19_museum_exhibit_template");
    folder.add("task_101_03_template_engine");
    expect(load().packages.map((pkg) => pkg.id)).toEqual([
      "task_101_03_template_engine",
      "task_102_19_museum_exhibit_template",
    ]);
    expect(load().problems).toEqual([]);
  });

  it("finds a package by its id, whatever its file is called", () => {
    folder.add("task_1");
    folder.write("tasks/102_exploration/other.yaml", "task_id: task_2\ncategory: 102_exploration\ntask: x\n");
    folder.write("injection/102_exploration/task_2/references/eval_rule.md", "# Rubric\n");
    expect(load().packages.map((pkg) => [pkg.id, pkg.ok])).toEqual([
      ["task_2", true],
      ["task_1", true],
    ]);
  });

  it("loads the others beside a broken file, which is one problem with its line", () => {
    folder.add("task_1");
    folder.write("tasks/102_exploration/task_2.yaml", "task_id: task_2\ntask: [1\ncategory: x\n");
    const loaded = load();
    expect(loaded).toMatchObject({ found: 2, ok: 1, byCategory: { "102_exploration": { packages: 2, ok: 1 } } });
    expect(errorsOf(loaded)).toMatchObject([
      { file: join(folder.path, "tasks/102_exploration/task_2.yaml"), found: expect.stringMatching(/line \d/) },
    ]);
  });

  it("tells what is wrong with file and folder at once", () => {
    folder.add("task_1", { fields: "sourcs: []\nsources: [gone.txt]\n", files: { ".privacy": "A=secret\n" } });
    folder.write("tasks/102_exploration/task_2.yaml", "task_id: task_2\ncategory: 102_exploration\n");
    expect(lines()).toEqual([
      "error: tasks/102_exploration/task_1.yaml: sourcs: found an unknown field, expected `sources`, the nearest known field",
      expect.stringMatching(
        /^error: injection\/102_exploration\/task_1\/\.privacy: line 1: found a value for A, expected the name/,
      ),
      expect.stringMatching(/^error: tasks\/102_exploration\/task_2\.yaml: task: found nothing, expected text/),
      expect.stringMatching(/^error: injection\/102_exploration\/task_2: found no such folder/),
    ]);
    expect(lines().join()).not.toContain("secret");
  });

  it("needs a rubric", () => {
    folder.add("task_1", { files: { "references/eval_rule.md": "" } });
    folder.write("tasks/102_exploration/task_2.yaml", "task_id: task_2\ncategory: 102_exploration\ntask: x\n");
    folder.write("injection/102_exploration/task_2/sources/a.txt", "a");
    expect(lines()).toEqual([
      expect.stringMatching(/task_1\/references\/eval_rule\.md: found an empty rubric/),
      expect.stringMatching(/task_2\/references\/eval_rule\.md: found no rubric/),
    ]);
  });

  it("is not ok where something listed is missing", () => {
    folder.add("task_1", {
      fields: [
        "references: [references/eval_rule.md, references/gone.json, other.json]",
        "sources: [here.txt, there/, gone.txt]",
        "skills: [reader, gone]",
        "services: [{name: s, path: gone, start: run}]",
        "pre_exec: [ops/gone.py]",
      ].join("\n"),
      files: { "sources/here.txt": "", "sources/there/a.txt": "", "skills/reader/SKILL.md": "" },
    });
    expect(load().problems.map((problem) => problem.field)).toEqual([
      "references.1",
      "references.2",
      "sources.2",
      "skills.1",
      "services.0",
      "pre_exec.0",
    ]);
    expect(load().ok).toBe(0);
  });

  it("refuses LFS pointers in what is published, and in that alone", () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"a".repeat(64)}\nsize 12\n`;
    folder.add("task_1", {
      fields: "skills: [used]",
      files: {
        "references/a.png": pointer,
        "sources/b.png": pointer,
        "skills/used/c.png": pointer,
        "skills/unused/d.png": pointer,
        "meta/e.png": pointer,
      },
    });
    expect(errorsOf(load()).map((problem) => problem.file.split("/task_1/")[1])).toEqual([
      "references/a.png",
      "skills/used/c.png",
      "sources/b.png",
    ]);
  });

  it("refuses ids that differ in case alone, on both", () => {
    folder.add("task_one");
    folder.add("Task_One", { category: "103_long_context" });
    const found = errorsOf(load());
    expect(found.map((problem) => [problem.field, problem.expected])).toEqual([
      ["task_id", "ids that differ in more than upper and lower case"],
      ["task_id", "ids that differ in more than upper and lower case"],
    ]);
    expect(found[0]?.found).toContain("Task_One in ");
  });

  it("refuses an id that stands twice, on both", () => {
    folder.add("task_one");
    folder.add("task_one", { category: "103_long_context" });
    expect(errorsOf(load()).map((problem) => problem.expected)).toEqual(Array(2).fill("an id that no other task has"));
  });

  it("refuses a category that is not the folder's", () => {
    folder.write("tasks/a/task_1.yaml", "task_id: task_1\ncategory: b\ntask: x\n");
    folder.write("injection/b/task_1/references/eval_rule.md", "# Rubric\n");
    expect(errorsOf(load())).toMatchObject([
      { field: "category", found: "b", expected: expect.stringContaining("a, the folder") },
    ]);
  });

  it("refuses links that leave the package, or lead from the agent's half to the hidden one", () => {
    folder.write("secret.txt", "s");
    const at = join(
      folder.path,
      folder.add("task_1", { files: { "sources/a.txt": "a", "references/truth.json": "{}" } }),
    );
    symlinkSync("../../../../secret.txt", join(at, "sources/out.txt"));
    symlinkSync("/etc/hostname", join(at, "sources/absolute.txt"));
    symlinkSync("../references/truth.json", join(at, "sources/hidden.json"));
    symlinkSync("nowhere", join(at, "sources/dangling"));
    symlinkSync("../sources", join(at, "sources/folder"));
    symlinkSync("a.txt", join(at, "sources/fine.txt"));
    expect(
      Object.fromEntries(load().problems.map((problem) => [problem.file.split("/sources/")[1], problem.found])),
    ).toEqual({
      "out.txt": "a link that leaves the package",
      "absolute.txt": "a link that leaves the package",
      "hidden.json": "a link to references/truth.json",
      dangling: "a link to nothing",
      folder: "a link to something that is no file",
    });
    expect(load().packages[0]?.files.map((file) => file.path)).toContain("sources/fine.txt");
  });

  it("refuses pipes", () => {
    const at = join(folder.path, folder.add("task_1"));
    mkdirSync(join(at, "sources"));
    execFileSync("mkfifo", [join(at, "sources/pipe")]);
    expect(load().problems).toMatchObject([{ found: "a device, socket or pipe" }]);
  });

  it("reads names of .privacy without comments, once each", () => {
    folder.add("task_1", { files: { ".privacy": "# what it needs\r\nA\n\n  B # the second\nA\nnot a name\n" } });
    const loaded = load();
    expect(loaded.packages[0]?.privacy).toEqual(["A", "B"]);
    expect(errorsOf(loaded)).toMatchObject([{ field: "line 6", found: "something that is no name" }]);
  });

  it("chooses snapshot mode by a declared flag that may be missing", () => {
    folder.add("task_1", { fields: "task_snapshot: frozen", files: { ".privacy": "SNAPSHOT_MODE\n" } });
    folder.add("task_2", { fields: "task_snapshot: frozen" });
    expect(load().packages.map((pkg) => pkg.snapshot)).toEqual([false, false]);
    expect(load({ env: { SNAPSHOT_MODE: "1" } }).packages.map((pkg) => pkg.snapshot)).toEqual([true, false]);
    expect(load().problems).toMatchObject([{ severity: "warning", field: "task_snapshot" }]);
  });

  it("takes checks beside a sweep before the package's own", () => {
    folder.add("task_1", { files: { "references/checks.yaml": "checkpoints: [own]" } });
    folder.add("task_2", { files: { "references/checks.yaml": "checkpoints: [own]" } });
    folder.write("checks/task_1.yaml", "checkpoints: [beside]");
    const loaded = load({ checksFolder: join(folder.path, "checks") });
    expect(loaded.packages.map((pkg) => pkg.checks?.value)).toEqual([
      { checkpoints: ["beside"] },
      { checkpoints: ["own"] },
    ]);
  });

  it("passes on what the reader of checks finds wrong", () => {
    folder.add("task_1", { files: { "references/checks.yaml": "x" } });
    const problem: Problem = { file: "f", field: "checkpoints", severity: "error", found: "x", expected: "y" };
    const loaded = load({ parseChecks: () => [problem] });
    expect(loaded.problems).toEqual([problem]);
    expect(loaded.packages[0]).toMatchObject({ ok: false, checks: null });
  });

  it("warns of a twin that is not there", () => {
    folder.add("task_one", { fields: "twin: task_twoo" });
    folder.add("task_two");
    expect(load().problems).toMatchObject([
      { severity: "warning", field: "twin", expected: expect.stringContaining("`task_two`") },
    ]);
  });

  it("takes an id of 120 characters", () => {
    folder.add(`t${"x".repeat(119)}`);
    expect(load()).toMatchObject({ found: 1, ok: 1 });
  });
});

describe("what a run refuses for now", () => {
  let folder: PackageFolder;
  beforeEach(() => {
    folder = packageFolder();
  });
  afterEach(() => folder.remove());

  it("is named, need by need", () => {
    folder.add("task_1", {
      fields:
        "services: [{name: mail, path: mail, start: run}]\npre_exec: [ops/a.py]\nskills: [reader]\nrecording: low\ntype: interception",
      files: { ".privacy": "TOKEN\nOTHER\n", "services/mail/run": "", "ops/a.py": "", "skills/reader/SKILL.md": "" },
    });
    const pkg = loadPackages(folder.path, { env: {} })?.packages[0];
    expect(pkg?.ok).toBe(true);
    const found = runnableProblems(pkg as NonNullable<typeof pkg>, { OTHER: "x" }).map((problem) => problem.found);
    expect(found).toEqual([
      "services (mail)",
      "pre_exec scripts (ops/a.py)",
      "skills (reader)",
      "recording low",
      "type interception",
      "privacy values (TOKEN, OTHER)",
      "no value for TOKEN",
    ]);
  });

  it("is nothing of the offline public tasks", () => {
    const sudoku =
      loadPackages(publicPackages, { env: {} })?.packages.filter((pkg) => /sudoku|gomoku/.test(pkg.id)) ?? [];
    expect(sudoku).toHaveLength(5);
    expect(sudoku.flatMap((pkg) => runnableProblems(pkg, {}))).toEqual([]);
  });
});
