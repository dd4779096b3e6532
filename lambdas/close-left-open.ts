/** Closes a try that nobody was left to record, from what it stored; the rule is lib/attempt/left-open.ts. */
import { type LeftOpenEnd, leftOpenRow } from "../lib/attempt/left-open.ts";
import { evidenceFileKey, evidenceFiles, type TryName } from "../lib/firewall/keys.ts";
import type { Clock, ObjectStore, ScoreRow, ScoreTable } from "../lib/platform/ports.ts";
import type { ManifestLine } from "../lib/sweep/manifest-line.ts";
import { readText, tryEvidence } from "./try-evidence.ts";

export interface CloseLeftOpenDeps {
  /** As Record sees it: nobody else may read what a row is made from. */
  store: ObjectStore;
  scores: Pick<ScoreTable, "closeTry">;
  clock: Pick<Clock, "now">;
}

/**
 * Closes a try that is open. Who finds one asks for this; it is done with Record's rights, not with the asker's.
 * `line` of the attempt in any generation, null when it is not known. Resolves to whether this call closed it.
 * @throws StoreError
 */
export type CloseLeftOpen = (stored: ScoreRow, line: ManifestLine | null, end: LeftOpenEnd) => Promise<boolean>;

export function closeLeftOpen({ store, scores, clock }: CloseLeftOpenDeps): CloseLeftOpen {
  return async (stored, line, end) => {
    const wholeTurns = await turnsWithManifest(store, stored);
    // One turn more than is whole: a turn that was cut may have left its usage.
    const found = await tryEvidence(store, stored, wholeTurns + 1);
    return scores.closeTry(leftOpenRow({ ...found, stored, line, wholeTurns, now: clock.now() }, end));
  };
}

async function turnsWithManifest(store: ObjectStore, of: TryName): Promise<number> {
  for (let turn = 1; ; turn++) {
    if ((await readText(store, evidenceFileKey(of, turn, evidenceFiles.manifest))) === null) return turn - 1;
  }
}
