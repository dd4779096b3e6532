import { describe, expect, it } from "vitest";
import type { ChildResult, Resources } from "../../../../lib/platform/local/interpreter/interpreter.ts";
import { invoke, named, type Setting, setting } from "./setting.ts";

describe("an inline Map", () => {
  const each = (fields: Record<string, unknown> = {}, states: Record<string, unknown> = { Do: invoke("do") }) => ({
    Each: {
      Type: "Map",
      ItemProcessor: { StartAt: Object.keys(states)[0], States: states },
      ...("Next" in fields ? {} : { End: true }),
      ...fields,
    },
  });

  it("gives the outputs in the order of the items, however long each took", async () => {
    const world: Setting = setting(
      each(
        { Items: "{% $states.input.items %}" },
        {
          Wait: { Type: "Wait", Seconds: "{% $states.input %}", Next: "End" },
          End: { Type: "Succeed", Output: { waited: "{% $states.input %}" } },
        },
      ),
    );
    expect(await world.run({ items: [3, 1, 2] })).toMatchObject({
      output: [{ waited: 3 }, { waited: 1 }, { waited: 2 }],
      statesEntered: 7,
    });
    expect(world.seconds()).toBe(3);
    expect(world.entered()).toContain("Wait#2");
  });

  it("runs as many at once as MaxConcurrency says, and 40 at most", async () => {
    const most = async (MaxConcurrency: unknown): Promise<number> => {
      let now = 0;
      let peak = 0;
      const world: Setting = setting(each({ MaxConcurrency }), {
        functions: {
          do: async () => {
            peak = Math.max(peak, ++now);
            await world.clock.sleep(1000);
            now -= 1;
          },
        },
      });
      expect(await world.run(Array.from({ length: 50 }, (_, index) => index))).toMatchObject({ status: "SUCCEEDED" });
      return peak;
    };
    expect(await most(1)).toBe(1);
    expect(await most("{% $count($states.input) / 10 %}")).toBe(5);
    expect(await most(0)).toBe(40);
    expect(await most(1000)).toBe(40);
  });

  it("selects the items' inputs, and shows the item in the context", async () => {
    const { run } = setting(
      each(
        { ItemSelector: { n: "{% $states.context.Map.Item.Value %}", all: "{% $count($states.input) %}" } },
        {
          Do: {
            Type: "Pass",
            Output: "{% [$states.context.Map.Item.Index, $states.input.n, $states.input.all] %}",
            End: true,
          },
        },
      ),
    );
    expect(await run(["a", "b"])).toMatchObject({
      output: [
        [0, "a", 2],
        [1, "b", 2],
      ],
    });
  });

  it("reads the variables around it, and keeps its own to itself", async () => {
    const { run } = setting({
      First: { Type: "Pass", Assign: { outer: 10 }, Next: "Each" },
      ...each(
        { Assign: { sums: "{% $states.result %}" }, Next: "End" },
        {
          Add: { Type: "Pass", Assign: { inner: "{% $outer + $states.input %}" }, Next: "Give" },
          Give: { Type: "Pass", Output: "{% $inner %}", End: true },
        },
      ),
      End: { Type: "Succeed", Output: "{% $sums %}" },
    });
    expect(await run([1, 2, 3])).toMatchObject({ output: [11, 12, 13] });
  });

  it("fails with its first failure and ends the other iterations", async () => {
    let finished = 0;
    const world: Setting = setting(
      {
        ...each({
          Catch: [{ ErrorEquals: ["Bad"], Next: "Wait" }],
        }),
        Wait: { Type: "Wait", Seconds: 100, Next: "End" },
        End: { Type: "Succeed", Output: "{% $states.input.Error %}" },
      },
      {
        functions: {
          do: async (item: number, signal: AbortSignal) => {
            await world.clock.sleep(item * 1000, signal);
            if (item === 2) throw named("Bad");
            if (!signal.aborted) finished += 1;
          },
        },
      },
    );
    expect(await world.run([1, 2, 3, 4])).toMatchObject({ output: "Bad" });
    expect(finished).toBe(1);
    expect(world.seconds()).toBe(102);
  });

  it("is tried again as a whole", async () => {
    let calls = 0;
    const { run } = setting(each({ Retry: [{ ErrorEquals: ["Bad"] }] }), {
      functions: {
        do: (item: number) => {
          calls += 1;
          if (item === 1 && calls < 3) throw named("Bad");
          return item;
        },
      },
    });
    expect(await run([0, 1])).toMatchObject({ status: "SUCCEEDED", retries: 1 });
    expect(calls).toBe(4);
  });

  it("takes no items but an array", async () => {
    expect(await setting(each()).run({ items: [] })).toMatchObject({ error: "States.QueryEvaluationError" });
    expect(await setting(each()).run([])).toMatchObject({ status: "SUCCEEDED", output: [] });
  });
});

