/**
 * The access matrix: who may do what with which kind of object. The local store's guard is made from this table, and so
 * are IAM and bucket policies; nothing else grants anything.
 */
import type { Identity, Role } from "../platform/ports.ts";
import {
  type Bucket,
  decisionPrefix,
  evidenceFiles,
  evidencePrefix,
  followUpPrefix,
  type ObjectName,
  packagePrefix,
} from "./keys.ts";

/** Columns that hold objects, and those that hold none: privacy values, the scores table, provider keys. */
export const objectColumns = [
  "agent",
  "runner",
  "simulator",
  "hidden",
  "evidence",
  "followups",
  "decisions",
  "mailbox",
  "results",
] as const;
export type ObjectColumn = (typeof objectColumns)[number];
export const columns = [...objectColumns, "privacy", "scores", "keys"] as const;
export type Column = (typeof columns)[number];

/**
 * R reads contents, and lists names where it is not narrowed to file kinds. C creates, once. W is C and L of everything
 * in the column (of the scores table: changes it). L lists names.
 */
export type Right = "R" | "C" | "W" | "L";

/** Kinds that a right can be narrowed to. `other` is what no right names. */
export type FileKind =
  | "report"
  | "manifest"
  | "usage"
  | "decision"
  | "maps"
  | "lease"
  | "executor key"
  | "judge key"
  | "simulator key"
  | "other";

export interface Grant {
  right: Right;
  /**
   * A turn's grant: its own try and package. A function that is bound to an attempt: that attempt's objects. A function
   * that is not bound: the column as a whole, which no other role creates objects in.
   */
  own?: true;
  /** Only objects of these kinds, one by one: what is narrowed can not be listed. */
  only?: readonly FileKind[];
}

const read: Grant = { right: "R" };
const readOwn: Grant = { right: "R", own: true };
const create: Grant = { right: "C" };
const createOwn: Grant = { right: "C", own: true };
const write: Grant = { right: "W" };
const names: Grant = { right: "L" };
const readOnly = (...only: FileKind[]): Grant => ({ right: "R", only });

/** What a role may do; a column that is not named is closed to it. */
export const matrix: Readonly<Record<Role, Readonly<Partial<Record<Column, readonly Grant[]>>>>> = {
  /** The mailbox's objects are sealed: whoever takes over this role finds ciphertext. */
  "executor-task": { mailbox: [read] },
  "turn-grant": { agent: [readOwn], runner: [readOwn], evidence: [createOwn] },
  preflight: { agent: [read], runner: [read], hidden: [names], results: [read], scores: [read] },
  prepare: { agent: [read], runner: [read], simulator: [read], hidden: [names], scores: [read, write] },
  "open-turn": {
    agent: [read],
    runner: [read],
    privacy: [read],
    followups: [read],
    mailbox: [create],
    scores: [read, { right: "W", only: ["lease"] }],
  },
  supervisor: {
    agent: [read],
    hidden: [read],
    privacy: [read],
    evidence: [read],
    followups: [read],
    decisions: [createOwn, readOwn],
    keys: [readOnly("judge key")],
  },
  "user-simulator": {
    agent: [read],
    simulator: [read],
    evidence: [read],
    followups: [createOwn, readOwn],
    keys: [readOnly("simulator key")],
  },
  record: {
    evidence: [readOnly("report", "manifest", "usage")],
    followups: [read],
    decisions: [readOnly("decision", "usage")],
    scores: [read, write],
  },
  compact: {
    evidence: [readOnly("report", "manifest", "usage")],
    followups: [readOnly("usage")],
    decisions: [readOnly("usage")],
    results: [create],
    scores: [read],
  },
  /** Task stopped, execution ended, and the scheduled reaper. */
  reaper: { scores: [read, write] },
  "state-machine": { results: [readOnly("manifest"), { right: "C", only: ["maps"] }] },
  "runner-container": { keys: [readOnly("executor key")] },
  operator: {
    agent: [write],
    runner: [write],
    simulator: [write],
    hidden: [write],
    privacy: [write],
    evidence: [read],
    followups: [read],
    decisions: [read],
    results: [create, read],
    scores: [read, write],
    keys: [write],
  },
};

/** Gets an object, creates one (never over another), or lists the names below a prefix. */
export type Verb = "get" | "create" | "list";

/** True when the matrix lets this identity do it. Keys outside every column are closed to everyone. */
export function allows(identity: Identity, verb: Verb, name: ObjectName): boolean {
  if (verb === "list") {
    const within = columnsBelow(name);
    return within.length > 0 && within.every((column) => permits(identity, verb, name, column, null));
  }
  const column = columnOf(name);
  return column !== null && permits(identity, verb, name, column, kindOf(name));
}

/** What a role may do with the scores table. `lease`: reads everything, changes leases alone. */
export function scoresAccess(role: Role): "none" | "read" | "lease" | "write" {
  const grants = matrix[role].scores ?? [];
  const writes = grants.find((grant) => grant.right === "W");
  if (writes) return writes.only ? "lease" : "write";
  return grants.some((grant) => grant.right === "R") ? "read" : "none";
}

