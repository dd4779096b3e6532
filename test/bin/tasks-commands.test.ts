import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandError } from "../../bin/command.ts";
import tasksImport from "../../bin/commands/tasks-import.ts";
import tasksList from "../../bin/commands/tasks-list.ts";
import tasksValidate from "../../bin/commands/tasks-validate.ts";
import { type PackageFolder, packageFolder, publicPackages } from "../support/package-folder.ts";

let folder: PackageFolder;
beforeEach(() => {
  folder = packageFolder();
});
afterEach(() => folder.remove());

describe("tasks validate", () => {
  it("counts the public packages and says what is wrong, as JSON", async () => {
    const { exitCode, text } = await tasksValidate([publicPackages], { json: true });
    expect(exitCode).toBe(1);
    expect(JSON.parse(text)).toEqual({
      packages: 12,
      ok: 11,
      byCategory: {
        "102_exploration": 4,
        "103_long_context": 2,
        "104_multimodal": 2,
        "105_cross_platform": 1,
        "202_exploration_zh": 2,
        "205_cross_platform_zh": 1,
      },
      problems: [
        {
          file: expect.stringContaining(".privacy"),
          field: "",
          severity: "warning",
          message: expect.stringContaining("EMAIL_PASSWORD"),
        },
        {
          file: expect.stringContaining("panel_sheet.png"),
          field: "",
          severity: "error",
          message: expect.stringContaining("LFS pointer"),
        },
      ],
      elapsedMs: expect.any(Number),
    });
  });

  it("ends with 0 when there are warnings alone", async () => {
    folder.add("task_1", { files: { ".privacy": "NOT_THERE\n" } });
    const { exitCode, text } = await tasksValidate([folder.path], {});
    expect(exitCode).toBe(0);
    expect(text).toMatch(/^warning: .*NOT_THERE/);
    expect(text).toMatch(/1 package, 1 ok, 0 errors, 1 warning, \d+ ms$/);
  });

  it.each([
    ["a missing folder", "missing", "no such folder"],
    ["a folder without packages", "", "no task packages"],
  ])("is a wrong call for %s", async (_, path, message) => {
    const call = tasksValidate([join(folder.path, path)], { json: true });
    await expect(call).rejects.toThrow(message);
    await expect(call).rejects.toMatchObject({ exitCode: 2 } satisfies Partial<CommandError>);
  });
});

describe("tasks list", () => {
  it("prints a line a package", async () => {
    const { exitCode, text } = await tasksList([publicPackages], {});
    expect(exitCode).toBe(0);
    expect(text).toMatch(/^task_202_38_gomoku_best_move +exploration +zh +web +ok$/m);
    expect(text).toMatch(/^task_104_04_panel_figure3_reproduction +multimodal +en +web +not ok$/m);
    expect(text).toMatch(/12 packages, 11 ok/);
  });

  it("prints what validate prints, and the tasks, as JSON", async () => {
    const printed = JSON.parse((await tasksList([publicPackages], { json: true })).text);
    expect(printed).toMatchObject({ packages: 12, ok: 11 });
    expect(printed.tasks).toHaveLength(12);
  });
});

describe("tasks import", () => {
  it("copies what --only names and counts it", async () => {
    const options = { out: folder.path, only: "*sudoku*", json: true };
    expect(JSON.parse((await tasksImport([publicPackages], options)).text)).toMatchObject({
      chosen: 3,
      copied: 3,
      files: 12,
      problems: [],
    });
    expect((await tasksImport([publicPackages], { ...options, json: false })).text).toMatch(
      /^3 packages: 0 copied .* 3 there already, 0 refused$/,
    );
  });

  it("ends with 1 when a package was refused", async () => {
    await tasksImport([publicPackages], { out: folder.path, only: "*sudoku*" });
    folder.write("injection/102_exploration/task_102_36_sudoku_16x16/sources/puzzle.txt", "mine");
    const { exitCode, text } = await tasksImport([publicPackages], { out: folder.path, only: "*sudoku*" });
    expect(exitCode).toBe(1);
    expect(text).toContain("sources/puzzle.txt: found other content");
  });

  it("is a wrong call without --out, and for a checkout that is none", async () => {
    await expect(tasksImport([publicPackages], {})).rejects.toMatchObject({ exitCode: 2 });
    await expect(tasksImport([folder.path], { out: folder.path })).rejects.toMatchObject({ exitCode: 2 });
  });
});
