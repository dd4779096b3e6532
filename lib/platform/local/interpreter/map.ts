/** Map states: inline, where iterations are part of the execution, and distributed, where each item is one of its own. */
import { setMaxListeners } from "node:events";
import { bounded } from "./bounded.ts";
import { errorNames, isObject, type Json, limits, plain, StateFailure, withinLimit } from "./data.ts";
import { Execution } from "./execution.ts";
import { type Bindings, evaluate } from "./expressions.ts";
import { uuid } from "./functions.ts";
import type { DistributedMapState, InlineMapState, MapState } from "./machine.ts";
import {
  bindingsOf,
  conclude,
  type Outcome,
  runExecution,
  runFlow,
  unexpected,
  type Visit,
  whole,
  withResult,
} from "./run.ts";

/** One try of a Map. @throws StateFailure; Interrupted */
export async function runMap(visit: Visit, state: MapState): Promise<Outcome> {
  const bindings = bindingsOf(visit, state.name, null);
  const asked = whole(
    (await evaluate(state.maxConcurrency, bindings, "MaxConcurrency")).value,
    "MaxConcurrency",
    0,
    Number.MAX_SAFE_INTEGER,
  );
  const most = state.type === "InlineMap" ? limits.inlineMapConcurrency : limits.distributedMapConcurrency;
  const concurrency = asked === 0 ? most : Math.min(asked, most);
  const { execution } = visit.scope;
  // Started and ended.
  execution.count(2);
  const result = await (state.type === "InlineMap"
    ? runInline(visit, state, bindings, concurrency)
    : runDistributed(visit, state, bindings, concurrency));
  const output = withinLimit(plain(result, `the result of ${state.name}`), `the result of ${state.name}`);
  return conclude(withResult(bindings, output), state, output, state.next);
}

async function runInline(visit: Visit, state: InlineMapState, bindings: Bindings, concurrency: number): Promise<Json> {
  const items = state.items === null ? visit.input : (await evaluate(state.items, bindings, "Items")).value;
  if (!Array.isArray(items)) throw unexpected("Items", items, "an array");
  const { scope } = visit;
  const outputs: Json[] = new Array<Json>(items.length).fill(null);
  // The first failure ends this work, and with its signal every other iteration.
  await bounded(scope.execution.around.clock, scope.signal, null, async (signal) => {
    setMaxListeners(0, signal);
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < items.length && !signal.aborted) {
        const index = next++;
        const item = { Index: index, Value: items[index] as Json };
        const input = await itemInput(visit, state, item);
        // Started and ended.
        scope.execution.count(2);
        const iteration = { ...scope, flow: state.flow, variables: { ...scope.variables }, item, signal };
        outputs[index] = await runFlow(iteration, input);
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  });
  return outputs;
}

async function itemInput(visit: Visit, state: MapState, item: { Index: number; Value: Json }): Promise<Json> {
  const input =
    state.itemSelector === null
      ? plain(item.Value, "an item")
      : await evaluate(state.itemSelector, bindingsOf(visit, state.name, null, item), "ItemSelector");
  return withinLimit(input, `the input of item ${item.Index}`);
}

