import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cohenKappa, mcnemar, pearson } from "../../lib/results/agreement.ts";
import { decimals } from "../../lib/results/decimals.ts";
import {
  clusteredMean,
  meanInterval,
  passAtK,
  passHatK,
  passRateInterval,
  taskMeanRateInterval,
  tQuantile,
  wilsonInterval,
} from "../../lib/results/statistics.ts";

describe("quantiles of t", () => {
  // Closed forms for 1 and 2 degrees, tables beyond.
  it.each([
    [1, Math.tan(0.475 * Math.PI)],
    [2, 0.95 / Math.sqrt(2 * 0.975 * 0.025)],
    [3, 3.182446305284263],
    [4, 2.7764451051977987],
    [10, 2.2281388519649385],
    [30, 2.0422724563012373],
    [399, 1.965927295920808],
  ])("%i degrees", (degrees, expected) => {
    expect(tQuantile(degrees)).toBeCloseTo(expected, 9);
  });

  it("approach the normal's", () => {
    expect(tQuantile(20_000)).toBeCloseTo(1.959963984540054, 3);
  });
});

describe("intervals", () => {
  it("what cannot be computed is null with a reason", () => {
    expect(wilsonInterval(0, 0)).toEqual({ value: null, reason: "no results" });
    expect(clusteredMean([])).toEqual({ value: null, reason: "no results" });
    expect(clusteredMean([[], []]).value).toBeNull();
    expect(meanInterval([[0.5, 0.7]])).toEqual({ value: null, reason: "one pair" });
    expect(meanInterval([[0.5]])).toEqual({ value: null, reason: "one task" });
    expect(passRateInterval([]).value).toBeNull();
    expect(passAtK(2, 1, 3)).toEqual({ value: null, reason: "2 results, 3 needed" });
    expect(passHatK(2, 1, 3).value).toBeNull();
    expect(pearson([1, 1], [1, 2]).reason).toBe("one side never varies");
    expect(pearson([0.1 + 0.2, 0.3], [0.3, 0.3]).value).toBeNull();
    expect(cohenKappa([], []).value).toBeNull();
  });

  it("hold their estimate and stay within 0..1 for rates", () => {
    const clusters = fc.array(fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(clusters, (given) => {
        const rate = passRateInterval(given).value!;
        expect(rate.ci95.low).toBeGreaterThanOrEqual(0);
        expect(rate.ci95.low).toBeLessThanOrEqual(rate.p + 1e-12);
        expect(rate.ci95.high).toBeGreaterThanOrEqual(rate.p - 1e-12);
        expect(rate.ci95.high).toBeLessThanOrEqual(1);
        expect(rate.nEff).toBeGreaterThan(0);
        const means = taskMeanRateInterval(given).value;
        if (means) expect(0 <= means.low && means.low <= means.high && means.high <= 1).toBe(true);
      }),
    );
  });

  it("McNemar keeps its head at any size", () => {
    expect(mcnemar(3000, 3000)).toBe(1);
    expect(mcnemar(5000, 10)).toBe(0);
    expect(mcnemar(1100, 900)).toBeCloseTo(8.5e-6, 6);
  });
});

describe("printed numbers", () => {
  const paper = JSON.parse(
    readFileSync(fileURLToPath(new URL("../fixtures/paper/uniclawbench.json", import.meta.url)), "utf8"),
  ) as {
    tasksPerCategory: number;
    table1: { categories: Record<string, { passRate: number }>; overall: { passRate: number } }[];
  };

  it("shares of the paper's tasks print as its tables have them, to the digit", () => {
    const n = paper.tasksPerCategory;
    for (const { categories, overall } of paper.table1) {
      let passed = 0;
      for (const { passRate } of Object.values(categories)) {
        const k = Math.round(passRate * n);
        passed += k;
        expect(decimals(k / n, 3)).toBe(passRate.toFixed(3));
      }
      expect(decimals(passed / (5 * n), 3)).toBe(overall.passRate.toFixed(3));
    }
  });

  it("exact halves go to the even digit", () => {
    expect([0.0625, 0.1875, 0.4375, 0.5].map((value) => decimals(value, 3))).toEqual([
      "0.062",
      "0.188",
      "0.438",
      "0.500",
    ]);
  });
});
