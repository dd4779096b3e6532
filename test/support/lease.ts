/** A lease for tests of what happens to an open try. */
import type { Lease } from "../../lib/platform/ports.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";

/** Of the first try of an attempt, between turns; `change` replaces fields of it. */
export function aLease(line: ManifestLine, change: Partial<Lease> = {}): Lease {
  return {
    sweep: line.sweep,
    attempt: line.attempt,
    try: 1,
    generation: line.generation,
    round: 1,
    mailbox: "m",
    sealKey: "k",
    turnSecret: "s",
    turnToken: null,
    reservedUsd: 1,
    executor: null,
    expiresAt: "2026-02-01T00:00:00Z",
    ...change,
  };
}
