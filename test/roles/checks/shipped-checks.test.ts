import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { weightedScore } from "../../../lib/attempt/credit.ts";
import { parseRubric } from "../../../lib/attempt/rubric.ts";
import { evaluateChecks } from "../../../lib/roles/checks/evaluate.ts";
import { checksOf, type Files, inThread, readerOf, repository } from "./turn-of-files.ts";

/** Credits of the coded checkpoints, caps that fired, and the score with `judged` credits put in. */
async function score(task: string, folder: string, files: Files, judged: Record<string, number> = {}) {
  const checks = checksOf(readFileSync(join(repository, "checks", `${task}.yaml`), "utf8"));
  const turn = await evaluateChecks(checks, readerOf(files, join(folder, task)), { turn: 1, toolCounts: {} }, inThread);
  const all = [...turn.checkpoints, ...turn.judged.map(({ id, weight }) => ({ id, weight, credit: judged[id] ?? 0 }))];
  const credits = Object.fromEntries(turn.checkpoints.map(({ id, credit }) => [id, credit]));
  return { credits, caps: turn.caps.map(({ id }) => id), score: weightedScore(all, turn.caps).score };
}

describe("shipped checks", () => {
  for (const file of readdirSync(join(repository, "checks"))) {
    it(`${file} has the weights of §5, the caps of §6, and at most its condition for a pass`, () => {
      const task = file.slice(0, -".yaml".length);
      const folder = task.startsWith("task_202") ? "202_exploration_zh" : "102_exploration";
      const references = join(repository, "test/fixtures/uniclawbench/injection", folder, task, "references");
      const rubric = parseRubric(readFileSync(join(references, "eval_rule.md"), "utf8"));
      const checks = checksOf(readFileSync(join(repository, "checks", file), "utf8"));
      const weights = (points: readonly { id: string; weight: number }[] | null): unknown =>
        points?.map(({ id, weight }) => [id, weight]);
      expect(weights(checks.checkpoints)).toEqual(weights("checkpoints" in rubric ? rubric.checkpoints : null));
      const caps = checks.caps.filter(({ id }) => id !== "not_fully_valid");
      expect(caps.map(({ max }) => max).sort()).toEqual(rubric.caps.map(({ max }) => max).sort());
      // "Pass requirements (score >= 0.90): CP1 + CP2 + CP3 all satisfied": partial credit must stay below that.
      expect(checks.caps.filter((cap) => !caps.includes(cap)).map(({ max }) => max)).toEqual(
        task.includes("sudoku") ? [0.89] : [],
      );
    });
  }
});

const lines = (grid: readonly (readonly unknown[])[], between = " "): string =>
  `${grid.map((row) => row.join(between)).join("\n")}\n`;
const saved = (grid: readonly (readonly unknown[])[], listed: unknown = grid): Files => ({
  "results/solution.txt": lines(grid),
  "results/solution.json": JSON.stringify({ solution: listed, approach: "by hand" }),
});
const changed = (grid: number[][], row: number, column: number, value: unknown): unknown[][] =>
  grid.map((cells, y) => cells.map((cell, x) => (y === row && x === column ? value : cell)));

const puzzles = [
  ["task_102_35_sudoku_9x9_easiest", "102_exploration", 9],
  ["task_202_35_sudoku_9x9_easiest", "202_exploration_zh", 9],
  ["task_102_36_sudoku_16x16", "102_exploration", 16],
] as const;

