/** A sweep as it is stored with its generations: written once when one starts, read to go on, to report, to retry. */
import { Readable } from "node:stream";
import { manifestLines } from "../../lambdas/manifest-lines.ts";
import { manifestKey, planKey, sweepFileKey, sweepsPrefix } from "../../lib/firewall/keys.ts";
import { type ObjectStore, StoreError, type SweepRecord } from "../../lib/platform/ports.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { type StoredSweep, storedSweep } from "../../lib/sweep/stored-sweep.ts";
import { CommandError } from "../command.ts";

const jsonl = (lines: readonly ManifestLine[]): Readable =>
  Readable.from(lines.map((line) => `${JSON.stringify(line)}\n`));

/** Writes the plan of a generation, and sweep.json last: a generation without it did not start. */
export async function storePlan(
  store: ObjectStore,
  sweep: StoredSweep,
  planned: readonly ManifestLine[],
): Promise<void> {
  await store.create(planKey(sweep.sweep, sweep.generation), jsonl(planned));
  await store.create(sweepFileKey(sweep.sweep, sweep.generation), `${JSON.stringify(sweep, null, 1)}\n`);
}

/** The number of the latest generation of which anything is stored; 0 for none. */
export async function lastStoredGeneration(store: ObjectStore, sweep: string): Promise<number> {
  const prefix = sweepsPrefix(sweep);
  let last = 0;
  for await (const { key } of store.list(prefix)) {
    const number = /^g(\d+)\//.exec(key.slice(prefix.key.length))?.[1];
    last = Math.max(last, Number(number ?? 0));
  }
  return last;
}

/** What each lane of a generation runs. */
export async function storeShards(
  store: ObjectStore,
  sweep: string,
  generation: number,
  shards: ReadonlyMap<string, readonly ManifestLine[]>,
): Promise<void> {
  for (const [lane, lines] of shards) await store.create(manifestKey(sweep, generation, lane), jsonl(lines));
}

/** The plan of a generation by attempt; empty when it never started. Lines that cannot be read are left out. */
export async function plannedLines(
  store: ObjectStore,
  sweep: string,
  generation: number,
): Promise<ReadonlyMap<string, ManifestLine>> {
  const lines = new Map<string, ManifestLine>();
  try {
    for await (const read of manifestLines(store, planKey(sweep, generation))) {
      if (read.kind === "line") lines.set(read.line.attempt, read.line);
    }
  } catch (error) {
    if (!(error instanceof StoreError && error.code === "not_found")) throw error;
  }
  return lines;
}

/** The latest generation that started, with every attempt that it planned. */
export async function latestGeneration(
  store: ObjectStore,
  record: SweepRecord,
): Promise<{ sweep: StoredSweep; planned: ManifestLine[] }> {
  for (let generation = record.generation; generation > 0; generation--) {
    const name = sweepFileKey(record.sweep, generation);
    try {
      const sweep = storedSweep.parse(JSON.parse(Buffer.from(await store.get(name)).toString("utf8")));
      const planned: ManifestLine[] = [];
      for await (const read of manifestLines(store, planKey(record.sweep, generation))) {
        if (read.kind === "bad") {
          throw new CommandError(3, `${planKey(record.sweep, generation).key}: line ${read.number} ${read.reason}`);
        }
        planned.push(read.line);
      }
      return { sweep, planned };
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "not_found")) throw error;
    }
  }
  throw new CommandError(2, `the sweep ${record.sweep} has no plan: it never started; run it with its sweep file`);
}
