import { chmodSync, cpSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PackageContent, readContent } from "../../lib/tasks/digest.ts";
import { loadPackages } from "../../lib/tasks/load.ts";
import type { TaskPackage } from "../../lib/tasks/package.ts";
import { preambleHash } from "../../lib/tasks/preamble.ts";
import { runnerPart, simulatorPart, supervisorPart } from "../../lib/tasks/published.ts";
import { type PackageFolder, packageFolder, publicPackages } from "../support/package-folder.ts";

const fields = [
  "skills: [reader]",
  "services: [{name: mail, path: mail, start: bash run.sh}]",
  "pre_exec: [ops/fill.py]",
  "references: [references/eval_rule.md]",
];
const files = {
  "references/truth.json": "{}",
  "references/checks.yaml": "checkpoints: [{id: CP1, weight: 1}]",
  "sources/a.txt": "line\r\n",
  "sources/.hidden": "dot",
  "skills/reader/SKILL.md": "# Reader",
  "skills/unlisted/SKILL.md": "# Not for this task",
  "services/mail/run.sh": "true",
  "ops/fill.py": "import beside",
  "ops/beside.py": "",
  "meta/notes.md": "for authors",
};

describe("the digest of a package", () => {
  let folder: PackageFolder;
  beforeEach(() => {
    folder = packageFolder();
  });
  afterEach(() => folder.remove());

  const make = (more = "", other: Record<string, string> = {}): string => {
    const given = { fields: [...fields, more].join("\n"), files: { ...files, ...other } };
    return join(folder.path, folder.add("task_1", given));
  };
  const only = (env: Record<string, string> = {}, root = folder.path): TaskPackage => {
    const loaded = loadPackages(root, { env });
    expect(loaded?.problems.filter((problem) => problem.severity === "error")).toEqual([]);
    return loaded?.packages[0] as TaskPackage;
  };
  const content = async (env?: Record<string, string>): Promise<PackageContent> => readContent(only(env));

  it("is the same in another place, at another time, in another order of files", async () => {
    const at = make();
    const { digest } = await content();
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    const copy = packageFolder();
    try {
      // The file that was first is written last.
      writeFileSync(join(at, "ops/beside.py"), "");
      cpSync(folder.path, copy.path, { recursive: true });
      utimesSync(join(copy.path, "injection/102_exploration/task_1/sources/a.txt"), 1, 1);
      expect((await readContent(only({}, copy.path))).digest).toBe(digest);
    } finally {
      copy.remove();
    }
  });

  it("knows the public packages: a change of format is seen here", async () => {
    const loaded = loadPackages(publicPackages, { env: {} });
    const sudoku = loaded?.packages.find((pkg) => pkg.id === "task_102_35_sudoku_9x9_easiest") as TaskPackage;
    const { digest, entries } = await readContent(sudoku);
    // Another digest means that results from before do not belong to those from now on.
    expect(digest).toBe("910282baafaabfdcda7b15124a319bb9443d7912a3493d8e626f4e7f25deeda0");
    expect(entries.map((entry) => `${entry.part}/${entry.path}`)).toEqual([
      "agent/request.md",
      "agent/sources/puzzle.txt",
      "hidden/references/eval_rule.md",
      "hidden/references/ground_truth.json",
      "hidden/supervisor.json",
      "simulator/policy.json",
      "runner/package.json",
    ]);
  });

  it.each([
    ["the request", "task_snapshot: x", { ".privacy": "SNAPSHOT_MODE\n" }],
    ["a source", "", { "sources/a.txt": "line\n" }],
    ["a new source", "", { "sources/b.txt": "" }],
    ["a reference", "", { "references/truth.json": "{ }" }],
    ["the rubric", "", { "references/eval_rule.md": "# Rubric 2\n" }],
    ["the checks", "", { "references/checks.yaml": "checkpoints: [{id: CP2, weight: 1}]" }],
    ["a skill", "", { "skills/reader/SKILL.md": "# Reader 2" }],
    ["a service", "", { "services/mail/run.sh": "false" }],
    ["a pre_exec script", "", { "ops/fill.py": "x" }],
    ["a file beside a pre_exec script", "", { "ops/beside.py": "x" }],
    ["privacy names", "", { ".privacy": "TOKEN\n" }],
    ["the turn's limit", "timeout_seconds: 60", {}],
    ["the total limit", "max_total_seconds: 1900", {}],
    ["the threshold", "success_threshold: 0.9", {}],
    ["the network", "network: offline", {}],
    ["the type", "type: interception", {}],
    ["the recording", "recording: low", {}],
    ["the browser", "headed: true", {}],
    ["follow-ups", "codex: {max_user_followups: 1}", {}],
    ["the supervisor's instructions", "codex: {supervisor: {instructions: x}}", {}],
    ["the supervisor's effort", "codex: {supervisor: {reasoning_effort: low}}", {}],
    ["the simulator's policy", "codex: {user_simulator: {policy: x}}", {}],
    ["the simulator's effort", "codex: {user_simulator: {reasoning_effort: low}}", {}],
  ] as [string, string, Record<string, string>][])("changes with %s", async (_, more, other) => {
    make();
    const before = (await content({ TOKEN: "x", SNAPSHOT_MODE: "1" })).digest;
    make(more, other);
    expect((await content({ TOKEN: "x", SNAPSHOT_MODE: "1" })).digest).not.toBe(before);
  });

  it.each([
    ["defaults that a sweep overrides", "model: other\nagent_id: other\nimage_model: other\nagent_sys: nanobot", {}],
    ["what is not published", "", { "skills/unlisted/SKILL.md": "x", "meta/notes.md": "x" }],
    [
      "comments of its YAML and of its checks",
      "# a comment",
      { "references/checks.yaml": "# c\ncheckpoints:\n  - {weight: 1, id: CP1}\n" },
    ],
  ] as [string, string, Record<string, string>][])("does not change with %s", async (_, more, other) => {
    make();
    const before = (await content()).digest;
    make(more, other);
    expect((await content()).digest).toBe(before);
  });

  it("changes with the executable bit, and with no other mode", async () => {
    const at = make();
    const before = await content();
    chmodSync(join(at, "skills/reader/SKILL.md"), 0o600);
    chmodSync(join(at, "references/truth.json"), 0o755);
    expect((await content()).digest).toBe(before.digest);
    chmodSync(join(at, "services/mail/run.sh"), 0o755);
    expect((await content()).digest).not.toBe(before.digest);
    expect(runner(await content()).executable).toEqual(["runner/services/mail/run.sh"]);
  });

  it("changes with the value of SNAPSHOT_MODE: request and frozen answers", async () => {
    make("task_snapshot: Use the frozen board.", {
      ".privacy": "SNAPSHOT_MODE\n",
      "sources/board_snapshot.json": "{}",
    });
    const [live, frozen] = [await content(), await content({ SNAPSHOT_MODE: "1" })];
    expect(live.digest).not.toBe(frozen.digest);
    const has = (of: PackageContent): boolean =>
      of.entries.some((entry) => entry.path === "sources/board_snapshot.json");
    expect([has(live), has(frozen)]).toEqual([false, true]);
    expect(text(live, "request.md")).toContain("Do it.");
    expect(text(frozen, "request.md")).toContain("Use the frozen board.");
  });

  it("covers what a link leads to", async () => {
    const at = make();
    symlinkSync("a.txt", join(at, "sources/link.txt"));
    const before = (await content()).digest;
    writeFileSync(join(at, "sources/a.txt"), "changed");
    const { digest, entries } = await content();
    expect(digest).not.toBe(before);
    const hash = (path: string): string | undefined => entries.find((entry) => entry.path === path)?.sha256;
    expect(hash("sources/link.txt")).toBe(hash("sources/a.txt"));
  });

  it("puts each thing into the part whose readers may see it", async () => {
    make("codex: {supervisor: {instructions: Look twice.}, user_simulator: {policy: Be brief.}}", {
      ".privacy": "B\nA\n",
    });
    const published = await content({ A: "x", B: "x" });
    const of = (part: string): string[] =>
      published.entries.filter((entry) => entry.part === part).map((entry) => entry.path);
    expect(of("agent")).toEqual(["request.md", "skills/reader/SKILL.md", "sources/.hidden", "sources/a.txt"]);
    expect(of("runner")).toEqual([
      "pre_exec/ops/beside.py",
      "pre_exec/ops/fill.py",
      "services/mail/run.sh",
      "package.json",
    ]);
    expect(of("simulator")).toEqual(["policy.json"]);
    expect(of("hidden")).toEqual([
      "checks.json",
      "references/eval_rule.md",
      "references/truth.json",
      "supervisor.json",
    ]);
    expect(runner(published)).toMatchObject({
      digest: published.digest,
      privacy: ["A", "B"],
      headed: false,
      preExec: ["ops/fill.py"],
    });
    expect(supervisorPart.parse(JSON.parse(text(published, "supervisor.json")))).toMatchObject({
      instructions: "Look twice.",
      threshold: 1,
    });
    expect(simulatorPart.parse(JSON.parse(text(published, "policy.json")))).toMatchObject({
      policy: "Be brief.",
      effort: "high",
    });
    expect(JSON.parse(text(published, "checks.json"))).toEqual({ checkpoints: [{ id: "CP1", weight: 1 }] });
  });

  it("has a rubric's digest that depends on rubric and checks alone", async () => {
    const rubric = async (): Promise<string> =>
      supervisorPart.parse(JSON.parse(text(await content(), "supervisor.json"))).rubricDigest;
    make();
    const before = await rubric();
    make("timeout_seconds: 60", { "sources/a.txt": "other" });
    expect(await rubric()).toBe(before);
    make("", { "references/checks.yaml": "checkpoints: [{id: CP9, weight: 1}]" });
    expect(await rubric()).not.toBe(before);
  });

  it("is refused to a package with errors", async () => {
    make("sources: [gone.txt]");
    const pkg = loadPackages(folder.path, { env: {} })?.packages[0] as TaskPackage;
    await expect(readContent(pkg)).rejects.toThrow("gone.txt");
  });
});

