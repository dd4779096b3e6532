/** Reads a lane's shard of the manifest as it is streamed: a shard of a million attempts does not fit into memory. */
import { createInterface } from "node:readline";
import type { ObjectName } from "../lib/firewall/keys.ts";
import type { ObjectStore } from "../lib/platform/ports.ts";
import { type ManifestLine, manifestLine } from "../lib/sweep/manifest-line.ts";

export type ReadLine = { number: number } & ({ kind: "line"; line: ManifestLine } | { kind: "bad"; reason: string });

/** @throws StoreError as ObjectStore.stream */
export async function* manifestLines(store: ObjectStore, name: ObjectName): AsyncIterable<ReadLine> {
  const stream = await store.stream(name);
  let number = 0;
  for await (const text of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    if (text.trim() !== "") yield { number, ...readLine(text) };
  }
}

function readLine(text: string): { kind: "line"; line: ManifestLine } | { kind: "bad"; reason: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "bad", reason: "is not JSON" };
  }
  const parsed = manifestLine.safeParse(value);
  if (parsed.success) return { kind: "line", line: parsed.data };
  const [issue] = parsed.error.issues;
  return { kind: "bad", reason: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "has another form"}` };
}