async function runDistributed(
  visit: Visit,
  state: DistributedMapState,
  bindings: Bindings,
  concurrency: number,
): Promise<Json> {
  const [bucket, key] = await strings(state.reader, bindings, "ItemReader.Arguments", ["Bucket", "Key"]);
  const [resultBucket, prefix] = await strings(state.writer, bindings, "ResultWriter.Arguments", ["Bucket", "Prefix"]);
  const tolerated = await toleranceOf(state, bindings);
  const { execution, signal: outer } = visit.scope;
  const { around } = execution;
  const mapRun = uuid(around.random.bytes(16));

  return bounded(around.clock, outer, null, async (signal) => {
    setMaxListeners(0, signal);
    const open = new Set<Execution>();
    signal.addEventListener("abort", () => {
      for (const child of open) child.end({ status: "ABORTED", error: "", cause: "the Map Run has ended" });
    });
    const sink = await writing(() => around.resources.openResults({ bucket: resultBucket, prefix, mapRun }));
    const items = jsonLines(around.resources.readItems({ bucket, key }), `${bucket}/${key}`);
    try {
      let started = 0;
      let failed = 0;
      let total: number | null = null;
      const worker = async (): Promise<void> => {
        for (;;) {
          const step = await items.next();
          if (step.done) {
            total = started;
            return;
          }
          if (signal.aborted) return;
          const index = started++;
          const input = await itemInput(visit, state, { Index: index, Value: step.value });
          const child = new Execution(
            around,
            execution.machine,
            uuid(around.random.bytes(16)),
            state.flow,
            input,
            state.label,
          );
          open.add(child);
          execution.children.add(child);
          const result = await runExecution(child, null);
          open.delete(child);
          execution.children.delete(child);
          if (signal.aborted) return;
          const succeeded = result.status === "SUCCEEDED";
          await writing(async () =>
            sink.add({
              name: child.name,
              index,
              status: result.status,
              input,
              output: succeeded ? result.output : null,
              error: succeeded ? null : result.error,
              cause: succeeded ? null : result.cause,
            }),
          );
          if (!succeeded) failed += 1;
          if (!succeeded && exceeds(failed, total, tolerated)) throw tooMany(failed, total ?? started);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
      if (exceeds(failed, total, tolerated)) throw tooMany(failed, started);
    } catch (error) {
      // What has come in so far is kept where that is possible; the failure itself counts.
      await sink.close().catch(() => null);
      throw error;
    } finally {
      void items.return().catch(() => null);
    }
    const written = await writing(() => sink.close());
    return {
      MapRunArn: `arn:aws:states:local:000000000000:mapRun:${execution.machine}/${state.label}:${mapRun}`,
      ResultWriterDetails: { Bucket: resultBucket, Key: written.key },
    };
  });
}

interface Tolerance {
  /** Null: not given. */
  count: number | null;
  percentage: number | null;
}

async function toleranceOf(state: DistributedMapState, bindings: Bindings): Promise<Tolerance> {
  const most = Number.MAX_SAFE_INTEGER;
  const count =
    state.toleratedCount &&
    whole(
      (await evaluate(state.toleratedCount, bindings, "ToleratedFailureCount")).value,
      "ToleratedFailureCount",
      0,
      most,
    );
  if (state.toleratedPercentage === null) return { count, percentage: count === null ? 0 : null };
  const { value } = await evaluate(state.toleratedPercentage, bindings, "ToleratedFailurePercentage");
  if (typeof value !== "number" || value < 0 || value > 100)
    throw unexpected("ToleratedFailurePercentage", value, "a number from 0 to 100");
  return { count, percentage: value };
}

/** @param total items in all; null while they are still being read, when a share is known for none and all only */
function exceeds(failed: number, total: number | null, { count, percentage }: Tolerance): boolean {
  if (count !== null && failed > count) return true;
  if (percentage === null || failed === 0) return false;
  return percentage === 0 || (total !== null && (failed / total) * 100 > percentage);
}

function tooMany(failed: number, of: number): StateFailure {
  return new StateFailure(errorNames.tolerance, `${failed} of ${of} items failed, which is more than is tolerated`);
}

async function strings(
  template: DistributedMapState["reader"],
  bindings: Bindings,
  what: string,
  names: [string, string],
): Promise<[string, string]> {
  const { value } = await evaluate(template, bindings, what);
  const read = (name: string): string => {
    const part = isObject(value) ? value[name] : undefined;
    if (typeof part === "string") return part;
    throw unexpected(`${what}.${name}`, part ?? null, "a string");
  };
  return [read(names[0]), read(names[1])];
}

async function writing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StateFailure(errorNames.resultWriter, error instanceof Error ? error.message : String(error));
  }
}

/** The values of an object of JSON lines, read as they are asked for. @throws StateFailure States.ItemReaderFailed */
async function* jsonLines(pieces: AsyncIterable<Uint8Array | string>, name: string): AsyncGenerator<Json, void> {
  let number = 0;
  const parse = (line: string): Json => {
    try {
      return JSON.parse(line) as Json;
    } catch {
      throw new StateFailure(errorNames.itemReader, `line ${number} of ${name} is no JSON`);
    }
  };
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const piece of pieces) {
      rest += typeof piece === "string" ? piece : decoder.decode(piece, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop() as string;
      for (const line of lines) {
        number += 1;
        if (line.trim() !== "") yield parse(line);
      }
    }
    rest += decoder.decode();
    number += 1;
    if (rest.trim() !== "") yield parse(rest);
  } catch (error) {
    if (error instanceof StateFailure) throw error;
    throw new StateFailure(errorNames.itemReader, `${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
