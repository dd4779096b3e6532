import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import report from "../../bin/commands/report.ts";
import { storePlan } from "../../bin/sweeps/stored.ts";
import { openRow } from "../../lib/attempt/attempt-row.ts";
import { openRuns } from "../../lib/platform/local/open-runs.ts";
import { aLine } from "../support/manifest-line.ts";

const sweep = "sweep-a";
const lines = ["a", "b", "c"].map((name) =>
  aLine({ sweep, attempt: name.repeat(26), task: `task_${name}`, cluster: `task_${name}`, threshold: 0.9 }),
);

describe("proctor report", () => {
  let runs: string;
  beforeEach(() => {
    runs = mkdtempSync(join(tmpdir(), "report-"));
  });
  afterEach(() => rmSync(runs, { recursive: true, force: true }));

  async function storeSweep(): Promise<void> {
    const opened = openRuns(runs, "operator");
    const stored = {
      v: 1,
      sweep,
      generation: 1,
      digest: "d",
      fixed: "f",
      capUsd: null,
      lanes: [],
      planned: 3,
      seed: 7,
      preamble: "abcdef0123456789",
    } as const;
    await storePlan(opened.objects, { ...stored, concurrency: 4, lanes: [] }, lines);
    const { digest, fixed, capUsd, planned } = stored;
    await opened.scores.startGeneration(0, { sweep, generation: 1, digest, fixed, capUsd, planned, controller: null });
    for (const line of lines.slice(0, 2)) {
      const open = openRow(line, 1, { now: 0, isolation: "bwrap", image: null, loweredLimits: {} });
      const passed = line === lines[0];
      await opened.scores.closeTry({
        ...open,
        status: passed ? "pass" : "rate_limit",
        passed,
        valid: passed,
        score: passed ? 1 : null,
        reason: passed ? "passed" : "the provider refused",
        ended: open.started,
      });
    }
    await opened.close();
  }

  it("prints the table of a stored sweep", async () => {
    await storeSweep();
    const { exitCode, text } = await report([sweep], { runs });
    expect(exitCode).toBe(0);
    expect(text).toContain("sweep sweep-a, generation 1: 1 of 3 attempts valid");
    expect(text).toContain("isolation: bwrap (2 tries)");
    expect(text).toContain("seed: 7; preamble: abcdef012345");
    expect(text).toMatch(/scripted-model +exploration +3 +1 +1 rate_limit, 1 missing +1\.000 \[0\.207, 1\.000\] /);
    expect(text).toContain("errors:\n  1 x rate_limit: the provider refused");
  });

  it("prints one object with --json", async () => {
    await storeSweep();
    const { text } = await report([sweep], { runs, json: true });
    expect(JSON.parse(text)).toMatchObject({
      v: 1,
      sweep,
      generation: 1,
      running: false,
      planned: 3,
      valid: 1,
      errors: 2,
      provenance: { seed: 7, preamble: "abcdef0123456789" },
      statuses: { pass: 1, rate_limit: 1, missing: 1 },
      systems: [
        {
          agent: "null",
          overall: {
            passRate: { validOnly: { value: 1 }, errorsAsFailures: { value: 1 / 3 } },
            averageScore: { value: 1, ci95: null, ci95Reason: "one task" },
          },
        },
      ],
    });
  });

  it("names what is wrong with a call", async () => {
    await storeSweep();
    await expect(report(["sweep-b"], { runs })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("did you mean sweep-a?"),
    });
    await expect(report([sweep], { runs: join(runs, "none") })).rejects.toMatchObject({ exitCode: 2 });
  });
});
