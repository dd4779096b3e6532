/**
 * The functions that Step Functions adds to JSONata, and those of JSONata that read the clock or draw at random, which
 * go through the ports here. Source: AWS Step Functions developer guide, "Transforming data with JSONata".
 */
import { createHash } from "node:crypto";
import type { Clock, Random } from "../../ports.ts";

/** What a function needs from outside. */
export interface FunctionPorts {
  clock: Pick<Clock, "now">;
  random: Random;
}

/** JSONata's signature of each function and what makes it; bound at load to the ports. */
export const addedFunctions: Record<
  string,
  { signature: string; make: (ports: FunctionPorts) => (...args: never[]) => unknown }
> = {
  partition: { signature: "<a-n:a>", make: () => partition },
  range: { signature: "<nnn:a>", make: () => range },
  hash: { signature: "<s-s:s>", make: () => hash },
  parse: { signature: "<s-:x>", make: () => parse },
  random: {
    signature: "<n?:n>",
    make: (ports) => (seed?: number) => (seed === undefined ? ports.random.unit() : seeded(seed)),
  },
  uuid: { signature: "<:s>", make: (ports) => () => uuid(ports.random.bytes(16)) },
  now: { signature: "<:s>", make: (ports) => () => new Date(ports.clock.now()).toISOString() },
  millis: { signature: "<:n>", make: (ports) => () => ports.clock.now() },
};

/** Functions of JSONata that are refused, each with what to do instead. */
export const refusedFunctions: Record<string, string> = {
  eval: "$eval is not part of Step Functions' dialect; $parse reads JSON text",
  shuffle: "$shuffle draws at random outside the interpreter's control; shuffle in a function",
};

/** Splits an array into parts of `size`, the last one shorter. */
function partition(array: unknown[] | undefined, size: number): unknown[][] | undefined {
  if (array === undefined) return undefined;
  if (!Number.isInteger(size) || size < 1)
    throw problem(`$partition: the size is ${size}; expected an integer above 0`);
  const parts: unknown[][] = [];
  for (let index = 0; index < array.length; index += size) parts.push(array.slice(index, index + size));
  return parts;
}

/** Numbers from `first` to `last`, both included. At most 1,000, as in the intrinsic it replaces. */
function range(first: number, last: number, step: number): number[] {
  if (!Number.isInteger(step) || step === 0)
    throw problem(`$range: the step is ${step}; expected an integer other than 0`);
  const count = Math.floor((last - first) / step) + 1;
  if (count > 1000) throw problem(`$range: ${count} numbers; at most 1000 are allowed`);
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index * step);
}

const algorithms: Record<string, string> = {
  MD5: "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
};

/** Lower-case hexadecimal digest of a text. */
function hash(content: string | undefined, algorithm: string): string | undefined {
  if (content === undefined) return undefined;
  const name = algorithms[algorithm];
  if (name === undefined)
    throw problem(`$hash: algorithm ${algorithm}; expected one of ${Object.keys(algorithms).join(", ")}`);
  return createHash(name).update(content, "utf8").digest("hex");
}

function parse(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw problem(`$parse: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A number in [0, 1) that depends on the seed alone: the first 52 bits of its SHA-256. */
function seeded(seed: number): number {
  const digest = createHash("sha256").update(String(seed)).digest();
  return (digest.readUInt32BE(0) * 2 ** 20 + (digest.readUInt32BE(4) >>> 12)) / 2 ** 52;
}

/** A random UUID (version 4) from 16 random bytes. */
export function uuid(bytes: Uint8Array): string {
  const raw = Buffer.from(bytes.subarray(0, 16));
  raw[6] = ((raw[6] as number) & 0x0f) | 0x40;
  raw[8] = ((raw[8] as number) & 0x3f) | 0x80;
  const hex = raw.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** Thrown through JSONata, which passes on any error; the interpreter names it States.QueryEvaluationError. */
function problem(message: string): Error {
  return new Error(message);
}
