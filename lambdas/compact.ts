/**
 * Compact: all closed rows of a sweep as one full set. Readers take the highest compaction that is complete, so a
 * compaction that was cut off, or one made twice, does no harm.
 */
import { Readable } from "node:stream";
import { type CompactResult, compactEvent } from "../lib/attempt/functions.ts";
import { compactionFiles, compactionPrefix } from "../lib/firewall/keys.ts";
import { type ObjectStore, type ScoreTable, StoreError } from "../lib/platform/ports.ts";
import { functionError } from "./function-error.ts";

export interface CompactDeps {
  store: ObjectStore;
  scores: ScoreTable;
}

const maxCompactions = 10_000;

/** @throws Proctor.NoSuchSweep, StoreError */
export function compactHandler(deps: CompactDeps): (event: unknown) => Promise<CompactResult> {
  return async (event) => {
    const { sweep } = compactEvent.parse(event);
    if ((await deps.scores.sweep(sweep)) === null)
      throw functionError("Proctor.NoSuchSweep", `there is no sweep ${sweep}`);
    const compaction = await claim(deps.store, sweep);
    const prefix = compactionPrefix(sweep, compaction);
    const file = (name: string) => ({ bucket: prefix.bucket, key: prefix.key + name });

    let rows = 0;
    async function* lines(): AsyncIterable<string> {
      for await (const row of deps.scores.rows(sweep)) {
        if (row.status === "running") continue;
        rows += 1;
        yield `${JSON.stringify(row)}\n`;
      }
    }
    await deps.store.create(file(compactionFiles.rows), Readable.from(lines(), { objectMode: false }));
    await deps.store.create(file(compactionFiles.done), JSON.stringify({ v: 1, sweep, compaction, rows }));
    return { v: 1, compaction, rows };
  };
}

/** The role may only create, so it takes the first number whose marker it is the one to create. */
async function claim(store: ObjectStore, sweep: string): Promise<number> {
  for (let number = 1; number <= maxCompactions; number++) {
    const prefix = compactionPrefix(sweep, number);
    try {
      await store.create({ bucket: prefix.bucket, key: prefix.key + compactionFiles.started }, "");
      return number;
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "already_exists")) throw error;
    }
  }
  throw new Error(`sweep ${sweep} has more than ${maxCompactions} compactions`);
}
