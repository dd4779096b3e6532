/** Tries that a killed process left open: nobody else would close them, and their leases hold dollars of the sweep's cap. */
import { tryEvidence } from "../../lambdas/try-evidence.ts";
import { closedWithoutVerdict } from "../../lib/attempt/attempt-row.ts";
import { evidenceFileKey, evidenceFiles, type TryName } from "../../lib/firewall/keys.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import { type Clock, type ObjectStore, StoreError } from "../../lib/platform/ports.ts";

/**
 * Closes every open try of the generations before `before`, whose processes are gone. What their whole turns cost stays
 * spent; a turn that was cut left no record of what it cost.
 * @returns how many there were
 */
export async function closeAbandoned(
  runs: Runs,
  sweep: string,
  before: number,
  clock: Clock,
  as: { status: "infra_error" | "cancelled"; reason: string } = {
    status: "infra_error",
    reason: "interrupted: the process that ran this try ended",
  },
): Promise<number> {
  let closed = 0;
  for await (const row of runs.scores.rows(sweep)) {
    if (row.status !== "running" || row.generation >= before) continue;
    // One turn more than is whole: the usage of its judging may be there.
    const found = await tryEvidence(runs.objects, row, (await wholeTurns(runs.objects, row)) + 1);
    if (await runs.scores.closeTry(closedWithoutVerdict(row, as.status, as.reason, found, clock.now()))) closed += 1;
  }
  return closed;
}

async function wholeTurns(store: ObjectStore, of: TryName): Promise<number> {
  for (let turn = 1; ; turn++) {
    try {
      await store.get(evidenceFileKey(of, turn, evidenceFiles.manifest));
    } catch (error) {
      if (error instanceof StoreError && error.code === "not_found") return turn - 1;
      throw error;
    }
  }
}
