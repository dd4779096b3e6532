import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { openRuns } from "../../lib/platform/local/open-runs.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";
import { describeWithBubblewrap } from "../bubblewrap.ts";

const cli = fileURLToPath(new URL("../../dist/proctor.js", import.meta.url));
const folders: string[] = [];

interface Demo {
  code: number;
  last: Record<string, unknown>;
  stderr: string;
  rows: ScoreRow[];
}

/** Runs the demo as its user does, and reads the rows that it left. */
async function demo(env: Record<string, string>): Promise<Demo> {
  const folder = mkdtempSync(join(tmpdir(), "proctor-demo-"));
  folders.push(folder);
  const ran = await new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [cli, "demo", "--json", "--runs", folder],
      { env: { ...process.env, ...env }, maxBuffer: 1e8 },
      (error, stdout, stderr) => resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
    );
  });
  const runs = openRuns(folder, "operator");
  const rows: ScoreRow[] = [];
  for (const { sweep } of await runs.scores.sweeps()) {
    for await (const row of runs.scores.rows(sweep)) rows.push(row);
  }
  await runs.close();
  return { code: ran.code, last: JSON.parse(ran.stdout.trim().split("\n").at(-1)!), stderr: ran.stderr, rows };
}

/** What the rubrics demand of each model's work: status, score, turns. Sudoku, then gomoku. */
const expected: Record<string, { sudoku: [string, number, number]; gomoku: [string, number, number] }> = {
  // Right at once: every checkpoint, no cap.
  "scripted-solver": { sudoku: ["pass", 1, 1], gomoku: ["pass", 1, 1] },
  // Two cells exchanged, or a move that does not win; right after the follow-up.
  "scripted-reviser": { sudoku: ["pass", 1, 2], gomoku: ["pass", 1, 2] },
  // A given altered: capped at 0.50. A point that is taken: only the format counts (0.20), and the judge says fail at last.
  "scripted-meddler": { sudoku: ["budget_exhausted", 0.5, 3], gomoku: ["fail", 0.2, 3] },
  // No answer until the time is up.
  "scripted-silent": { sudoku: ["global_timeout", 0, 1], gomoku: ["global_timeout", 0, 1] },
};

function expectScores(ran: Demo, isolation: string): void {
  const seen = ran.rows.map((row) => [row.model, row.task, row.status, row.score, row.turns, row.isolation, row.try]);
  const wanted = ran.rows.map((row) => {
    const [status, score, turns] = expected[row.model]![row.task.includes("sudoku") ? "sudoku" : "gomoku"];
    return [row.model, row.task, status, score, turns, isolation, 1];
  });
  expect(seen).toEqual(wanted);
  expect(ran.last).toEqual({
    planned: 20,
    valid: 20,
    statuses: { pass: 10, budget_exhausted: 3, fail: 2, global_timeout: 5 },
    elapsedMs: expect.any(Number),
  });
  expect(ran.code).toBe(0);
}

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

describeWithBubblewrap("the demo in sandboxes", () => {
  it("gives each model the scores that the rubrics demand", { timeout: 180_000 }, async () => {
    const ran = await demo({});
    expectScores(ran, "bwrap");
    expect(ran.stderr).toMatch(/scripted/);
    expect(ran.stderr).not.toMatch(/NO SANDBOX/);
    const solved = ran.rows.find((row) => row.model === "scripted-solver" && row.task.includes("gomoku"))!;
    expect(solved).toMatchObject({ verdict: "pass", score_source: "mixed", passed: true, stop_reason: "ended" });
    expect(solved.tokens.supervisor.input).toBeGreaterThan(0);
    const revised = ran.rows.find((row) => row.model === "scripted-reviser" && row.task.includes("sudoku"))!;
    expect(revised).toMatchObject({ score_source: "checks", followups: 1, fallback_turns: 0 });
    expect(revised.tokens.simulator.output).toBeGreaterThan(0);
  });
});

describe("the demo where bubblewrap is hidden", () => {
  it("says loudly that there is no sandbox, and scores the same", { timeout: 180_000 }, async () => {
    const ran = await demo({ PROCTOR_BWRAP: "/nowhere/bwrap" });
    expectScores(ran, "none");
    expect(ran.stderr.match(/NO SANDBOX/g)).toHaveLength(1);
  });
});
