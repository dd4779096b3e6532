/** Two raters, or two systems, on the same things: how far they agree, and whether they differ by more than chance. */
import { type Computed, computed, notComputed } from "./computed.ts";

/**
 * Exact McNemar test: two-sided binomial over the pairs in which only one of two systems passed.
 * @returns p value, 1 where no pair differs
 */
export function mcnemar(onlyA: number, onlyB: number): number {
  const n = onlyA + onlyB;
  const fewer = Math.min(onlyA, onlyB);
  // C(n, fewer) / 2^n by logarithms, then the smaller terms as shares of it: no overflow at any n.
  let logTerm = -n * Math.LN2;
  for (let i = 1; i <= fewer; i++) logTerm += Math.log((n - fewer + i) / i);
  let share = 1;
  let tail = 1;
  for (let i = fewer; i > 0; i--) {
    share *= i / (n - i + 1);
    tail += share;
  }
  return Math.min(1, 2 * Math.exp(logTerm) * tail);
}

/** Pearson's correlation. */
export function pearson(a: readonly number[], b: readonly number[]): Computed<number> {
  const n = Math.min(a.length, b.length);
  if (n < 2) return notComputed(`${n} pairs, 2 needed`);
  const meanA = mean(a.slice(0, n));
  const meanB = mean(b.slice(0, n));
  let together = 0;
  let squaresA = 0;
  let squaresB = 0;
  for (let i = 0; i < n; i++) {
    const da = a[i]! - meanA;
    const db = b[i]! - meanB;
    together += da * db;
    squaresA += da * da;
    squaresB += db * db;
  }
  if (squaresA === 0 || squaresB === 0 || isConstant(a) || isConstant(b)) return notComputed("one side never varies");
  return computed(together / Math.sqrt(squaresA * squaresB));
}

/** Spearman's correlation: Pearson's of the ranks, ties sharing their mean rank. */
export function spearman(a: readonly number[], b: readonly number[]): Computed<number> {
  return pearson(ranks(a), ranks(b));
}

/** Share of pairs that are equal. */
export function percentAgreement(a: readonly string[], b: readonly string[]): Computed<number> {
  const n = Math.min(a.length, b.length);
  if (n === 0) return notComputed("no pairs");
  return computed(a.slice(0, n).filter((label, index) => label === b[index]).length / n);
}

/** Cohen's kappa: agreement beyond what two raters with the same habits reach by chance. */
export function cohenKappa(a: readonly string[], b: readonly string[]): Computed<number> {
  const observed = percentAgreement(a, b);
  if (observed.value === null) return observed;
  const n = Math.min(a.length, b.length);
  const share = (labels: readonly string[], label: string): number =>
    labels.slice(0, n).filter((other) => other === label).length / n;
  const chance = [...new Set([...a, ...b])].reduce((total, label) => total + share(a, label) * share(b, label), 0);
  if (chance >= 1 - 1e-12) return notComputed("both raters gave one and the same label");
  return computed((observed.value - chance) / (1 - chance));
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((value, index) => ({ value, index })).sort((x, y) => x.value - y.value);
  const ranked = new Array<number>(values.length).fill(0);
  for (let start = 0; start < order.length; ) {
    let end = start;
    while (end + 1 < order.length && order[end + 1]!.value === order[start]!.value) end += 1;
    for (let i = start; i <= end; i++) ranked[order[i]!.index] = (start + end) / 2 + 1;
    start = end + 1;
  }
  return ranked;
}

function isConstant(values: readonly number[]): boolean {
  return values.every((value) => value === values[0]);
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
