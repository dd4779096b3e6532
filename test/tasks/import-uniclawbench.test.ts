import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ImportResult, importUniclawbench } from "../../lib/tasks/import-uniclawbench.ts";
import { type LoadedFolder, loadPackages } from "../../lib/tasks/load.ts";
import { type PackageFolder, packageFolder, publicPackages } from "../support/package-folder.ts";

describe("importing packages", () => {
  let checkout: PackageFolder;
  let out: PackageFolder;
  beforeEach(() => {
    checkout = packageFolder();
    out = packageFolder();
  });
  afterEach(() => {
    checkout.remove();
    out.remove();
  });
  const run = (only: string | null = null, from = checkout.path): Promise<ImportResult> =>
    importUniclawbench(loadPackages(from, { env: {} }) as LoadedFolder, { only, out: out.path });

  it("copies the public ones whole, with their licence and what is wrong with them", async () => {
    const seen: string[] = [];
    const loaded = loadPackages(publicPackages, { env: {} }) as LoadedFolder;
    const result = await importUniclawbench(loaded, {
      only: null,
      out: out.path,
      onProgress: (done, total) => seen.push(`${done}/${total}`),
    });
    expect(result).toMatchObject({ chosen: 12, copied: 12, unchanged: 0, refused: 0 });
    expect(result.problems.map((problem) => problem.severity)).toEqual(["warning", "warning"]);
    expect(seen.at(-1)).toBe("12/12");
    for (const name of readdirSync(publicPackages, { recursive: true, encoding: "utf8" })) {
      if (!statSync(join(publicPackages, name)).isFile()) continue;
      expect(readFileSync(join(out.path, name)).equals(readFileSync(join(publicPackages, name))), name).toBe(true);
    }
    expect(loadPackages(out.path, { env: {} })).toMatchObject({ found: 12, ok: 11 });
    expect(await run(null, publicPackages)).toMatchObject({ copied: 0, unchanged: 12, files: 0, bytes: 0 });
  });

  it.each([
    ["task_1", 1],
    ["103_*", 1],
    ["*", 3],
    ["task_{1,2}", 2],
  ])("takes what %s matches", async (only, count) => {
    checkout.add("task_1");
    checkout.add("task_2");
    checkout.add("task_3", { category: "103_long_context" });
    expect(await run(only)).toMatchObject({ chosen: count, copied: count });
  });

  it("says which task is nearest when nothing matches", async () => {
    checkout.add("task_one");
    await expect(run("task_onee")).rejects.toThrow("`task_one`");
  });

  it("keeps dotfiles, empty folders, executable bits; a link becomes the file it leads to", async () => {
    const at = join(
      checkout.path,
      checkout.add("task_1", { files: { ".privacy": "# none\n", "sources/.git/HEAD": "x", "sources/run.sh": "true" } }),
    );
    mkdirSync(join(at, "sources/empty"));
    chmodSync(join(at, "sources/run.sh"), 0o755);
    symlinkSync(join(at, "sources/run.sh"), join(at, "sources/link.sh"));
    await run();
    const copy = join(out.path, "injection/102_exploration/task_1");
    expect(readdirSync(copy).sort()).toEqual([".privacy", "references", "sources"]);
    expect(readdirSync(join(copy, "sources")).sort()).toEqual([".git", "empty", "link.sh", "run.sh"]);
    expect(statSync(join(copy, "sources/run.sh")).mode & 0o100).not.toBe(0);
    expect(readFileSync(join(copy, "sources/link.sh"), "utf8")).toBe("true");
  });

  it.each([
    ["a changed file", (at: string) => writeFileSync(join(at, "sources/a.txt"), "b")],
    ["a file more", (at: string) => writeFileSync(join(at, "sources/more.txt"), "")],
    [
      "a changed task file",
      (at: string) => writeFileSync(join(at, "../../../tasks/102_exploration/task_1.yaml"), "task_id: x\n"),
    ],
  ])("never overwrites other content: %s", async (_, change) => {
    checkout.add("task_1", { files: { "sources/a.txt": "a" } });
    checkout.add("task_2");
    await run("task_1");
    const at = join(out.path, "injection/102_exploration/task_1");
    change(at);
    const result = await run();
    expect(result).toMatchObject({ copied: 1, unchanged: 0, refused: 1 });
    expect(result.problems).toMatchObject([{ severity: "error", found: "other content than the checkout's" }]);
    // Nothing that was changed was touched.
    expect((await run()).refused).toBe(1);
  });

  it("completes what was cut off between folder and task file, and leaves nothing aside", async () => {
    checkout.add("task_1", { files: { "sources/a.txt": "a" } });
    await run();
    const whole = readdirSync(out.path, { recursive: true, encoding: "utf8" }).sort();
    writeFileSync(join(out.path, "tasks/102_exploration/task_1.yaml.gone"), "");
    const other = packageFolder();
    try {
      const loaded = loadPackages(checkout.path, { env: {} }) as LoadedFolder;
      mkdirSync(join(other.path, "injection/102_exploration/task_1/references"), { recursive: true });
      mkdirSync(join(other.path, "injection/102_exploration/task_1/sources"), { recursive: true });
      writeFileSync(join(other.path, "injection/102_exploration/task_1/references/eval_rule.md"), "# Rubric\n");
      writeFileSync(join(other.path, "injection/102_exploration/task_1/sources/a.txt"), "a");
      expect(await importUniclawbench(loaded, { only: null, out: other.path })).toMatchObject({ copied: 1, files: 1 });
      expect(readdirSync(other.path, { recursive: true, encoding: "utf8" }).sort()).toEqual(whole);
    } finally {
      other.remove();
    }
  });

  it("refuses a package with links that leave it, and a broken task file, and copies the others", async () => {
    const at = join(checkout.path, checkout.add("task_1"));
    symlinkSync("/etc/hostname", join(at, "references/out"));
    checkout.write("tasks/102_exploration/task_2.yaml", "a: [");
    checkout.add("task_3");
    const result = await run();
    expect(result).toMatchObject({ chosen: 3, copied: 1, refused: 2 });
    expect(existsSync(join(out.path, "injection/102_exploration/task_1"))).toBe(false);
    expect(readdirSync(join(out.path, "tasks/102_exploration"))).toEqual(["task_3.yaml"]);
  });
});
