/** Results of a Map Run as objects: JSON lines in parts, named as Step Functions names them. */
import type { ChildResult, ResultSink } from "../../lib/platform/local/interpreter/interpreter.ts";
import type { ObjectStore } from "../../lib/platform/ports.ts";

const linesInAPart = 1000;

/** @param prefix key prefix without a trailing slash, below maps/ */
export function mapResults(store: ObjectStore, prefix: string, mapRun: string): ResultSink {
  const folder = `${prefix}/${mapRun}`;
  const parts: { key: string; lines: number }[] = [];
  let held: string[] = [];
  const flush = async (): Promise<void> => {
    if (held.length === 0) return;
    const lines = held;
    held = [];
    const key = `${folder}/results_${parts.length}.jsonl`;
    parts.push({ key, lines: lines.length });
    await store.create({ bucket: "results", key }, `${lines.join("\n")}\n`);
  };
  return {
    async add(result: ChildResult) {
      // The input is the manifest's line, which is stored already.
      const { input: _input, ...rest } = result;
      held.push(JSON.stringify(rest));
      if (held.length >= linesInAPart) await flush();
    },
    async close() {
      await flush();
      const key = `${folder}/manifest.json`;
      await store.create({ bucket: "results", key }, JSON.stringify({ v: 1, parts }));
      return { key };
    },
  };
}
