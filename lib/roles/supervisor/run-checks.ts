/** Runs a package's checks on a turn's evidence: finds each file that they name, and turns their outcome into a plan's. */
import { evidenceFileKey, packageFile, type TryName } from "../../firewall/keys.ts";
import type { CheckRunner, ObjectStore } from "../../platform/ports.ts";
import { publishedFiles } from "../../tasks/published.ts";
import { getOrNull, readManifest } from "../../trajectory/evidence-view.ts";
import { ChecksBrokenError, type EvidenceReader, evaluateChecks } from "../checks/evaluate.ts";
import { checks } from "../checks/schema.ts";
import { UnjudgedError } from "../faults.ts";
import type { ChecksOutcome } from "./scoring-plan.ts";

export interface ChecksCall {
  store: ObjectStore;
  runner: CheckRunner;
  package: { task: string; digest: string };
  of: TryName;
  turn: number;
}

/**
 * @returns null for a package without checks
 * @throws UnjudgedError when a check fails whatever the agent wrote: that is the package's fault, not the agent's
 */
export async function runChecks(call: ChecksCall): Promise<ChecksOutcome | null> {
  const { task, digest } = call.package;
  const bytes = await getOrNull(call.store, packageFile(task, digest, "hidden", publishedFiles.checks));
  if (!bytes) return null;
  const of = checks.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  const manifest = await readManifest(call.store, call.of, call.turn);
  const read = readerOf(call, new Map(manifest?.files.map((file) => [file.path, file.bytes])));
  try {
    const facts = { turn: call.turn, toolCounts: manifest?.toolCounts ?? {} };
    const decided = await evaluateChecks(of, read, facts, call.runner);
    return {
      checkpoints: decided.checkpoints.map(({ id, weight, credit, evidence, note }) => ({
        id,
        weight,
        credit,
        evidence,
        ...(note === undefined ? {} : { note }),
      })),
      judgeIds: decided.judged,
      capsFired: decided.caps.map(({ id, max }) => ({ id, max })),
      caps: of.caps.map(({ id, max }) => ({ id, max })),
    };
  } catch (error) {
    if (error instanceof ChecksBrokenError) {
      const which = error.checks.join(", ");
      throw new UnjudgedError(`the checks of ${task} are broken (${which})`, { cause: error, hidden: error.message });
    }
    throw error;
  }
}

/** @param results bytes of the turn's files, by path */
function readerOf(
  { store, package: { task, digest }, of, turn }: ChecksCall,
  results: ReadonlyMap<string, number>,
): EvidenceReader {
  return async (source, path, maxBytes) => {
    if (source === "results") {
      const name = `results/${path}`;
      const bytes = results.get(name);
      if (bytes === undefined) return { status: "missing" };
      if (bytes > maxBytes) return { status: "too_large", bytes };
      return { status: "ok", bytes: await store.get(evidenceFileKey(of, turn, name)) };
    }
    const part = source === "sources" ? "agent" : "hidden";
    const below = source === "sources" ? publishedFiles.sources + path : path;
    const bytes = await getOrNull(store, packageFile(task, digest, part, below));
    if (!bytes) return { status: "missing" };
    return bytes.byteLength > maxBytes ? { status: "too_large", bytes: bytes.byteLength } : { status: "ok", bytes };
  };
}