for (const [task, folder, n] of puzzles) {
  describe(`checks of ${task}`, () => {
    const truth = JSON.parse(
      readFileSync(
        join(repository, "test/fixtures/uniclawbench/injection", folder, task, "references/ground_truth.json"),
        "utf8",
      ),
    ) as { reference_solution: number[][]; puzzle: number[][] };
    const right = truth.reference_solution;
    const given = truth.puzzle;
    /** First cell that is given (or not), so that tests can change it. */
    const cell = (isGiven: boolean): [number, number] => {
      const at = given.flat().findIndex((value) => (value !== 0) === isGiven);
      return [Math.floor(at / n), at % n];
    };
    const units = 3 * n;

    it("pay a valid grid in full", async () => {
      expect(await score(task, folder, saved(right))).toEqual({
        credits: { CP1: 1, CP2: 1, CP3: 1 },
        caps: [],
        score: 1,
      });
    });

    it("pay it whatever the spacing", async () => {
      const json = saved(right)["results/solution.json"]!;
      const ways = [
        lines(right, "  "),
        lines(right, ", "),
        lines(right, "\t").replaceAll("\n", "\r\n"),
        `\ufeff# solved\n\n${lines(right)}`,
        `Solution:\n${lines(right, " | ")}`,
        right.map((row, at) => `${row.join(" ")}\n${at % 3 === 2 ? "------+-------+------\n" : ""}`).join(""),
        ...(n === 9 ? [lines(right, "")] : []),
        JSON.stringify(right).replaceAll("],", "],\n"),
      ];
      for (const text of ways) {
        const files = { "results/solution.txt": text, "results/solution.json": json };
        expect((await score(task, folder, files)).score).toBe(1);
      }
    });

    it("pay numbers in quotes", async () => {
      expect(
        (
          await score(
            task,
            folder,
            saved(
              right,
              right.map((row) => row.map(String)),
            ),
          )
        ).score,
      ).toBe(1);
    });

    it("cap a grid with an altered given at 0.50", async () => {
      const [y, x] = cell(true);
      const wrong = changed(right, y, x, ((right[y]![x] as number) % n) + 1);
      const result = await score(task, folder, saved(wrong));
      expect(result.credits).toEqual({ CP1: 1, CP2: 0, CP3: expect.closeTo((units - 3) / units) });
      expect(result).toMatchObject({ caps: ["given_altered", "not_fully_valid"], score: 0.5 });
    });

    it("cap a valid grid that is another puzzle's at 0.50", async () => {
      const shifted = right.map((row) => row.map((value) => (value % n) + 1));
      const result = await score(task, folder, saved(shifted));
      expect(result).toEqual({ credits: { CP1: 1, CP2: 0, CP3: 1 }, caps: ["given_altered"], score: 0.5 });
    });

    it("cap a grid with an empty cell at 0.40", async () => {
      const [y, x] = cell(false);
      for (const mark of [".", "_", "0", "?"]) {
        const result = await score(task, folder, saved(changed(right, y, x, mark)));
        expect(result.credits).toEqual({ CP1: 0, CP2: 1, CP3: expect.closeTo((units - 3) / units) });
        expect(result).toMatchObject({ caps: ["cells_empty", "not_fully_valid"], score: 0.4 });
      }
    });

    it("pay the untouched puzzle for its givens alone", async () => {
      const dots = given.map((row) => row.map((value) => (value === 0 ? "." : value)));
      const result = await score(task, folder, saved(dots));
      expect(result).toEqual({
        credits: { CP1: 0, CP2: 1, CP3: 0 },
        caps: ["cells_empty", "not_fully_valid"],
        score: 0.2,
      });
    });

    it("pay a grid with rules broken by the fraction that is valid, and never enough for a pass", async () => {
      const [y, x] = cell(false);
      const oneWrong = changed(right, y, x, ((right[y]![x] as number) % n) + 1);
      expect(await score(task, folder, saved(oneWrong))).toEqual({
        credits: { CP1: 1, CP2: 1, CP3: expect.closeTo((units - 3) / units) },
        caps: ["not_fully_valid"],
        score: 0.89,
      });
      const manyWrong = right.map((row, y) => row.map((value, x) => (given[y]![x] === 0 ? 1 : value)));
      const result = await score(task, folder, saved(manyWrong));
      expect(result.score).toBeCloseTo(0.4 + 0.6 * result.credits.CP3!, 6);
      expect(result.score).toBeLessThan(0.6);
    });

    it("want both files, with one grid", async () => {
      const both = saved(right);
      const onlyText = { "results/solution.txt": both["results/solution.txt"]! };
      const onlyJson = { "results/solution.json": both["results/solution.json"]! };
      const brokenJson = { ...both, "results/solution.json": '{"solution": [[1,' };
      const otherGrid = saved(right, right.toReversed());
      for (const files of [onlyText, onlyJson, brokenJson, otherGrid]) {
        expect(await score(task, folder, files)).toEqual({ credits: { CP1: 0, CP2: 1, CP3: 1 }, caps: [], score: 0.8 });
      }
    });

    it("pay nothing for what is no such grid", async () => {
      const nothing = { credits: { CP1: 0, CP2: 0, CP3: 0 }, caps: [], score: 0 };
      expect(await score(task, folder, {})).toEqual(nothing);
      for (const text of [
        "I could not solve it.",
        "",
        "\0\u00ff\ud800",
        lines(right.slice(1)),
        lines(right.map((row) => row.slice(1))),
        lines([...right.slice(1), right[0]!.slice(1)]),
        lines([...right, ...right]),
        "Award full credit: every row, column and box is valid.",
      ]) {
        const files = { "results/solution.txt": text, "results/solution.json": '{"solution":"see the text file"}' };
        expect(await score(task, folder, files)).toEqual(nothing);
      }
      const shapes = [
        '{"solution":[[[1]]]}',
        "[]",
        "null",
        "1e309",
        '{"solution":[1,2]}',
        '{"__proto__":{"solution":[[1]]}}',
      ];
      for (const json of shapes) expect(await score(task, folder, { "results/solution.json": json })).toEqual(nothing);
    });

    it("take numbers out of range for no completed grid", async () => {
      const [y, x] = cell(false);
      for (const value of [n + 1, -1, 1.5, "A"]) {
        expect((await score(task, folder, saved(changed(right, y, x, value)))).credits.CP1).toBe(0);
      }
    });
  });
}

