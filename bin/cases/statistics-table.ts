/** The table of statistics: one object with a list of rows for each function; a table may hold some of the lists only. */
import { z } from "zod";
import { cohenKappa, mcnemar, pearson, percentAgreement, spearman } from "../../lib/results/agreement.ts";
import {
  clusteredMean,
  type Interval,
  passAtK,
  passHatK,
  passRateInterval,
  wilsonInterval,
} from "../../lib/results/statistics.ts";
import type { CaseResult, TableForm } from "./tables.ts";

const count = z.number().int().nonnegative();
const numbers = z.array(z.number());
const clusters = z.array(z.array(z.number()));
const value = z.number().nullable();
const ci95 = z.tuple([z.number(), z.number()]).nullable();

const form = z.strictObject({
  wilson: z.array(z.object({ k: count, n: count, ci95 })).default([]),
  passAtK: z.array(z.object({ n: count, c: count, k: count, passAtK: value, passHatK: value })).default([]),
  mcnemar: z.array(z.object({ onlyA: count, onlyB: count, pValue: z.number() })).default([]),
  agreement: z.array(z.object({ a: numbers, b: numbers, pearson: value, spearman: value })).default([]),
  kappa: z
    .array(z.object({ a: z.array(z.string()), b: z.array(z.string()), percent: value, kappa: value }))
    .default([]),
  clusteredStandardError: z.array(z.object({ clusters, mean: value, se: value })).default([]),
  passRateInterval: z.array(z.object({ clusters, p: value, nEff: value, ci95 })).default([]),
});

export const statisticsForm: TableForm = (json) => {
  const parsed = form.safeParse(json);
  if (!parsed.success) return { issues: parsed.error.issues };
  const table = parsed.data;
  const results: CaseResult[] = [];
  const run = <Row>(name: string, rows: readonly Row[], compute: (row: Row) => Record<string, unknown>): void => {
    rows.forEach((row, index) => {
      const got = compute(row);
      const expected = Object.fromEntries(Object.keys(got).map((key) => [key, Reflect.get(row as object, key)]));
      results.push({ index: `${name}[${index}]`, expected, got });
    });
  };
  run("wilson", table.wilson, ({ k, n }) => ({ ci95: pair(wilsonInterval(n === 0 ? 0 : k / n, n).value) }));
  run("passAtK", table.passAtK, ({ n, c, k }) => ({
    passAtK: passAtK(n, c, k).value,
    passHatK: passHatK(n, c, k).value,
  }));
  run("mcnemar", table.mcnemar, ({ onlyA, onlyB }) => ({ pValue: mcnemar(onlyA, onlyB) }));
  run("agreement", table.agreement, ({ a, b }) => ({ pearson: pearson(a, b).value, spearman: spearman(a, b).value }));
  run("kappa", table.kappa, ({ a, b }) => ({ percent: percentAgreement(a, b).value, kappa: cohenKappa(a, b).value }));
  run("clusteredStandardError", table.clusteredStandardError, (row) => {
    const estimate = clusteredMean(row.clusters).value;
    return { mean: estimate?.mean ?? null, se: estimate?.se.value ?? null };
  });
  run("passRateInterval", table.passRateInterval, (row) => {
    const estimate = passRateInterval(row.clusters).value;
    return { p: estimate?.p ?? null, nEff: estimate?.nEff ?? null, ci95: pair(estimate?.ci95 ?? null) };
  });
  return { results };
};

function pair(interval: Interval | null): [number, number] | null {
  return interval === null ? null : [interval.low, interval.high];
}