function permits(
  identity: Identity,
  verb: Verb,
  name: ObjectName,
  column: ObjectColumn,
  kind: FileKind | null,
): boolean {
  return (matrix[identity.role][column] ?? []).some((grant) => {
    if (!carries(grant, verb)) return false;
    if (grant.only && (kind === null || !grant.only.includes(kind))) return false;
    return !grant.own || isOwn(identity, name, column);
  });
}

function carries(grant: Grant, verb: Verb): boolean {
  switch (verb) {
    case "get":
      return grant.right === "R";
    case "create":
      return grant.right === "C" || grant.right === "W";
    case "list":
      return grant.right === "L" || grant.right === "W" || (grant.right === "R" && grant.only === undefined);
  }
}

/** Keys hold no `..`, so beginning with the prefix is being below it. */
function isOwn(identity: Identity, name: ObjectName, column: ObjectColumn): boolean {
  if (identity.role === "turn-grant") {
    const { task, digest } = identity.package;
    const prefix =
      column === "evidence"
        ? evidencePrefix(identity.try)
        : column === "agent" || column === "runner"
          ? packagePrefix(task, digest, column)
          : null;
    return prefix !== null && name.bucket === prefix.bucket && name.key.startsWith(prefix.key);
  }
  if (identity.attempt === undefined || name.key.startsWith("rubrics/")) return true;
  const anyTry = { attempt: identity.attempt, try: 1 };
  const first = column === "followups" ? followUpPrefix(anyTry).key : decisionPrefix(anyTry).key;
  return name.key.startsWith(first.slice(0, -"01/".length));
}

/** The first segments of keys, by bucket, and the column that they stand in. */
const places: Readonly<Record<Bucket, readonly { prefix: string; column: ObjectColumn }[]>> = {
  /** Below `packages/<task>@<digest>/`, the column is the part's. */
  tasks: [],
  hidden: [
    { prefix: "packages/", column: "hidden" },
    { prefix: "decisions/", column: "decisions" },
    { prefix: "rubrics/", column: "decisions" },
  ],
  evidence: [
    { prefix: "attempts/", column: "evidence" },
    { prefix: "followups/", column: "followups" },
    { prefix: "mailbox/", column: "mailbox" },
  ],
  results: [
    { prefix: "sweeps/", column: "results" },
    { prefix: "reports/", column: "results" },
    { prefix: "scores/", column: "results" },
    { prefix: "maps/", column: "results" },
  ],
};
const taskParts = ["agent", "runner", "simulator"] as const;

/** The column of a key; null for a key that stands nowhere. */
export function columnOf(name: ObjectName): ObjectColumn | null {
  if (name.bucket === "tasks") {
    const [top, folder, part, ...rest] = name.key.split("/");
    if (top !== "packages" || folder === undefined || rest.length === 0) return null;
    return taskParts.find((known) => known === part) ?? null;
  }
  return places[name.bucket].find(({ prefix }) => name.key.startsWith(prefix))?.column ?? null;
}

/** Every column that keys beginning with this prefix can stand in. */
function columnsBelow(prefix: ObjectName): ObjectColumn[] {
  const exact = columnOf(prefix);
  if (exact) return [exact];
  if (prefix.bucket === "tasks") {
    const [top, folder, part, ...rest] = prefix.key.split("/");
    if (rest.length > 0) return [];
    if (folder === undefined) return "packages/".startsWith(top ?? "") ? [...taskParts] : [];
    return top === "packages" ? taskParts.filter((known) => known.startsWith(part ?? "")) : [];
  }
  const found = places[prefix.bucket]
    .filter((place) => place.prefix.startsWith(prefix.key))
    .map(({ column }) => column);
  return [...new Set(found)];
}

const turn = /^(?:attempts|decisions)\/[^/]+\/[^/]+\/turn-\d+\/([^/]+)$/;
const kindsByFile: Readonly<Record<string, FileKind>> = {
  [evidenceFiles.report]: "report",
  [evidenceFiles.manifest]: "manifest",
  [evidenceFiles.usage]: "usage",
};

/** The kind of an object, by its whole key: a result that an agent called manifest.json is no manifest. */
export function kindOf(name: ObjectName): FileKind {
  const file = turn.exec(name.key)?.[1];
  if (name.bucket === "evidence" && file !== undefined) return kindsByFile[file] ?? "other";
  if (name.bucket === "evidence") {
    return /^followups\/[^/]+\/[^/]+\/turn-\d+-usage-\d+\.jsonl$/.test(name.key) ? "usage" : "other";
  }
  if (name.bucket === "hidden") {
    if (file === "decision.json") return "decision";
    return file !== undefined && /^usage-\d+\.jsonl$/.test(file) ? "usage" : "other";
  }
  if (name.bucket === "results") {
    if (name.key.startsWith("maps/")) return "maps";
    return /^sweeps\/[^/]+\/g\d+\/manifest-[^/]+\.jsonl$/.test(name.key) ? "manifest" : "other";
  }
  return "other";
}
