/** What goes to a worker that decides checks, and what comes back. */
import { z } from "zod";
import { check, type FileSource } from "./schema.ts";

/** A file that checks of a job read, once for all of them. Path as in checks.yaml, `results/answer.json` say. */
const jobFile = z.object({
  path: z.string(),
  content: z.discriminatedUnion("status", [
    z.object({ status: z.literal("ok"), bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array) }),
    z.object({ status: z.literal("missing") }),
    z.object({ status: z.literal("too_large"), bytes: z.number() }),
  ]),
});
export type JobFile = z.infer<typeof jobFile>;
export type FileContent = JobFile["content"];

const checkJob = z.object({
  files: z.array(jobFile),
  checks: z.array(z.object({ id: z.string(), check })),
  /** How often each tool was called in the turn. */
  toolCounts: z.record(z.string(), z.number()),
});
export type CheckJob = z.infer<typeof checkJob>;

/**
 * decided: a credit; `note` says why it is not 1 where that is not plain.
 * missing: a deliverable is not there. evidence: what the agent wrote made the check fail; both count as 0.
 * broken: the check fails whatever the agent wrote, so it says nothing about the agent.
 */
export const checkOutcome = z.discriminatedUnion("status", [
  z.object({
    id: z.string(),
    status: z.literal("decided"),
    credit: z.number().min(0).max(1),
    note: z.string().nullable(),
  }),
  z.object({ id: z.string(), status: z.enum(["missing", "evidence", "broken"]), note: z.string() }),
]);
export type CheckOutcome = z.infer<typeof checkOutcome>;

export const sourceOf = (path: string): FileSource => path.slice(0, path.indexOf("/")) as FileSource;
