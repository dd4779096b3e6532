import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { agrees, runTable, type TableName, tableNames } from "../../bin/cases/tables.ts";
import { ProblemsError } from "../../lib/tasks/problem.ts";

const folder = fileURLToPath(new URL("../fixtures/cases/", import.meta.url));
const rowsOf: Record<TableName, number> = {
  outcome: 88,
  completion: 95,
  decision: 70,
  "stop-reasons": 13,
  feedback: 12,
  "status-normalise": 16,
  statistics: 28,
};

describe("the contract tables", () => {
  it.each(tableNames)("%s: every row agrees", (name) => {
    const file = `${folder}${name}.json`;
    const { rows, differing } = runTable(name, file, JSON.parse(readFileSync(file, "utf8")));
    expect(differing).toEqual([]);
    expect(rows).toBe(rowsOf[name]);
  });

  it("a changed expectation is found, with its index", () => {
    const rows = [
      ["pass", "pass"],
      ["weird", "pass"],
    ];
    expect(runTable("status-normalise", "t.json", rows).differing).toEqual([
      { index: "1", expected: "pass", got: "missing" },
    ]);
    const { differing } = runTable("statistics", "t.json", { mcnemar: [{ onlyA: 5, onlyB: 0, pValue: 0.0625001 }] });
    expect(differing.map((row) => row.index)).toEqual(["mcnemar[0]"]);
  });

  it("a table of another form is refused by field", () => {
    const wrong = [
      { stopReason: "ended", turn: 1, exitCode: 0, expect: {} },
      { stopReason: "asleep", turn: 1, exitCode: 0, expect: {} },
    ];
    let caught: unknown;
    try {
      runTable("stop-reasons", "t.json", wrong);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ProblemsError);
    expect((caught as ProblemsError).problems).toMatchObject([
      { file: "t.json", field: "1.stopReason", found: '"asleep"' },
    ]);
    expect(() => runTable("outcome", "t.json", { rows: [] })).toThrow(ProblemsError);
    expect(() => runTable("statistics", "t.json", { wilsons: [] })).toThrow(ProblemsError);
  });
});

describe("agreement of a result", () => {
  it("compares what the table names and nothing else", () => {
    expect(agrees({ a: 1 }, { a: 1, b: 2 }, 0)).toBe(true);
    expect(agrees({ a: 1, b: null }, { a: 1 }, 0)).toBe(false);
    expect(agrees([1, 2], [1, 2, 3], 0)).toBe(false);
    expect(agrees({ p: 0.5 }, { p: 0.5 + 1e-10 }, 1e-9)).toBe(true);
    expect(agrees(null, 0, 1)).toBe(false);
  });
});
