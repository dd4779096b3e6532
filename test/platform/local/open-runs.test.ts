import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { evidenceFileKey, followUpFileKey, planKey } from "../../../lib/firewall/keys.ts";
import { openRuns } from "../../../lib/platform/local/open-runs.ts";
import { exampleRow, exampleSweep } from "../contract/score-table.ts";
import { type TemporaryFolder, temporaryFolder } from "./temporary-folder.ts";

describe("a folder of runs", () => {
  let folder: TemporaryFolder;
  let path: string;
  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder.path, "deep", "runs");
  });
  afterEach(() => folder.remove());

  it("is made, and opened again", async () => {
    const runs = openRuns(path, "operator");
    await runs.scores.startGeneration(0, exampleSweep);
    const second = openRuns(path, "operator");
    expect(await second.scores.sweep("night")).toMatchObject({ generation: 1 });
    await second.close();
    await runs.close();
  });

  it("gives each role what the matrix gives it", async () => {
    const runs = openRuns(path, "operator");
    const simulator = runs.as({ role: "user-simulator" });
    const own = { attempt: "a1", try: 1 };
    await simulator.objects.create(followUpFileKey(own, "turn-02.json"), "{}");
    await expect(simulator.objects.create(evidenceFileKey(own, 1, "a"), "")).rejects.toMatchObject({
      code: "access_denied",
    });
    await expect(simulator.scores.tries("night", "a1")).rejects.toMatchObject({ code: "access_denied" });
    await expect(simulator.scores.rows("night")[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "access_denied",
    });
    const openTurn = runs.as({ role: "open-turn" }).scores;
    expect(await openTurn.tries("night", "a1")).toEqual([]);
    expect(await openTurn.updateLease("a1", 1, { turnToken: "t" })).toBe(false);
    await expect(openTurn.closeTry(exampleRow({ status: "pass" }))).rejects.toMatchObject({
      code: "access_denied",
      message: expect.stringContaining("open-turn"),
    });
    expect(await runs.as({ role: "record" }).scores.closeTry(exampleRow({ status: "pass" }))).toBe(true);
    await runs.close();
  });

  it("refuses a folder that holds something else", () => {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, "thesis.tex"), "");
    expect(() => openRuns(path, "operator")).toThrow(/something else \(thesis\.tex\).*--runs/);
  });

  it("refuses a folder whose scores are gone while its sweeps are not", async () => {
    const runs = openRuns(path, "operator");
    await runs.objects.create(planKey("s", 1), "{}");
    await runs.close();
    rmSync(join(path, "scores.sqlite"));
    expect(() => openRuns(path, "operator")).toThrow(/gone or empty.*put back a copy/);
    writeFileSync(join(path, "scores.sqlite"), "");
    expect(() => openRuns(path, "operator")).toThrow(/gone or empty/);
  });

  it("refuses a file, also on the way", () => {
    mkdirSync(join(folder.path, "deep"));
    writeFileSync(path, "");
    expect(() => openRuns(path, "operator")).toThrow(/is a file, not a folder/);
    expect(() => openRuns(join(path, "runs"), "operator")).toThrow(/is a file, not a folder/);
  });

  it("refuses a later version and a marker that can not be read", () => {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, "proctor-runs.json"), '{"v":2}');
    expect(() => openRuns(path, "operator")).toThrow(/form 2.*knows form 1/);
    writeFileSync(join(path, "proctor-runs.json"), "");
    expect(() => openRuns(path, "operator")).toThrow(/no form that can be read/);
  });
});
