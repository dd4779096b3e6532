/** Deciding what code decides of a turn: credits of checkpoints, and caps that fire. */
import { turnFolder } from "../../firewall/keys.ts";
import type { CheckRunner } from "../../platform/ports.ts";
import type { CheckpointCredit } from "../decision.ts";
import { type CheckJob, type CheckOutcome, type FileContent, type JobFile, sourceOf } from "./job.ts";
import type { Check, Checks, FileSource } from "./schema.ts";

/**
 * A file's bytes for a check. `path` is below its source: `answer.json` for `results/answer.json`. A file of more than
 * `maxBytes` is not read.
 */
export type EvidenceReader = (source: FileSource, path: string, maxBytes: number) => Promise<FileContent>;

export interface TurnFacts {
  turn: number;
  /** How often each tool was called in the turn. */
  toolCounts: Readonly<Record<string, number>>;
}

export interface CheckedTurn {
  /** Checkpoints that code decided, in the rubric's order. */
  checkpoints: CheckpointCredit[];
  /** Checkpoints that are left to a judge. */
  judged: { id: string; weight: number }[];
  /** Every cap that fired, whether it binds or not. `note`: why, where it is not plain. */
  caps: { id: string; max: number; note: string | null }[];
}

/** A check that can not decide anything. The turn is unjudged until it is repaired. The message may quote hidden files. */
export class ChecksBrokenError extends Error {
  override readonly name = "ChecksBrokenError";
  /** Which they are, as `checkpoint CP1`. */
  readonly checks: readonly string[];
  constructor(broken: readonly { id: string; note: string | null }[]) {
    super(broken.map(({ id, note }) => `${id}: ${note}`).join("; "));
    this.checks = broken.map(({ id }) => id);
  }
}

/** No file that a check reads may be larger. */
const maxCheckedFileBytes = 64 * 1024 * 1024;

/**
 * A missing deliverable, or one that makes a check fail, is credit 0 with a note. A cap whose check is made to fail by
 * a deliverable fires, so that nobody writes a file to escape it; one whose deliverable is missing does not.
 * @throws ChecksBrokenError when a check fails whatever the agent wrote, naming each
 */
export async function evaluateChecks(
  checks: Checks,
  read: EvidenceReader,
  facts: TurnFacts,
  runner: CheckRunner,
): Promise<CheckedTurn> {
  const coded = [
    ...checks.checkpoints.flatMap((point) =>
      "check" in point ? [{ id: `checkpoint ${point.id}`, check: point.check }] : [],
    ),
    ...checks.caps.map((cap) => ({ id: `cap ${cap.id}`, check: cap.when })),
  ];
  const files = await filesOfJob(coded, read);
  const outcomes = new Map<string, CheckOutcome>();
  if (coded.length > 0) {
    const decided = await runner.evaluate({ files, checks: coded, toolCounts: { ...facts.toolCounts } });
    for (const outcome of decided) outcomes.set(outcome.id, outcome);
  }
  const broken = [...outcomes.values()].filter((outcome) => outcome.status === "broken");
  if (broken.length > 0) throw new ChecksBrokenError(broken);

  const turn: CheckedTurn = { checkpoints: [], judged: [], caps: [] };
  for (const point of checks.checkpoints) {
    if (!("check" in point)) {
      turn.judged.push({ id: point.id, weight: point.weight });
      continue;
    }
    const outcome = outcomes.get(`checkpoint ${point.id}`) as CheckOutcome;
    turn.checkpoints.push({
      id: point.id,
      weight: point.weight,
      credit: outcome.status === "decided" ? outcome.credit : 0,
      decidedBy: "check",
      evidence: evidenceOf(point.check, files, facts.turn),
      ...(outcome.note === null ? {} : { note: outcome.note }),
    });
  }
  for (const cap of checks.caps) {
    const outcome = outcomes.get(`cap ${cap.id}`) as CheckOutcome;
    const fires = outcome.status === "evidence" || (outcome.status === "decided" && outcome.credit === 1);
    if (fires) turn.caps.push({ id: cap.id, max: cap.max, note: outcome.note });
  }
  return turn;
}

/** Each file that the checks read, once. */
async function filesOfJob(coded: CheckJob["checks"], read: EvidenceReader): Promise<JobFile[]> {
  const paths = [...new Set(coded.flatMap(({ check }) => filesOf(check)))];
  const files: JobFile[] = [];
  for (const path of paths) {
    const source = sourceOf(path);
    files.push({ path, content: await read(source, path.slice(source.length + 1), maxCheckedFileBytes) });
  }
  return files;
}

/** Deliverables that a check reads and that are there, as evidence paths. */
function evidenceOf(check: Check, files: readonly JobFile[], turn: number): string[] {
  return filesOf(check)
    .filter((path) => sourceOf(path) === "results")
    .filter((path) => files.some((file) => file.path === path && file.content.status !== "missing"))
    .map((path) => `${turnFolder(turn)}/${path}`);
}

/** Every file that a check reads, as it is named there. */
function filesOf(check: Check): string[] {
  switch (check.kind) {
    case "expression":
      return Object.values(check.files).map(({ file }) => file);
    case "set_equals":
      return Array.isArray(check.expected) ? [check.file] : [check.file, check.expected.file];
    case "file_exists":
    case "json_valid":
    case "number_within":
    case "text_matches":
    case "sqlite_query":
      return [check.file];
    case "tool_used":
      return [];
  }
}
