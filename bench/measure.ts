/** One figure of the benchmark. */
export interface Measure {
  name: string;
  /** Null where it could not be measured here; then `reason` says why. */
  value: number | null;
  unit: string;
  /** What Proctor holds itself to, in words: `at most 5`; null for what is told for information. */
  target: string | null;
  reason?: string;
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("there is no median of nothing");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
