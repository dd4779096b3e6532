/** manifest.json: what a turn's evidence holds. It is written last: a turn without it does not exist. */
import { z } from "zod";
import { usage } from "../attempt/usage.ts";

const evidenceKind = z.enum([
  "report",
  "transcript",
  "events",
  "model-calls",
  "usage",
  "tool-usage",
  "result",
  "probe",
  "screenshot",
  "raw-transcript",
  /** What the agent's process printed. */
  "output",
]);
export type EvidenceKind = z.infer<typeof evidenceKind>;

const evidenceFile = z.object({
  /** Path below the turn's evidence, `results/a.txt` say: the agent's own name for a result, kept as data. */
  path: z.string(),
  bytes: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  kind: evidenceKind,
});
export type EvidenceFile = z.infer<typeof evidenceFile>;

const skippedFile = z.object({ path: z.string(), reason: z.string() });
export type SkippedFile = z.infer<typeof skippedFile>;

export const evidenceManifest = z.object({
  v: z.literal(1),
  files: z.array(evidenceFile),
  skipped: z.array(skippedFile),
  usage,
  /** How often each tool was called in this turn. */
  toolCounts: z.record(z.string(), z.number().int().nonnegative()),
});
export type EvidenceManifest = z.infer<typeof evidenceManifest>;
