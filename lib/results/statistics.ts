/**
 * Estimates of one system, with the task as the unit and clusters of tasks that belong together (a task and its twin).
 * Everywhere: intervals are two-sided at 95 %; `clusters` is a list of clusters, each a list of its tasks' values.
 */
import { type Computed, computed, notComputed } from "./computed.ts";

export interface Interval {
  low: number;
  high: number;
}

/** Quantile of the standard normal distribution at 0.975. */
const z = 1.959963984540054;

/** Wilson's score interval of a share `p` of `n`; `n` may be an effective number, not whole. */
export function wilsonInterval(p: number, n: number): Computed<Interval> {
  if (!(n > 0)) return notComputed("no results");
  const centre = (p + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const half = (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return computed(clamped({ low: centre - half, high: centre + half }));
}

export interface ClusteredMean {
  mean: number;
  /** Standard error over clusters: Var = G/(G-1) · Σ over clusters (Σ of deviations)² / n². */
  se: Computed<number>;
  /** Number of values, and of clusters. */
  n: number;
  clusters: number;
}

export function clusteredMean(clusters: readonly (readonly number[])[]): Computed<ClusteredMean> {
  const filled = clusters.filter((cluster) => cluster.length > 0);
  const n = filled.reduce((count, cluster) => count + cluster.length, 0);
  if (n === 0) return notComputed("no results");
  const mean = filled.reduce((total, cluster) => total + sum(cluster), 0) / n;
  const count = filled.length;
  if (count === 1) return computed({ mean, se: notComputed(oneCluster(n)), n, clusters: 1 });
  const squares = filled.reduce((total, cluster) => total + sum(cluster.map((value) => value - mean)) ** 2, 0);
  const se = Math.sqrt(((count / (count - 1)) * squares) / (n * n));
  return computed({ mean, se: computed(se), n, clusters: count });
}

/** Interval of a mean: t on G-1 degrees of freedom. */
export function meanInterval(clusters: readonly (readonly number[])[]): Computed<Interval> {
  const estimate = clusteredMean(clusters);
  if (estimate.value === null) return estimate;
  const { mean, se, clusters: count } = estimate.value;
  if (se.value === null) return se;
  const half = tQuantile(count - 1) * se.value;
  return computed({ low: mean - half, high: mean + half });
}

export interface RateInterval {
  p: number;
  /** Independent tasks that the clustered ones are worth. */
  nEff: number;
  ci95: Interval;
}

/**
 * Interval of a pass rate with one result a task (0 or 1): Wilson on the effective number of tasks,
 * n / max(1, deff) with deff = Var_clustered · (n-1) / (p(1-p)).
 */
export function passRateInterval(clusters: readonly (readonly number[])[]): Computed<RateInterval> {
  const estimate = clusteredMean(clusters);
  if (estimate.value === null) return estimate;
  const { mean: p, se, n, clusters: count } = estimate.value;
  const nEff = isEdge(p) || se.value === null ? count : n / Math.max(1, (se.value ** 2 * (n - 1)) / (p * (1 - p)));
  const ci95 = wilsonInterval(p, nEff);
  return ci95.value === null ? ci95 : computed({ p, nEff, ci95: ci95.value });
}

/**
 * Interval of a pass rate over task means (several epochs): clustered t within 0..1. Where all passed or none did the
 * spread is 0 and says nothing, so it is Wilson's on the number of clusters.
 */
export function taskMeanRateInterval(clusters: readonly (readonly number[])[]): Computed<Interval> {
  const estimate = clusteredMean(clusters);
  if (estimate.value === null) return estimate;
  if (isEdge(estimate.value.mean)) return wilsonInterval(Math.round(estimate.value.mean), estimate.value.clusters);
  const interval = meanInterval(clusters);
  return interval.value === null ? interval : computed(clamped(interval.value));
}

/**
 * Chance that at least one of `k` tries passes, estimated without bias from `c` passes in `n` tries:
 * 1 - C(n-c,k)/C(n,k) (Chen et al. 2021).
 */
export function passAtK(n: number, c: number, k: number): Computed<number> {
  if (n < k) return notComputed(`${n} results, ${k} needed`);
  return computed(1 - chooseRatio(n - c, n, k));
}

/** Chance that all of `k` tries pass: C(c,k)/C(n,k) (Yao et al. 2024). */
export function passHatK(n: number, c: number, k: number): Computed<number> {
  if (n < k) return notComputed(`${n} results, ${k} needed`);
  return computed(chooseRatio(c, n, k));
}

/**
 * Quantile of Student's t at 0.975, for whole degrees of freedom, to double precision. With t = √ν·tan θ the share
 * between -t and t is a finite series in cos θ (Abramowitz and Stegun 26.7.3, 26.7.4), which grows with θ: bisection.
 */
export function tQuantile(degreesOfFreedom: number): number {
  let low = 0;
  let high = Math.PI / 2;
  for (let step = 0; step < 80; step++) {
    const middle = (low + high) / 2;
    if (centralShare(middle, degreesOfFreedom) < 0.95) low = middle;
    else high = middle;
  }
  return Math.sqrt(degreesOfFreedom) * Math.tan((low + high) / 2);
}

function centralShare(theta: number, degreesOfFreedom: number): number {
  const odd = degreesOfFreedom % 2 === 1;
  const square = Math.cos(theta) ** 2;
  let term = odd ? Math.cos(theta) : 1;
  let series = degreesOfFreedom === 1 ? 0 : term;
  for (let i = odd ? 3 : 2; i < degreesOfFreedom; i += 2) {
    term *= ((i - 1) / i) * square;
    series += term;
  }
  return odd ? (2 / Math.PI) * (theta + Math.sin(theta) * series) : Math.sin(theta) * series;
}

/** C(a,k) / C(b,k) for a <= b as a product, so that nothing overflows. */
function chooseRatio(a: number, b: number, k: number): number {
  let ratio = 1;
  for (let i = 0; i < k; i++) {
    if (a - i <= 0) return 0;
    ratio *= (a - i) / (b - i);
  }
  return ratio;
}

function oneCluster(n: number): string {
  return n === 1 ? "one task" : n === 2 ? "one pair" : "one cluster";
}

/** A mean that is 0 or 1 up to the dust of summing. */
function isEdge(p: number): boolean {
  return p < 1e-12 || p > 1 - 1e-12;
}

function clamped({ low, high }: Interval): Interval {
  return { low: Math.max(0, low), high: Math.min(1, high) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
