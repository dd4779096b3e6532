import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openRow } from "../../lib/attempt/attempt-row.ts";
import { isValidStatus, type RowStatus, rowStatus } from "../../lib/attempt/vocabulary.ts";
import { leaderboard } from "../../lib/results/leaderboard.ts";
import { provenanceOf, provenanceText } from "../../lib/results/provenance.ts";
import { reportJson } from "../../lib/results/report-json.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";
import { errorsText, estimateText, leaderboardTable } from "../../lib/results/terminal-table.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { aLine } from "../support/manifest-line.ts";

interface Planned {
  task: string;
  cluster?: string;
  model?: string;
  capability?: string;
  epoch?: number;
}

function plan({ task, cluster = task, model = "m", capability = "exploration", epoch = 1 }: Planned): ManifestLine {
  const line = aLine();
  return aLine({
    attempt: `${model}-${task}-${epoch}`.padEnd(26, "_").slice(0, 26),
    task,
    cluster,
    capability,
    epoch,
    threshold: 0.9,
    model: { ...line.model, name: model },
  });
}

function row(line: ManifestLine, status: RowStatus, score: number | null = null, tryNumber = 1): ScoreRow {
  const open = openRow(line, tryNumber, { now: 0, isolation: "bwrap", image: null, loweredLimits: {} });
  const valid = isValidStatus(status);
  return {
    ...open,
    status,
    valid,
    score: valid ? (score ?? 0) : null,
    passed: status === "pass" && (score ?? 0) >= 0.9,
  };
}

const pass = (line: ManifestLine, tryNumber = 1): ScoreRow => row(line, "pass", 1, tryNumber);
const fail = (line: ManifestLine, score = 0.5, tryNumber = 1): ScoreRow => row(line, "fail", score, tryNumber);

const stored = { seed: 7, preamble: "abcdef0123456789" };

describe("what counts", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((task) => plan({ task })) as [
    ManifestLine,
    ManifestLine,
    ManifestLine,
    ManifestLine,
  ];

  it("the first valid try, never the best of several, and valid after an error", () => {
    const board = leaderboard(
      [a, b],
      [fail(a), pass(a, 2), row(b, "infra_error"), fail(b, 0.2, 2), row(b, "unjudged", null, 3)],
      false,
    );
    expect(board.statuses).toEqual({ fail: 2 });
    expect(board.systems[0]!.overall.averageScore.value?.value).toBeCloseTo(0.35, 12);
  });

  it("planned = valid + pending + errors, errors by kind", () => {
    const rows = [pass(a), row(b, "rate_limit"), row(c, "running")];
    const running = leaderboard([a, b, c, d], rows, true);
    expect(running.overall).toEqual({ planned: 4, valid: 1, pending: 2, errors: 1, errorsByKind: { rate_limit: 1 } });
    const over = leaderboard([a, b, c, d], rows, false);
    expect(over.overall).toEqual({
      planned: 4,
      valid: 1,
      pending: 0,
      errors: 3,
      errorsByKind: { rate_limit: 1, missing: 2 },
    });
    expect(errorsText(over.overall)).toBe("1 rate_limit, 2 missing");
    expect(errorsText(running.overall)).toBe("1 rate_limit, 2 pending");
  });

  it("three denominators; pending attempts are in none", () => {
    const board = leaderboard([a, b, c, d], [pass(a), fail(b), row(c, "infra_error")], true);
    const { validOnly, errorsAsFailures, errorsAsPasses } = board.systems[0]!.overall.passRate;
    expect(validOnly.value?.value).toBe(0.5);
    expect(errorsAsFailures.value?.value).toBeCloseTo(1 / 3, 12);
    expect(errorsAsPasses.value?.value).toBeCloseTo(2 / 3, 12);
  });

  it("a passed row that does not reach its threshold is no pass", () => {
    const board = leaderboard([a], [{ ...row(a, "pass", 0.5), passed: false }], false);
    expect(board.systems[0]!.overall.passRate.validOnly.value?.value).toBe(0);
  });

  it("rows of attempts that are not planned any more count nowhere, and are told of", () => {
    const board = leaderboard([a], [pass(a), fail(b)], false);
    expect(board).toMatchObject({ unplanned: 1, overall: { planned: 1, valid: 1 } });
    expect(leaderboardTable(board)).toContain("1 attempts of earlier forms");
  });

  it("under compat an agent that never ended is an error, as in the original", () => {
    const board = leaderboard([a], [{ ...row(a, "executor_incomplete", 0), valid: false }], false);
    expect(board.overall).toMatchObject({ valid: 0, errors: 1, errorsByKind: { executor_incomplete: 1 } });
  });
});

