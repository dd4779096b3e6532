/** Numbers as they are printed. */

/**
 * `value` with `digits` decimals; a number that lies exactly between two goes to the even one, as in the tables of the
 * paper (0.0625 is 0.062).
 */
export function decimals(value: number, digits: number): string {
  // Only a multiple of 2^-(digits+1) can lie exactly between, and times a power of two is exact.
  const halves = value * 2 ** (digits + 1);
  const isTie = Number.isInteger(halves) && halves % 2 !== 0;
  if (!isTie) return value.toFixed(digits);
  const scaled = Math.floor(value * 10 ** digits);
  return ((scaled % 2 === 0 ? scaled : scaled + 1) / 10 ** digits).toFixed(digits);
}
