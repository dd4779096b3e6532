/** A number, or why there is none: what cannot be computed is never NaN and never 0. */
export type Computed<T> = { value: T; reason: null } | { value: null; reason: string };

export function computed<T>(value: T): Computed<T> {
  return { value, reason: null };
}

export function notComputed(reason: string): { value: null; reason: string } {
  return { value: null, reason };
}