describe("a Distributed Map", () => {
  const lane = (fields: Record<string, unknown> = {}, states: Record<string, unknown> = { Do: invoke("do") }) => ({
    Lane: {
      Type: "Map",
      ItemReader: {
        Resource: "arn:aws:states:::s3:getObject",
        ReaderConfig: { InputType: "JSONL" },
        Arguments: { Bucket: "results", Key: "{% $states.input.manifest %}" },
      },
      ItemProcessor: {
        ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
        StartAt: Object.keys(states)[0],
        States: states,
      },
      ResultWriter: { Resource: "arn:aws:states:::s3:putObject", Arguments: { Bucket: "results", Prefix: "maps" } },
      End: true,
      ...fields,
    },
  });
  const input = { manifest: "m.jsonl" };

  function objects(text: string): { resources: Partial<Resources>; written: ChildResult[]; closed: () => number } {
    const written: ChildResult[] = [];
    let closed = 0;
    return {
      written,
      closed: () => closed,
      resources: {
        async *readItems(location) {
          expect(location).toEqual({ bucket: "results", key: "m.jsonl" });
          const bytes = Buffer.from(text);
          // Pieces that cut lines and characters.
          for (let at = 0; at < bytes.length; at += 5) yield bytes.subarray(at, at + 5);
        },
        async openResults({ bucket, prefix, mapRun }) {
          return {
            add: (result) => void written.push(result),
            close: async () => {
              closed += 1;
              return { key: `${bucket}:${prefix}/${mapRun}/manifest.json` };
            },
          };
        },
      },
    };
  }
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, n) => `${JSON.stringify({ n, name: "π" })}\n`).join("");

  it("reads lines, runs each as an execution of its own and writes the results", async () => {
    const store = objects('{"n":1,"s":"ü"}\n\n{"n":2}\r\n{"n":3}');
    const world = setting(lane({ ItemSelector: { line: "{% $states.context.Map.Item.Value %}" } }), {
      functions: { do: (event: { line: { n: number } }) => event.line.n },
      resources: store.resources,
    });
    const result = await world.run(input);
    expect(result).toMatchObject({
      status: "SUCCEEDED",
      output: { ResultWriterDetails: { Bucket: "results" } },
      statesEntered: 1,
    });
    expect(store.written).toMatchObject([
      { index: 0, status: "SUCCEEDED", input: { line: { n: 1, s: "ü" } }, output: { Payload: 1 }, error: null },
      { index: 1, input: { line: { n: 2 } } },
      { index: 2, input: { line: { n: 3 } } },
    ]);
    const children = world.history.filter((event) => event.type === "ExecutionStarted" && event.execution !== "one");
    expect(new Set(children.map((event) => event.execution)).size).toBe(3);
    expect(store.closed()).toBe(1);
  });

  it("starts no more at once than MaxConcurrency, and reads on only as it goes", async () => {
    const store = objects(lines(20));
    let now = 0;
    let peak = 0;
    const world: Setting = setting(lane({ MaxConcurrency: "{% $states.input.cap %}" }), {
      functions: {
        do: async () => {
          peak = Math.max(peak, ++now);
          await world.clock.sleep(1000);
          now -= 1;
        },
      },
      resources: store.resources,
    });
    expect(await world.run({ ...input, cap: 4 })).toMatchObject({ status: "SUCCEEDED" });
    expect([peak, world.seconds(), store.written.length]).toEqual([4, 5, 20]);
  });

  it("gives each child its own data, not the variables around it", async () => {
    const store = objects(lines(1));
    const { run } = setting(
      lane({}, { Context: { Type: "Pass", Output: "{% $states.context.Execution.Input %}", End: true } }),
      { resources: store.resources },
    );
    await run(input);
    expect(store.written[0]?.output).toEqual({ n: 0, name: "π" });
    expect(() =>
      setting({
        Set: { Type: "Pass", Assign: { outer: 1 }, Next: "Lane" },
        ...lane({}, { Read: { Type: "Pass", Output: "{% $outer %}", End: true } }),
      }),
    ).toThrow(/Read.*\$outer is neither/);
  });

  describe("with items that fail", () => {
    const run = async (fields: Record<string, unknown>, failing: number, of = 10) => {
      const store = objects(lines(of));
      const world = setting(lane({ MaxConcurrency: 1, ...fields }), {
        functions: {
          do: ({ n }: { n: number }) => {
            if (n < failing) throw named("Bad", `item ${n}`);
            return n;
          },
        },
        resources: store.resources,
      });
      return { result: await world.run(input), ...store };
    };

    it("tolerates none by default", async () => {
      const { result, written, closed } = await run({}, 1);
      expect(result).toMatchObject({ status: "FAILED", error: "States.ExceedToleratedFailureThreshold" });
      expect(written).toMatchObject([{ status: "FAILED", error: "Bad", output: null }]);
      expect(closed()).toBe(1);
    });

    it("tolerates the share that is given, and not more", async () => {
      expect((await run({ ToleratedFailurePercentage: 100 }, 10)).result).toMatchObject({ status: "SUCCEEDED" });
      expect((await run({ ToleratedFailurePercentage: "{% 30 %}" }, 3)).result).toMatchObject({ status: "SUCCEEDED" });
      expect((await run({ ToleratedFailurePercentage: 30 }, 4)).result).toMatchObject({
        error: "States.ExceedToleratedFailureThreshold",
      });
    });

    it("tolerates the number that is given, and stops at the next", async () => {
      expect((await run({ ToleratedFailureCount: 2 }, 2)).result).toMatchObject({ status: "SUCCEEDED" });
      const { result, written } = await run({ ToleratedFailureCount: 2 }, 10);
      expect(result).toMatchObject({ error: "States.ExceedToleratedFailureThreshold" });
      expect(written).toHaveLength(3);
    });

    it("aborts the children that run when it fails", async () => {
      const store = objects(lines(3));
      const world: Setting = setting(lane(), {
        functions: {
          do: async ({ n }: { n: number }) => {
            await world.clock.sleep((n + 1) * 1000);
            if (n === 0) throw named("Bad");
          },
        },
        resources: store.resources,
      });
      expect(await world.run(input)).toMatchObject({ error: "States.ExceedToleratedFailureThreshold" });
      const ends = world.history.filter((event) => event.type === "ExecutionEnded");
      expect(ends.map((event) => event.status).sort()).toEqual(["ABORTED", "ABORTED", "FAILED", "FAILED"]);
      expect(world.seconds()).toBe(1);
    });
  });

  it("aborts its children with the execution", async () => {
    const store = objects(lines(3));
    const world: Setting = setting(lane(), {
      functions: { do: (_event: unknown, signal: AbortSignal) => world.clock.sleep(1e6, signal) },
      resources: store.resources,
    });
    const { result } = await world.begin(input);
    await world.clock.sleep(5000);
    await world.workflow.stop("main", "one", "Proctor.Cancelled", "by hand");
    expect(await result).toMatchObject({ status: "ABORTED" });
    const ends = world.history.filter((event) => event.type === "ExecutionEnded");
    expect(ends.map((event) => event.error)).toEqual(Array(4).fill("Proctor.Cancelled"));
    await world.clock.sleep(1);
    expect(world.clock.pending).toBe(0);
  });

  it("fails on a line that is no JSON, and says which", async () => {
    const { run } = setting(lane({ ToleratedFailurePercentage: 100 }), {
      functions: { do: () => 1 },
      resources: objects('{"n":1}\nnonsense\n').resources,
    });
    expect(await run(input)).toMatchObject({
      error: "States.ItemReaderFailed",
      cause: "line 2 of results/m.jsonl is no JSON",
    });
  });

  it("fails when the manifest cannot be read or the results cannot be written", async () => {
    const functions = { do: () => 1 };
    const store = objects(lines(2)).resources;
    const broken: Partial<Resources>[] = [
      {
        ...store,
        async *readItems() {
          yield '{"n":';
          throw new Error("no such key");
        },
      },
      { ...store, openResults: () => Promise.reject(new Error("denied")) },
      {
        ...store,
        openResults: async () => ({ add: () => Promise.reject(new Error("full")), close: async () => ({ key: "k" }) }),
      },
      { ...store, openResults: async () => ({ add: () => {}, close: () => Promise.reject(new Error("full")) }) },
    ];
    const errors: unknown[] = [];
    for (const resources of broken) {
      const result = await setting(lane(), { functions, resources }).run(input);
      errors.push(result.status === "SUCCEEDED" ? null : result.error);
    }
    expect(errors).toEqual(["States.ItemReaderFailed", ...Array<string>(3).fill("States.ResultWriterFailed")]);
  });
});
