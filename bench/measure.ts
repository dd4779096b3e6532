/** One figure of the benchmark. */
export interface Measure {
  name: string;
  value: number;
  unit: string;
  /** What Proctor holds itself to, in words: `at most 5`; null where there is no bound. */
  target: string | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
