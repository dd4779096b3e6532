/** Decides a turn's checks from what is stored: deliverables, sources and references, each where it stands. */
import { evidenceFileKey, evidenceFiles, type ObjectName, packageFile } from "../../firewall/keys.ts";
import type { CheckRunner } from "../../platform/ports.ts";
import { publishedFiles } from "../../tasks/published.ts";
import { evidenceManifest } from "../../trajectory/evidence-manifest.ts";
import { getOrNull } from "../../trajectory/evidence-view.ts";
import { ChecksBrokenError, type EvidenceReader, evaluateChecks } from "../checks/evaluate.ts";
import { checks as checksSchema, type FileSource } from "../checks/schema.ts";
import { UnjudgedError } from "../faults.ts";
import { parsedJson } from "../stored.ts";
import type { ChecksOutcome } from "./scoring-plan.ts";
import type { ChecksCall } from "./supervise.ts";

/** @throws UnjudgedError when a check is broken: then the score says nothing about the agent */
export function storedChecks(runner: CheckRunner): (call: ChecksCall) => Promise<ChecksOutcome> {
  return async (call) => {
    const { store, line, turn } = call;
    const of = { attempt: line.attempt, try: call.try };
    const manifestBytes = await getOrNull(store, evidenceFileKey(of, turn, evidenceFiles.manifest));
    const manifest = manifestBytes === null ? null : parsedJson(evidenceManifest, manifestBytes);
    const bytesOf = new Map(manifest?.files.map((file) => [file.path, file.bytes]));
    const nameOf = (source: FileSource, path: string): ObjectName => {
      switch (source) {
        case "results":
          return evidenceFileKey(of, turn, evidenceFiles.results + path);
        case "sources":
          return packageFile(line.task, line.digest, "agent", publishedFiles.sources + path);
        case "hidden":
          return packageFile(line.task, line.digest, "hidden", path);
      }
    };
    const read: EvidenceReader = async (source, path, maxBytes) => {
      // The manifest says how large a deliverable is before it is read.
      const bytes = source === "results" ? bytesOf.get(evidenceFiles.results + path) : undefined;
      if (source === "results" && bytes === undefined) return { status: "missing" };
      if (bytes !== undefined && bytes > maxBytes) return { status: "too_large", bytes };
      const found = await getOrNull(store, nameOf(source, path));
      if (found === null) return { status: "missing" };
      return found.length > maxBytes ? { status: "too_large", bytes: found.length } : { status: "ok", bytes: found };
    };
    const parsed = checksSchema.parse(call.checks);
    try {
      const decided = await evaluateChecks(parsed, read, { turn, toolCounts: manifest?.toolCounts ?? {} }, runner);
      return {
        checkpoints: decided.checkpoints,
        judgeIds: decided.judged,
        capsFired: decided.caps,
        caps: parsed.caps.map(({ id, max }) => ({ id, max })),
      };
    } catch (error) {
      if (error instanceof ChecksBrokenError)
        throw new UnjudgedError(`a check is broken: ${error.message}`, { cause: error });
      throw error;
    }
  };
}
