/** Regular expressions of checks. They run in the worker alone, where a pattern that never ends is stopped by the clock. */

/** What is wrong with a pattern; null when it is one. */
export function patternProblem(pattern: string, flags: string): string | null {
  try {
    new RegExp(pattern, flags);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What flags are expected; null when these are. `g` and `y` would make a match depend on the one before. */
export function flagsProblem(flags: string): string | null {
  const fits = /^[imsu]*$/.test(flags) && new Set(flags).size === flags.length;
  return fits ? null : "flags of i, m, s and u, each once";
}