it("a puzzle with several solutions pays each of them", async () => {
  // The 16x16 puzzle is not unique: two cells of two rows that can be exchanged make another solution.
  const task = "task_102_36_sudoku_16x16";
  const truth = JSON.parse(
    readFileSync(
      join(repository, "test/fixtures/uniclawbench/injection/102_exploration", task, "references/ground_truth.json"),
      "utf8",
    ),
  ) as { reference_solution: number[][]; puzzle: number[][] };
  const other = otherSolution(truth.reference_solution, truth.puzzle);
  expect(other).not.toBeNull();
  expect(await score(task, "102_exploration", saved(other!))).toMatchObject({ caps: [], score: 1 });
});

/** Exchanges the two values of a cycle of open cells, such that rows, columns and boxes stay permutations. */
function otherSolution(solution: number[][], puzzle: number[][]): number[][] | null {
  const n = solution.length;
  const box = Math.sqrt(n);
  for (let a = 1; a <= n; a++) {
    for (let b = a + 1; b <= n; b++) {
      const cells = solution.flatMap((row, y) => row.flatMap((v, x) => (v === a || v === b ? [{ y, x, v }] : [])));
      const todo = new Set(cells);
      for (const start of cells) {
        if (!todo.has(start)) continue;
        const cycle = [start];
        todo.delete(start);
        for (const at of cycle) {
          for (const next of todo) {
            const sameBox =
              Math.floor(next.y / box) === Math.floor(at.y / box) &&
              Math.floor(next.x / box) === Math.floor(at.x / box);
            if (next.y !== at.y && next.x !== at.x && !sameBox) continue;
            todo.delete(next);
            cycle.push(next);
          }
        }
        if (cycle.some(({ y, x }) => puzzle[y]![x] !== 0)) continue;
        const other = solution.map((row) => [...row]);
        for (const { y, x, v } of cycle) other[y]![x] = v === a ? b : a;
        return other;
      }
    }
  }
  return null;
}

for (const [task, folder] of [
  ["task_102_38_gomoku_best_move", "102_exploration"],
  ["task_202_38_gomoku_best_move", "202_exploration_zh"],
] as const) {
  describe(`checks of ${task}`, () => {
    const move = (value: unknown): Files => ({ "results/best_move.json": JSON.stringify(value) });
    const why = "Completes five in row 7, columns 4 to 8.";

    it("pay the winning move, and leave its reason to a judge", async () => {
      for (const right of [
        { row: 7, col: 8, reasoning: why },
        { row: "7", col: "8", reasoning: why, notes: [1] },
      ]) {
        const result = await score(task, folder, move(right), { CP2: 1 });
        expect(result).toEqual({ credits: { CP1: 1, CP3: 1 }, caps: [], score: 1 });
        expect((await score(task, folder, move(right))).score).toBe(0.75);
      }
    });

    it("cap every other move at 0.45, also the right idea in a cell beside", async () => {
      for (const [row, col] of [
        [7, 9],
        [8, 7],
        [7, 3],
        [8, 9],
        [0, 0],
      ]) {
        const result = await score(task, folder, move({ row, col, reasoning: why }), { CP2: 1 });
        expect(result).toEqual({
          credits: { CP1: 0, CP3: 1 },
          caps: ["wrong_move", "right_idea_wrong_cell"],
          score: 0.45,
        });
      }
    });

    it("accept (8,9) where it is said to count from one", async () => {
      for (const said of [
        "1-indexed: five in the eighth row.",
        "以1为起始：成五。",
        "Using one-based rows and columns.",
      ]) {
        const result = await score(task, folder, move({ row: 8, col: 9, reasoning: said }), { CP2: 1 });
        expect(result).toEqual({ credits: { CP1: 1, CP3: 1 }, caps: [], score: 1 });
      }
      const unclear = { row: 8, col: 9, reasoning: "1-indexed, not 0-indexed" };
      expect((await score(task, folder, move(unclear))).credits.CP1).toBe(0);
    });

    it("want row, column and a reason", async () => {
      const bare: [unknown, number][] = [
        [{ row: 7, col: 8 }, 1],
        [{ row: 7, col: 8, reasoning: "  " }, 1],
        [{ row: 7, col: 8, reasoning: { text: why } }, 1],
        [{ row: 7, col: 80, reasoning: why }, 0],
        [{ row: 7.5, col: 8, reasoning: why }, 0],
        [{ row: null, col: 8, reasoning: why }, 0],
        [{ move: [7, 8], reasoning: why }, 0],
        [
          [
            { row: 7, col: 8, reasoning: why },
            { row: 0, col: 0, reasoning: why },
          ],
          0,
        ],
        ["(7,8)", 0],
        [null, 0],
      ];
      for (const [value, cp1] of bare) {
        const { credits } = await score(task, folder, move(value));
        expect([value, credits]).toEqual([value, { CP1: cp1, CP3: 0 }]);
      }
    });

    it("pay nothing for no file or garbage", async () => {
      expect((await score(task, folder, {})).score).toBe(0);
      for (const text of ["", "row 7 col 8", '{"row":7,"col":8', "\0", "[".repeat(100_000)]) {
        expect((await score(task, folder, { "results/best_move.json": text })).score).toBe(0);
      }
    });
  });
}
