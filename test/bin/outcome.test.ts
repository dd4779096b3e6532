import { expect, it } from "vitest";
import { outcomeCode, outcomeOf } from "../../bin/sweeps/outcome.ts";
import { attemptRow } from "../../lib/attempt/attempt-row.ts";
import { leaderboard } from "../../lib/results/leaderboard.ts";
import { someFacts, someLine } from "../attempt/facts.ts";

it("counts as valid what the report does: under compat an attempt that its agent never ended is none", () => {
  for (const [compat, valid] of [
    [null, 1],
    ["uniclawbench", 0],
  ] as const) {
    const line = someLine({ compat });
    const row = { ...attemptRow(someFacts({ line })), status: "executor_incomplete" as const, valid: valid === 1 };
    const outcome = outcomeOf("s", [line], { generation: 1, planned: 1, rows: [row], stopped: null, elapsedMs: 1 });
    expect(outcome).toMatchObject({ valid, statuses: { executor_incomplete: 1 } });
    expect(outcome.valid).toBe(leaderboard([line], [row], false).overall.valid);
    expect(outcomeCode(outcome)).toBe(1 - valid);
  }
});
