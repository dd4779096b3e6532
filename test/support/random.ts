/** Randomness that is the same in every run: numbers of a counter, hashed. */
import { createHash } from "node:crypto";
import type { Random } from "../../lib/platform/ports.ts";

export function countingRandom(seed = "test"): Random {
  let count = 0;
  const next = (): Buffer => createHash("sha256").update(`${seed}:${count++}`).digest();
  return {
    bytes: (wanted) => {
      const blocks: Buffer[] = [];
      for (let have = 0; have < wanted; have += 32) blocks.push(next());
      return Uint8Array.from(Buffer.concat(blocks).subarray(0, wanted));
    },
    unit: () => next().readUInt32BE(0) / 2 ** 32,
  };
}
