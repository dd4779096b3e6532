/** Randomness of the system, fit for secrets. */
import { randomBytes } from "node:crypto";
import type { Random } from "../ports.ts";

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  unit: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
};