describe("estimates", () => {
  it("without a valid result there is no number and a reason", () => {
    const a = plan({ task: "a" });
    const cell = leaderboard([a], [row(a, "infra_error")], false).systems[0]!.overall;
    expect(cell.passRate.validOnly).toEqual({ value: null, reason: "no valid results" });
    expect(cell.averageScore).toEqual({ value: null, reason: "no valid results" });
    expect(estimateText(cell.averageScore)).toBe("– no valid results");
    expect(cell.passRate.errorsAsPasses.value?.value).toBe(1);
  });

  it("a twin pair alone has a mean score and no interval of it", () => {
    const pair = [plan({ task: "en", cluster: "x" }), plan({ task: "zh", cluster: "x" })];
    const { averageScore, passRate, tasks, clusters } = leaderboard(
      pair,
      pair.map((line) => pass(line)),
      false,
    ).systems[0]!.overall;
    expect([tasks, clusters]).toEqual([2, 1]);
    expect(estimateText(averageScore)).toBe("1.000 – one pair");
    expect(passRate.validOnly.value?.interval.value?.high).toBeCloseTo(1, 12);
  });

  it("one epoch: Wilson on the effective number of tasks", () => {
    const lines = [1, 2, 3, 4, 5].map((n) => plan({ task: `t${n}` }));
    const rows = lines.map((line, index) => ([0, 2, 3].includes(index) ? pass(line) : fail(line)));
    const { interval } = leaderboard(lines, rows, false).systems[0]!.overall.passRate.validOnly.value!;
    expect(interval.value!.low).toBeCloseTo(0.2307242812760129, 9);
    expect(interval.value!.high).toBeCloseTo(0.8823792257673522, 9);
  });

  it("several epochs: mean of task means, t over clusters within 0..1", () => {
    const lines = ["a", "b", "c"].flatMap((task) => [1, 2, 3].map((epoch) => plan({ task, epoch })));
    const passing = new Set(["a1", "a2", "a3", "b1", "b2", "b3", "c1"]);
    const rows = lines.map((line) => (passing.has(`${line.task}${line.epoch}`) ? pass(line) : fail(line)));
    const { value, interval } = leaderboard(lines, rows, false).systems[0]!.overall.passRate.validOnly.value!;
    expect(value).toBeCloseTo(7 / 9, 12);
    // se = sd of (1, 1, 1/3) / sqrt(3) = 2/9, t(0.975, 2) = 4.302652729749
    expect(interval.value!.low).toBe(0);
    expect(interval.value!.high).toBe(1);
    const missing = leaderboard(lines, rows.slice(0, -1), false).systems[0]!.overall.passRate.validOnly.value!;
    expect(missing.value).toBeCloseTo((1 + 1 + 0.5) / 3, 12);
  });

  it("several epochs where all passed: Wilson on the number of clusters", () => {
    const lines = ["a", "b"].flatMap((task) => [1, 2].map((epoch) => plan({ task, epoch })));
    const { interval } = leaderboard(
      lines,
      lines.map((line) => pass(line)),
      false,
    ).systems[0]!.overall.passRate.validOnly.value!;
    expect(interval.value!.low).toBeCloseTo(0.34238022750665303, 9);
  });

  it("whatever the rows are, nothing is NaN and the parts add up", () => {
    const cases = fc.array(
      fc.record({
        task: fc.constantFrom("a", "b", "c"),
        model: fc.constantFrom("m", "n"),
        epoch: fc.constantFrom(1, 2),
        status: fc.constantFrom(...rowStatus.options),
        score: fc.double({ min: 0, max: 1, noNaN: true }),
        pair: fc.boolean(),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(cases, fc.boolean(), (given, running) => {
        const lines = new Map(given.map((one) => [`${one.model}${one.task}${one.epoch}`, one]));
        const planned = [...lines.values()].map((one) => plan({ ...one, cluster: one.pair ? "pair" : one.task }));
        const rows = [...lines.values()].map((one, index) => row(planned[index]!, one.status, one.score));
        const board = leaderboard(planned, rows, running);
        const text = JSON.stringify(
          reportJson({ sweep: "s", generation: 1, running }, board, provenanceOf(stored, planned, rows)),
          (_, value) => {
            if (typeof value === "number") expect(Number.isFinite(value)).toBe(true);
            return value as unknown;
          },
        );
        expect(text).toContain('"v":1');
        expect(leaderboardTable(board)).not.toMatch(/NaN|undefined|Infinity/);
        for (const { overall } of board.systems) {
          expect(overall.valid + overall.pending + overall.errors).toBe(overall.planned);
          const three = [overall.passRate.errorsAsFailures, overall.passRate.errorsAsPasses];
          if (three[0]!.value) expect(three[0]!.value.value).toBeLessThanOrEqual(three[1]!.value!.value + 1e-12);
        }
      }),
    );
  });
});

describe("the table", () => {
  const lines = [
    plan({ task: "a", model: "甲模型", capability: "探索" }),
    plan({ task: "b", model: "甲模型", capability: "skill_usage" }),
    plan({ task: "a", model: "m", capability: "探索" }),
  ];
  const board = leaderboard(lines, [fail(lines[0]!), pass(lines[1]!), pass(lines[2]!)], false);

  it("orders systems by result and shows each capability", () => {
    expect(board.systems.map(({ model }) => model)).toEqual(["m", "甲模型"]);
    expect(board.capabilities).toEqual(["skill_usage", "探索"]);
    expect(board.systems[1]!.byCapability.skill_usage?.passRate.validOnly.value?.value).toBe(1);
  });

  it("keeps its edges straight with wide characters", () => {
    const wide = (text: string): number =>
      [...text].reduce((width, char) => width + (/\p{Script=Han}/u.test(char) ? 2 : 1), 0);
    const [head, ...rest] = leaderboardTable(board).split("\n");
    const rows = rest.slice(0, rest.indexOf(""));
    expect(rows).toHaveLength(5);
    const column = wide(head!.slice(0, head!.indexOf("capability")));
    for (const row of rows) {
      const text = /(all|skill_usage|探索)/.exec(row)!;
      expect(wide(row.slice(0, text.index))).toBe(column);
    }
  });

  it("is written as blocks where the terminal is too narrow for it", () => {
    const text = leaderboardTable(board, 80);
    expect(text).toContain("甲模型, skill_usage: 1 of 1 valid, errors: 0\n  PR 1.000");
    expect(
      Math.max(
        ...text
          .split("\n")
          .slice(0, -4)
          .map((line) => line.length),
      ),
    ).toBeLessThanOrEqual(80);
    expect(leaderboardTable(board, 500)).toBe(leaderboardTable(board));
  });

  it("the head names isolation, roles and lowered limits", () => {
    const lowered = { ...pass(lines[2]!), lowered_limits: { turnSeconds: 5 } };
    expect(provenanceText(provenanceOf(stored, lines, [lowered]))).toEqual([
      "isolation: bwrap (1 tries)",
      "supervisor: checks; user simulator: none",
      "limits lowered by the sweep: turnSeconds 5",
      "seed: 7; preamble: abcdef012345",
    ]);
  });
});
