import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCases } from "../../bin/cases/run-cases.ts";

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/cases/${name}.json`, import.meta.url));

describe("npm run cases", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "cases-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const written = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  it("says how many rows agree", async () => {
    expect(await runCases(["outcome", fixture("outcome")])).toEqual({
      exitCode: 0,
      text: "outcome: 88 rows, all agree",
    });
  });

  it("prints the rows that differ, and exits with 1", async () => {
    const file = written("differs.json", '[["pass", "pass"], ["weird", "fail"]]');
    const text = await runCases(["status-normalise", file]);
    expect(text.exitCode).toBe(1);
    expect(text.text).toContain('1: expected "fail"\n   got      "missing"');
    const json = await runCases(["status-normalise", file, "--json"]);
    expect(JSON.parse(json.text)).toMatchObject({
      rows: 2,
      differing: [{ index: "1", expected: "fail", got: "missing" }],
    });
  });

  it("refuses a wrong call with exit code 2 and what is wrong", async () => {
    await expect(runCases([])).rejects.toMatchObject({ exitCode: 2 });
    await expect(runCases(["outcomes", fixture("outcome")])).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("did you mean outcome?"),
    });
    await expect(runCases(["outcome", fixture("outcome"), "--jsn"])).rejects.toMatchObject({ exitCode: 2 });
    await expect(runCases(["outcome", join(folder, "none.json")])).rejects.toThrow(/none\.json: found no such file/);
    await expect(runCases(["outcome", written("broken.json", "[{]")])).rejects.toThrow(/broken\.json: found no JSON/);
    await expect(runCases(["outcome", fixture("decision")])).rejects.toThrow(/0\.signals: found nothing/);
  });
});
