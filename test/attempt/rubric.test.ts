import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRubric } from "../../lib/attempt/rubric.ts";

const folder = fileURLToPath(new URL("../fixtures/uniclawbench/injection/", import.meta.url));
const fixtures = readdirSync(folder).flatMap((category) =>
  readdirSync(folder + category).map((task) => ({
    task,
    markdown: readFileSync(`${folder}${category}/${task}/references/eval_rule.md`, "utf8"),
  })),
);

const weights = (markdown: string) => parseRubric(markdown).checkpoints?.map(({ id, weight }) => [id, weight]);
const section = (body: string, title = "## 5. Checkpoint Rubric") => `# Hidden rule\n\n${title}\n\n${body}\n`;

describe("real rubrics", () => {
  const sudoku = { weights: [0.2, 0.2, 0.6], caps: [0.5, 0.4] };
  const gomoku = { weights: [0.55, 0.25, 0.2], caps: [0.45, 0.7] };
  const review = { weights: [0.25, 0.2, 0.2, 0.15, 0.1, 0.1], caps: [0.4, 0.6, 0.65, 0.75, 0.7] };
  const expected: Record<string, { weights: number[]; caps: number[] }> = {
    task_102_05_itunes_lookup: { weights: [0.3, 0.2, 0.25, 0.15, 0.1], caps: [0.5, 0.55, 0.6, 0.4, 0.85] },
    task_102_35_sudoku_9x9_easiest: sudoku,
    task_202_35_sudoku_9x9_easiest: sudoku,
    task_102_36_sudoku_16x16: sudoku,
    task_102_38_gomoku_best_move: gomoku,
    task_202_38_gomoku_best_move: gomoku,
    task_103_05_mcp_server_landscape: { weights: [0.3, 0.25, 0.2, 0.15, 0.1], caps: [0.7, 0.7, 0.55, 0.4, 0.65] },
    task_103_07_slack_openclaw_assistant_setup: {
      weights: [0.15, 0.2, 0.25, 0.2, 0.1, 0.1],
      caps: [0.45, 0.6, 0.7, 0.4],
    },
    task_104_04_panel_figure3_reproduction: {
      weights: [0.06, 0.09, 0.25, 0.22, 0.23, 0.12, 0.03],
      caps: [0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.89, 0.75, 0.8, 0.84, 0.88],
    },
    task_104_10_street_food_search_csv: {
      weights: [0.15, 0.15, 0.25, 0.15, 0.15, 0.1, 0.05],
      caps: [0.3, 0.45, 0.45, 0.55, 0.45, 0.7, 0.84, 0.7, 0.55, 0.8, 0.6, 0.5, 0.84, 0.65, 0.3],
    },
    task_105_17_rag_web_review: review,
    task_205_17_rag_web_review: review,
  };

  it("all fixtures are covered", () => {
    expect(fixtures.map(({ task }) => task).sort()).toEqual(Object.keys(expected).sort());
  });

  it.each(fixtures)("$task: weights and caps", ({ task, markdown }) => {
    const rubric = parseRubric(markdown);
    expect(rubric.reason).toBeNull();
    expect(rubric.checkpoints?.map(({ weight }) => weight)).toEqual(expected[task]?.weights);
    expect(rubric.checkpoints?.map(({ id }) => id)).toEqual(
      expected[task]?.weights.map((_, index) => `CP${index + 1}`),
    );
    expect(rubric.caps.map(({ max }) => max)).toEqual(expected[task]?.caps);
    expect(rubric.caps.map(({ id }) => id)).toEqual(rubric.caps.map((_, index) => `cap-${index + 1}`));
  });

  it("texts are whole, without marks", () => {
    const rubric = parseRubric(fixtures.find(({ task }) => task === "task_104_10_street_food_search_csv")!.markdown);
    expect(rubric.checkpoints![0]!.text).toMatch(
      /^Output shape\. Award 0\.05 if \/tmp_workspace.* for this checkpoint\.$/,
    );
    expect(rubric.caps[0]!.text).toMatch(/^Cap at 0\.30 - No usable deliverable\. The CSV is missing.*results\/\.$/);
  });
});

