/** A manifest line for tests of the attempt. */
import { ordinaryLine } from "../../bench/manifest-line.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";

/** A line that is whole and ordinary; `change` replaces fields of it. */
export function aLine(change: Partial<ManifestLine> = {}): ManifestLine {
  return { ...ordinaryLine, sweep: "sweep-a", ...change };
}
