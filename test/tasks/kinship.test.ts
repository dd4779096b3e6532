import { describe, expect, it } from "vitest";
import { capabilityOf, clustersOf, counterpart, languageOf } from "../../lib/tasks/kinship.ts";

describe("what a category says", () => {
  it.each([
    ["101_skill_usage", "skill_usage", "en"],
    ["202_exploration_zh", "exploration", "zh"],
    ["203_long_context_zh", "long_context", "zh"],
    ["104_multimodal", "multimodal", "en"],
    ["205_cross_platform_zh", "cross_platform", "zh"],
    ["001_smoketest", "smoketest", "en"],
    ["own", "own", "en"],
  ] as const)("%s is %s in %s", (category, capability, language) => {
    expect(capabilityOf(category)).toBe(capability);
    expect(languageOf(category, "Do it.")).toBe(language);
  });

  it("takes the request's language where the category says none", () => {
    expect(languageOf("own", "请把结果保存到 `/tmp_workspace/results/a.txt`。")).toBe("zh");
    expect(languageOf("own", "Draw the panel that is labelled `图 3` in the image.")).toBe("en");
  });
});

describe("clusters", () => {
  const cluster = (tasks: [string, string?][], id: string): string | undefined =>
    clustersOf(tasks.map(([name, twin]) => ({ id: name, twin: twin ?? null }))).get(id);

  it("pair 10x_NN with 20x_NN of the same name", () => {
    expect(counterpart("task_202_35_sudoku")).toBe("task_102_35_sudoku");
    expect(counterpart("task_102_35_sudoku")).toBe("task_202_35_sudoku");
    expect(counterpart("task_106_35_sudoku")).toBeNull();
    const both: [string][] = [["task_102_35_sudoku"], ["task_202_35_sudoku"]];
    expect(cluster(both, "task_202_35_sudoku")).toBe("task_102_35_sudoku");
    expect(cluster(both, "task_102_35_sudoku")).toBe("task_102_35_sudoku");
  });

  it("have the same name whether or not the other half is there", () => {
    expect(cluster([["task_202_35_sudoku"]], "task_202_35_sudoku")).toBe("task_102_35_sudoku");
  });

  it("keep tasks of one number and other names apart", () => {
    expect(cluster([["task_102_35_a"], ["task_202_35_b"]], "task_202_35_b")).toBe("task_102_35_b");
  });

  it.each([
    [[["a", "b"], ["b"]]],
    [[["a"], ["b", "a"]]],
    [
      [
        ["a", "b"],
        ["b", "a"],
      ],
    ],
    [
      [
        ["b", "a"],
        ["a", "b"],
      ],
    ],
  ] as [[string, string?][]][])("follow twin fields: %j", (tasks) => {
    expect(cluster(tasks, "a")).toBe(cluster(tasks, "b"));
  });

  it("end although twins name each other in a circle", () => {
    const circle: [string, string][] = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
      ["d", "a"],
    ];
    expect(new Set(["a", "b", "c", "d"].map((id) => cluster(circle, id)))).toEqual(new Set(["a"]));
  });
});