describe("the rendered request", () => {
  it("tells the agent where it works, in its language, and then the task's own words", async () => {
    const loaded = loadPackages(publicPackages, { env: {} });
    const rendered = async (id: string): Promise<string> =>
      text(await readContent(loaded?.packages.find((pkg) => pkg.id === id) as TaskPackage), "request.md");
    const english = await rendered("task_102_35_sudoku_9x9_easiest");
    for (const word of [
      "/tmp_workspace/results/",
      "/tmp_workspace/clawbench/sources/",
      "1440x900",
      "No skills",
      "end with a plain message",
    ]) {
      expect(english).toContain(word);
    }
    expect(english).toContain("Solve this 9x9 Sudoku puzzle.");
    const chinese = await rendered("task_202_35_sudoku_9x9_easiest");
    expect(chinese).toMatch(/^你在/);
    expect(chinese).toContain("解这道 9x9 数独谜题");
    expect(english + chinese).not.toMatch(/[{}]list|\{skills\}/);
  });

  it("has a hash for reports", () => {
    expect(preambleHash).toMatch(/^[0-9a-f]{64}$/);
  });
});

function text(content: PackageContent, path: string): string {
  const from = content.entries.find((entry) => entry.path === path)?.from;
  if (!from || !("text" in from)) throw new Error(`no text ${path}`);
  return from.text;
}

const runner = (content: PackageContent) => runnerPart.parse(JSON.parse(text(content, "package.json")));
