/**
 * Names of everything that is stored: buckets and the keys in them. Nobody else builds a key.
 * A key is slash-separated, at most 1,024 bytes of UTF-8, without empty, `.` or `..` segments and without NUL.
 */
export const buckets = ["tasks", "hidden", "evidence", "results"] as const;
export type Bucket = (typeof buckets)[number];

export interface ObjectName {
  bucket: Bucket;
  key: string;
}

export type PackagePart = "agent" | "runner" | "simulator" | "hidden";

/** One try of one attempt, as it stands in keys. */
export interface TryName {
  attempt: string;
  try: number;
}

const two = (n: number): string => String(n).padStart(2, "0");
export const turnFolder = (turn: number): string => `turn-${two(turn)}`;
export const tryFolder = (of: TryName): string => `${of.attempt}/${two(of.try)}`;

/** Prefix (with a trailing slash) of one part of a published package. */
export function packagePrefix(task: string, digest: string, part: PackagePart): ObjectName {
  return { bucket: part === "hidden" ? "hidden" : "tasks", key: `packages/${task}@${digest}/${part}/` };
}

/** A file of a published package, `agent/request.md` say. */
export function packageFile(task: string, digest: string, part: PackagePart, path: string): ObjectName {
  const prefix = packagePrefix(task, digest, part);
  return { bucket: prefix.bucket, key: prefix.key + path };
}

/** Checkpoints that a supervisor listed for a rubric without weights; kept for all attempts on that digest. */
export const rubricKey = (digest: string): ObjectName => ({ bucket: "hidden", key: `rubrics/${digest}.json` });

/** Prefixes of one try, with a trailing slash. */
export const evidencePrefix = (of: TryName): ObjectName => ({ bucket: "evidence", key: `attempts/${tryFolder(of)}/` });
export const followUpPrefix = (of: TryName): ObjectName => ({ bucket: "evidence", key: `followups/${tryFolder(of)}/` });
export const decisionPrefix = (of: TryName): ObjectName => ({ bucket: "hidden", key: `decisions/${tryFolder(of)}/` });

export function evidenceFileKey(of: TryName, turn: number, path: string): ObjectName {
  return { bucket: "evidence", key: `${evidencePrefix(of).key}${turnFolder(turn)}/${path}` };
}
export function decisionFileKey(of: TryName, turn: number, file: string): ObjectName {
  return { bucket: "hidden", key: `${decisionPrefix(of).key}${turnFolder(turn)}/${file}` };
}
/** `file`: `turn-02.json` and the like, named by the turn that the follow-up opens. */
export function followUpFileKey(of: TryName, file: string): ObjectName {
  return { bucket: "evidence", key: followUpPrefix(of).key + file };
}
/** One line of usage for each model call of a judging or of a follow-up, from 1: each is written as its call ends. */
export const judgingUsageKey = (of: TryName, turn: number, call: number): ObjectName =>
  decisionFileKey(of, turn, `usage-${two(call)}.jsonl`);
/** @param opens the turn that the follow-up opens */
export const followUpUsageKey = (of: TryName, opens: number, call: number): ObjectName =>
  followUpFileKey(of, `${turnFolder(opens)}-usage-${two(call)}.jsonl`);

export const mailboxKey = (mailbox: string, turn: number): ObjectName => ({
  bucket: "evidence",
  key: `mailbox/${mailbox}/${turnFolder(turn)}`,
});

export const manifestKey = (sweep: string, generation: number, lane: string): ObjectName => ({
  bucket: "results",
  key: `sweeps/${sweep}/g${two(generation)}/manifest-${lane}.jsonl`,
});
/** The sweep of a generation as it was expanded: `sweep.json` (lib/sweep/stored-sweep.ts) and every planned attempt. */
export const sweepFileKey = (sweep: string, generation: number): ObjectName => ({
  bucket: "results",
  key: `sweeps/${sweep}/g${two(generation)}/sweep.json`,
});
/** Prefix of all generations of a sweep. */
export const sweepsPrefix = (sweep: string): ObjectName => ({ bucket: "results", key: `sweeps/${sweep}/` });
export const planKey = (sweep: string, generation: number): ObjectName => ({
  bucket: "results",
  key: `sweeps/${sweep}/g${two(generation)}/plan.jsonl`,
});
export const compactionPrefix = (sweep: string, compaction: number): ObjectName => ({
  bucket: "results",
  key: `scores/sweep_id=${sweep}/compaction=${two(compaction)}/`,
});

/** Files of a compaction: `started` claims its number, `done` is written last and makes it count. */
export const compactionFiles = { started: "_started", rows: "rows.jsonl", done: "_done" } as const;

/** Files of a turn's evidence, one place for their names. */
export const evidenceFiles = {
  report: "report.json",
  transcript: "transcript.jsonl",
  events: "events.jsonl",
  modelCalls: "model-calls.jsonl",
  usage: "usage.jsonl",
  toolUsage: "tool-usage.json",
  /** What the agent's process printed, `{t, stream, text}` a line; there only when it printed something. */
  output: "output.jsonl",
  manifest: "manifest.json",
  results: "results/",
} as const;
