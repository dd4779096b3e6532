/**
 * What Record, and whoever closes a try in its place, reads of it: reports, decisions, follow-ups, usage. Everything is got by name, since the role may not
 * list. What is missing or unreadable is left out: the row says what that means.
 */
import type { TryFacts } from "../lib/attempt/attempt-row.ts";
import { type UsageLine, usageLine } from "../lib/attempt/usage.ts";
import {
  decisionFileKey,
  evidenceFileKey,
  evidenceFiles,
  followUpFileKey,
  followUpUsageKey,
  judgingUsageKey,
  type ObjectName,
  type TryName,
  turnFolder,
} from "../lib/firewall/keys.ts";
import type { ObjectStore } from "../lib/platform/ports.ts";
import { type Decision, decision } from "../lib/roles/decision.ts";
import { type FollowUp, followUp } from "../lib/roles/follow-up.ts";
import { evidenceManifest } from "../lib/trajectory/evidence-manifest.ts";
import { getOrNull } from "../lib/trajectory/evidence-view.ts";
import { type TurnReport, turnReport } from "../lib/trajectory/turn-report.ts";

export type TryEvidence = Pick<TryFacts, "reports" | "decisions" | "followUps" | "usage">;

/** @throws StoreError when the store fails, other than by `not_found` */
export async function tryEvidence(store: ObjectStore, of: TryName, turns: number): Promise<TryEvidence> {
  const reports: TurnReport[] = [];
  const decisions: Decision[] = [];
  const followUps: FollowUp[] = [];
  const usage: UsageLine[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    // A turn without its manifest does not exist, whatever else of it was written.
    const manifest = await readJson(store, evidenceFileKey(of, turn, evidenceFiles.manifest), evidenceManifest);
    const report = await readJson(store, evidenceFileKey(of, turn, evidenceFiles.report), turnReport);
    if (manifest && report?.turn === turn) reports.push(report);
    usage.push(...((await readUsage(store, evidenceFileKey(of, turn, evidenceFiles.usage))) ?? []));

    const decided = await readJson(store, decisionFileKey(of, turn, "decision.json"), decision);
    if (decided?.turn === turn) decisions.push(decided);
    usage.push(...(await readCalls(store, (call) => judgingUsageKey(of, turn, call))));

    // The last one opens a turn that was never opened, if it was written at all; its call was paid for.
    const opens = turnFolder(turn + 1);
    const written = await readJson(store, followUpFileKey(of, `${opens}.json`), followUp);
    if (written && turn < turns) followUps.push(written);
    usage.push(...(await readCalls(store, (call) => followUpUsageKey(of, turn + 1, call))));
  }
  return { reports, decisions, followUps, usage };
}

interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false };
}

async function readJson<T>(store: ObjectStore, name: ObjectName, schema: Schema<T>): Promise<T | null> {
  const text = await readText(store, name);
  return text === null ? null : parsed(text, schema);
}

/** A role's calls stand in a file each, numbered without a gap. */
async function readCalls(store: ObjectStore, nameOf: (call: number) => ObjectName): Promise<UsageLine[]> {
  const lines: UsageLine[] = [];
  for (let call = 1; ; call++) {
    const read = await readUsage(store, nameOf(call));
    if (read === null) return lines;
    lines.push(...read);
  }
}

async function readUsage(store: ObjectStore, name: ObjectName): Promise<UsageLine[] | null> {
  const text = await readText(store, name);
  if (text === null) return null;
  return text.split("\n").flatMap((line) => {
    const read = line.trim() === "" ? null : parsed(line, usageLine);
    return read === null ? [] : [read];
  });
}

/** Null when it is not there. @throws StoreError as get, other than by `not_found` */
export async function readText(store: ObjectStore, name: ObjectName): Promise<string | null> {
  const bytes = await getOrNull(store, name);
  return bytes && Buffer.from(bytes).toString("utf8");
}

function parsed<T>(text: string, schema: Schema<T>): T | null {
  try {
    const read = schema.safeParse(JSON.parse(text));
    return read.success ? read.data : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
