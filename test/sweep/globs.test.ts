import { describe, expect, it } from "vitest";
import { chooseTasks } from "../../lib/sweep/globs.ts";

const tasks = [
  { id: "task_101_01_a", category: "101_skill_usage" },
  { id: "task_102_01_b", category: "102_exploration" },
  { id: "task_202_01_b", category: "202_exploration_zh" },
];
const ids = (globs: string[]): string[] => chooseTasks(tasks, globs).chosen.map((task) => task.id.slice(5, 8));

describe("globs of a sweep", () => {
  it.each([
    [["*"], ["101", "102", "202"]],
    [["task_102_*"], ["102"]],
    [["*exploration*"], ["102", "202"]],
    [["{101,102}_*"], ["101", "102"]],
    [
      ["*", "!*_zh"],
      ["101", "102"],
    ],
    [["!task_101_01_a"], ["102", "202"]],
    [["!*_zh", "*exploration*"], ["102"]],
    [["task_10[12]_01_?"], ["101", "102"]],
    [["102_exploration"], ["102"]],
    [["*", "!*"], []],
  ])("%j chooses %j", (globs, expected) => {
    expect(ids(globs)).toEqual(expected);
  });

  it("names globs that match nothing", () => {
    expect(chooseTasks(tasks, ["*", "gone*", "!nothing"]).idle).toEqual(["gone*", "!nothing"]);
  });
});