describe("styles of weights", () => {
  it.each([
    ["a table with percent", "| ID | What | Weight |\n|---|---|---:|\n| CP1 | a | 40% |\n| CP2 | b | 60% |"],
    ["a table in percent by its head", "| ID | What | Weight (%) |\n|---|---|---|\n| CP1 | a | 40 |\n| CP2 | b | 60 |"],
    [
      "points, with a total row",
      "| | What | Points |\n|--|--|--|\n| CP1 | a | 4 pts |\n| CP2 | b | 6 pts |\n| Total | | 10 |",
    ],
    ["weights first", "- 0.40 One: a.\n- 0.60 Two: b."],
    ["bold weights and titles", "- **0.40 - One.** a\n  (0.1 if half)\n- **0.60 — Two.** b\n  - 0.3 for this\n"],
    ["bold weights alone", "* **0.40** — a\n* **0.60** — b"],
    ["percent first", "1. 40% – a\n2. 60% – b"],
    ["ids with brackets", "- **CP1 — Shape (0.40).** a\n- **CP2 — Rest (0.60).** b"],
    ["ids with the weight at the end", "- CP1: a — 0.4\n- CP2: b — weight: 0.6"],
    ["titles with brackets", "- **One (40%).** a\n- **Two (60%).** b"],
    ["headings", "### 5.1 (40%) One\na 0.3\n### 5.2 (60%) Two\nb"],
    [
      "Chinese points",
      "| 检查点 | 内容 | 分值 |\n|---|---|---|\n| CP1 | 甲 | 40 分 |\n| CP2 | 乙 | 60 分 |\n| 合计 | | 100 分 |",
    ],
  ])("%s", (_, body) => {
    expect(weights(section(body))).toEqual([
      ["CP1", 0.4],
      ["CP2", 0.6],
    ]);
  });

  it.each(["## 4. Checkpoint Rubric", "## Rubric", "### 5) Scoring", "## 五、评分标准", "## 检查点与权重"])(
    "under the title %s",
    (title) => {
      expect(weights(section("- 0.5 One\n- 0.5 Two", title))).toHaveLength(2);
    },
  );

  it("a section of numbers that are no weights is passed over", () => {
    const markdown = `## 3. Scoring history\n- 0.3 in spring\n\n## 7. Checkpoints\n- 0.5 One\n- 0.5 Two\n`;
    expect(weights(markdown)).toHaveLength(2);
  });

  it("sums that miss 1 by more than 0.005 are refused with the sum", () => {
    expect(parseRubric(section("- 0.333 a\n- 0.333 b\n- 0.333 c")).checkpoints).toHaveLength(3);
    expect(parseRubric(section("- 0.5 One\n- 0.57 Two"))).toMatchObject({
      checkpoints: null,
      reason: "weights sum to 1.07, not to 1",
    });
    expect(parseRubric("# Rule\nBe fair.")).toMatchObject({ checkpoints: null, reason: expect.any(String), caps: [] });
  });

  it("ids stay unique", () => {
    expect(weights(section("| ID | Weight |\n|-|-|\n| CP1 | 0.5 |\n| CP1 | 0.5 |"))).toEqual([
      ["CP1", 0.5],
      ["CP1'", 0.5],
    ]);
  });
});

describe("styles of caps", () => {
  const caps = (body: string, title = "## 6. Scoring Policy / Score Caps") =>
    parseRubric(section(body, title)).caps.map(({ max }) => max);

  it("bullets, prose, tables, and lists that leave the word out", () => {
    expect(
      caps("- **cap at `0.50`** if a cell was altered\n- Do **not** cap or fail merely because it is short"),
    ).toEqual([0.5]);
    expect(caps("Pass at >= 0.90. If A, cap at 0.70. If B, cap at 0.40.")).toEqual([0.7, 0.4]);
    expect(caps("- **Cap 0.30 — Leak.** If a key shows → cap total at 0.30.")).toEqual([0.3]);
    expect(caps("- nothing was saved → 0.30.\n- **0.55 — Made-up sources.** Cites what is not there.")).toEqual([
      0.3, 0.55,
    ]);
    expect(caps("| When | Cap |\n|---|---|\n| empty | 0.2 |")).toEqual([0.2]);
    expect(caps("- 没有截图时最高 0.6\n- 编造来源，封顶 40%", "## 6. 封顶规则")).toEqual([0.6, 0.4]);
  });

  it("a line with a number is no cap in a section that is not about caps", () => {
    expect(caps("- all of it → 0.30", "## 4. Scoring notes")).toEqual([]);
  });
});

describe("whatever stands in the file", () => {
  const fragment = fc.oneof(
    fc.string(),
    fc.constantFrom(
      "## 5. Checkpoint Rubric\n",
      "| ID | Weight |\n",
      "|--|--|\n",
      "| CP1 | 0.5 |\n",
      "- **0.5 -",
      "```\n",
      "\u0000",
      "\ud800",
    ),
    fc.constantFrom("cap at 0.", "封顶", "(0.5", "1e309", "\t- 50%", "#".repeat(50), "|".repeat(200), "*".repeat(300)),
  );
  it("parsing never throws, and weights that are returned sum to 1", () => {
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 30 }), (parts) => {
        const rubric = parseRubric(parts.join(""));
        if (rubric.checkpoints === null) expect(rubric.reason).not.toBe("");
        else {
          const sum = rubric.checkpoints.reduce((total, { weight }) => total + weight, 0);
          expect(Math.abs(sum - 1)).toBeLessThanOrEqual(0.0051);
        }
        for (const { max } of rubric.caps) expect(max >= 0 && max < 1).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("a megabyte of marks takes no time", () => {
    const before = performance.now();
    for (const unit of ["- 0.", "| 0.5 ", "cap ", "**0.5 (", "- [(weight ", "# ", "最高 "])
      parseRubric(section(unit.repeat(100_000)));
    expect(performance.now() - before).toBeLessThan(5000);
  });
});
