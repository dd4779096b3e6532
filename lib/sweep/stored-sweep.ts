/** sweep.json of a generation: what is needed to go on with a sweep without its file. */
import { z } from "zod";

export const storedSweep = z.strictObject({
  v: z.literal(1),
  sweep: z.string(),
  generation: z.number().int().positive(),
  /** Digest of the sweep as expanded. */
  digest: z.string(),
  /** What must not change under one name (lib/sweep/fixed.ts). */
  fixed: z.string(),
  capUsd: z.number().nonnegative().nullable(),
  /** Attempts at the same time, over all lanes. */
  concurrency: z.number().int().positive(),
  lanes: z.array(z.strictObject({ lane: z.string(), model: z.string(), concurrency: z.number().int().positive() })),
  planned: z.number().int().nonnegative(),
  /** The sweep file's: order and every attempt's own seed follow from it. */
  seed: z.number().int().nonnegative(),
  /** Hash of the preambles that the requests were rendered with (lib/tasks/preamble.ts). */
  preamble: z.string(),
});
export type StoredSweep = z.infer<typeof storedSweep>;
