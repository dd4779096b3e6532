import { describe, expect, it } from "vitest";
import { StartRefused } from "../../../../lib/platform/local/interpreter/interpreter.ts";
import { invoke, named, placeholder, type Setting, setting } from "./setting.ts";

const wait = (seconds: number) => ({ Wait: { Type: "Wait", Seconds: seconds, End: true } });
const kilobytes = (count: number): string => "x".repeat(count * 1024);

describe("starting an execution", () => {
  it("joins one of that name that runs with the same input", async () => {
    const { begin, history } = setting(wait(10));
    const first = await begin({ a: 1, b: { c: 2 } });
    const second = await begin({ b: { c: 2 }, a: 1 });
    expect(await second.result).toBe(await first.result);
    expect(history.filter((event) => event.type === "ExecutionStarted")).toHaveLength(1);
  });

  it("refuses a name that runs with another input, or that ended", async () => {
    const { begin, workflow } = setting(wait(10));
    const { result } = await begin({ a: 1 });
    const exists = { error: "StepFunctions.ExecutionAlreadyExistsException" };
    await expect(begin({ a: 2 })).rejects.toMatchObject(exists);
    await result;
    await expect(begin({ a: 1 })).rejects.toMatchObject(exists);
    expect(workflow.running).toBe(0);
  });

  it.each(["", "x".repeat(81), "a b", "a/b", "a:b", "a\u0000", "a{b", "a*", "naïve\u0085", "a\ud800"])(
    "refuses the name %j",
    async (name) => {
      const refused = expect(setting(wait(1)).begin({}, name)).rejects;
      await refused.toThrow(StartRefused);
      await expect(setting(wait(1)).begin({}, name)).rejects.toMatchObject({
        error: "StepFunctions.InvalidNameException",
      });
    },
  );

  it("takes 80 characters, of any script", async () => {
    expect(await setting(wait(1)).run({}, "é".repeat(78).concat("-_"))).toMatchObject({ status: "SUCCEEDED" });
  });

  it("refuses an unknown machine and an input over 256 KiB", async () => {
    const { workflow, begin } = setting(wait(1));
    await expect(workflow.start("other", "one", {})).rejects.toMatchObject({
      error: "StepFunctions.StateMachineDoesNotExistException",
    });
    await expect(begin(kilobytes(256))).rejects.toMatchObject({
      error: "StepFunctions.InvalidExecutionInputException",
    });
  });
});

describe("a task that starts an execution and waits for it", () => {
  const parent = (fields: Record<string, unknown> = {}) => ({
    Child: {
      Type: "Task",
      Resource: "arn:aws:states:::states:startExecution.sync:2",
      Arguments: { StateMachineArn: placeholder("ChildMachine"), Name: "{% $states.input.name %}", Input: { n: 1 } },
      Catch: [{ ErrorEquals: ["States.ALL"], Output: "{% $states.errorOutput %}", Next: "Caught" }],
      End: true,
      ...fields,
    },
    Caught: { Type: "Succeed" },
  });
  const world = (child: Record<string, unknown>, fields: Record<string, unknown> = {}, functions = {}): Setting =>
    setting(parent(fields), {
      others: { child },
      placeholders: { ChildMachine: "arn:aws:states:us-east-1:123456789012:stateMachine:child" },
      functions,
    });

  it("gives the other's description, its output as JSON", async () => {
    const { run, clock } = world({
      Wait: { Type: "Wait", Seconds: 5, Output: { n: "{% $states.input.n + 1 %}" }, End: true },
    });
    const before = clock.now();
    expect(await run({ name: "c1" })).toMatchObject({
      output: {
        ExecutionArn: "arn:aws:states:local:000000000000:execution:child:c1",
        Name: "c1",
        Input: { n: 1 },
        Output: { n: 2 },
        Status: "SUCCEEDED",
        StartDate: before,
        StopDate: before + 5000,
      },
      statesEntered: 1,
    });
  });

  it("fails with States.TaskFailed and the description when the other fails", async () => {
    const { run } = world({ Fail: { Type: "Fail", Error: "Mine", Cause: "told so" } });
    const { output } = (await run({ name: "c1" })) as unknown as { output: { Error: string; Cause: string } };
    expect(output.Error).toBe("States.TaskFailed");
    expect(JSON.parse(output.Cause)).toMatchObject({ Status: "FAILED", Error: "Mine", Cause: "told so", Name: "c1" });
  });

  it("joins by name, and refuses a name that ended or one that is not allowed", async () => {
    const { workflow, run, history } = world(wait(10));
    const other = await workflow.start("child", "c1", { n: 1 });
    expect(await run({ name: "c1" })).toMatchObject({ output: { Status: "SUCCEEDED" } });
    await other.result;
    expect(history.filter((event) => event.type === "ExecutionStarted" && event.machine === "child")).toHaveLength(1);
    expect(await run({ name: "c1" }, "two")).toMatchObject({
      output: { Error: "StepFunctions.ExecutionAlreadyExistsException" },
    });
    expect(await run({ name: "c 2" }, "three")).toMatchObject({
      output: { Error: "StepFunctions.InvalidNameException" },
    });
  });

  it("aborts the other when it is aborted itself or times out", async () => {
    const aborted = world(wait(1000));
    const { result } = await aborted.begin({ name: "c1" });
    const child = await aborted.workflow.start("child", "c1", { n: 1 });
    await aborted.clock.sleep(1000);
    await aborted.workflow.stop("main", "one", "Proctor.Cancelled", "by hand");
    expect(await result).toMatchObject({ status: "ABORTED", error: "Proctor.Cancelled" });
    expect(await child.result).toMatchObject({ status: "ABORTED", error: "Proctor.Cancelled", cause: "by hand" });

    const late = world(wait(1000), { TimeoutSeconds: 10 });
    const parentRun = late.begin({ name: "c1" });
    await late.clock.sleep(1);
    const lateChild = await late.workflow.start("child", "c1", { n: 1 });
    expect(await (await parentRun).result).toMatchObject({ output: { Error: "States.Timeout" } });
    expect(await lateChild.result).toMatchObject({ status: "ABORTED" });
    expect(late.clock.pending).toBe(0);
  });

  it("fails when executions of that machine are not admitted, and leaves the name free", async () => {
    let open = false;
    const { run } = setting(parent(), {
      others: { child: wait(1) },
      placeholders: { ChildMachine: "child" },
      admit: async (machine) => (machine !== "child" || open ? () => undefined : null),
    });
    expect(await run({ name: "c1" })).toMatchObject({ output: { Error: "Proctor.NotAdmitted" } });
    open = true;
    expect(await run({ name: "c1" }, "two")).toMatchObject({ output: { Status: "SUCCEEDED" } });
  });

  it("fails when the other is aborted", async () => {
    const { begin, clock, workflow } = world(wait(1000));
    const { result } = await begin({ name: "c1" });
    await clock.sleep(1000);
    await workflow.stop("child", "c1", "Stopped", "");
    expect(await result).toMatchObject({ output: { Error: "States.TaskFailed" } });
  });
});

describe("the end of an execution", () => {
  const everything = {
    Pass: { Type: "Pass", Next: "Retry" },
    Retry: invoke("fail", {
      Retry: [{ ErrorEquals: ["Busy"], IntervalSeconds: 100 }],
      Catch: [{ ErrorEquals: ["States.ALL"], Next: "Wait" }],
    }),
    Wait: { Type: "Wait", Seconds: 1000, Next: "Task" },
    Task: invoke("hang", { TimeoutSeconds: 5000, Catch: [{ ErrorEquals: ["States.ALL"], Next: "Token" }] }),
    Token: {
      Type: "Task",
      Resource: "arn:aws:states:::lambda:invoke.waitForTaskToken",
      Arguments: { FunctionName: "open", Payload: "{% $states.context.Task.Token %}" },
      HeartbeatSeconds: 600,
      TimeoutSeconds: 5000,
      Catch: [{ ErrorEquals: ["States.ALL"], Next: "Map" }],
      Next: "Map",
    },
    Map: {
      Type: "Map",
      Items: [1, 2],
      ItemProcessor: { StartAt: "Inner", States: { Inner: { Type: "Wait", Seconds: 9000, End: true } } },
      Catch: [{ ErrorEquals: ["States.ALL"], Next: "End" }],
      Next: "End",
    },
    End: { Type: "Succeed" },
  };
  const run = (machine: Record<string, unknown> = {}): Setting => {
    const world: Setting = setting(everything, {
      machine,
      functions: {
        fail: () => {
          throw named("Busy");
        },
        hang: (_event: unknown, signal: AbortSignal) => world.clock.sleep(1e9, signal),
        open: () => {},
      },
    });
    return world;
  };

  // Seconds at which it is stopped, and the state that it is in then.
  it.each([
    [50, "Retry"],
    [1500, "Wait"],
    [3000, "Task"],
    [7000, "Token"],
    [9000, "Map"],
  ])("runs no Catch when it is aborted after %i s, in %s", async (seconds, state) => {
    const world = run();
    const { result } = await world.begin();
    await world.clock.sleep(seconds * 1000);
    await world.workflow.stop("main", "one", "Proctor.Cancelled", "by hand");
    const ended = await result;
    expect(ended).toMatchObject({ status: "ABORTED", error: "Proctor.Cancelled", cause: "by hand" });
    const entered = world.entered().filter((name) => !name.startsWith("Inner"));
    expect(entered.at(-1)).toBe(state);
    await world.clock.sleep(1);
    expect(world.history.at(-1)?.type).toBe("ExecutionEnded");
    expect([world.seconds(), world.clock.pending, world.workflow.tokens.size, world.workflow.running]).toEqual([
      seconds + 0.001,
      0,
      0,
      0,
    ]);
  });

  it.each([50, 1500, 3000, 7000, 9000])("runs no Catch when its own time of %i s is over", async (TimeoutSeconds) => {
    const world = run({ TimeoutSeconds });
    expect(await world.run()).toMatchObject({ status: "TIMED_OUT", error: "States.Timeout" });
    expect(world.seconds()).toBe(TimeoutSeconds);
    expect(world.history.at(-1)?.type).toBe("ExecutionEnded");
    expect(world.clock.pending).toBe(0);
  });

  it("is left alone by a stop that comes late or means nobody, and by a timeout that is not reached", async () => {
    const { run: complete, workflow, clock } = setting(wait(5), { machine: { TimeoutSeconds: 6 } });
    expect(await complete()).toMatchObject({ status: "SUCCEEDED" });
    await workflow.stop("main", "one", "E", "");
    await workflow.stop("main", "nobody", "E", "");
    expect(clock.pending).toBe(0);
  });

  it("comes even when the listener fails", async () => {
    const broken = (type: string) => (event: { type: string }) => {
      if (event.type === type) throw new Error("the listener broke");
    };
    expect(await setting(wait(5), { onEvent: broken("ExecutionEnded") }).run()).toMatchObject({ status: "SUCCEEDED" });
    expect(await setting(wait(5), { onEvent: broken("StateExited") }).run()).toMatchObject({ error: "States.Runtime" });
  });

  it("is the last that is told, also when a state was about to end", async () => {
    const world: Setting = setting(
      {
        Task: invoke("stop", { Output: "{% $uppercase($string($states.result.Payload)) %}", Next: "End" }),
        End: { Type: "Succeed" },
      },
      {
        functions: { stop: () => void Promise.resolve().then(() => world.workflow.stop("main", "one", "Stopped", "")) },
      },
    );
    expect(await world.run()).toMatchObject({ status: "ABORTED", statesEntered: 1 });
    await world.clock.sleep(1);
    expect(world.history.at(-1)?.type).toBe("ExecutionEnded");
  });

  it("comes to all at once by close", async () => {
    const { begin, workflow } = setting(wait(5));
    const results = [(await begin({}, "a")).result, (await begin({}, "b")).result];
    await workflow.close("Proctor.Closed", "the process ends");
    expect(await Promise.all(results)).toMatchObject(Array(2).fill({ status: "ABORTED", error: "Proctor.Closed" }));
  });
});

describe("limits of data", () => {
  const all = [{ ErrorEquals: ["States.ALL"], Next: "Caught" }];
  const caught = { Caught: { Type: "Succeed", Output: "{% $states.input.Error %}" } };
  const give = { functions: { give: () => kilobytes(256), small: () => kilobytes(200) } };

  it("ends the execution by States.DataLimitExceeded past States.ALL", async () => {
    const result = await setting({ Task: invoke("give", { Catch: all }), ...caught }, give).run();
    expect(result).toMatchObject({ status: "FAILED", error: "States.DataLimitExceeded" });
  });

  it("can be caught by its own name", async () => {
    const Catch = [{ ErrorEquals: ["States.DataLimitExceeded"], Next: "Caught" }];
    expect(await setting({ Task: invoke("give", { Catch }), ...caught }, give).run()).toMatchObject({
      output: "States.DataLimitExceeded",
    });
  });

  it.each([
    [
      "arguments",
      invoke("small", {
        Arguments: { FunctionName: "small", Payload: ["{% $states.input %}", "{% $states.input %}"] },
      }),
    ],
    ["an output", invoke("small", { Output: ["{% $states.result.Payload %}", "{% $states.result.Payload %}"] })],
    [
      "a variable",
      invoke("small", { Assign: { a: ["{% $states.result.Payload %}", "{% $states.result.Payload %}"] }, Output: 1 }),
    ],
    [
      "an Assign",
      invoke("small", { Assign: { a: "{% $states.result.Payload %}", b: "{% $states.result.Payload %}" }, Output: 1 }),
    ],
  ])("holds for %s", async (_what, task) => {
    expect(await setting({ Task: task }, give).run(kilobytes(200))).toMatchObject({
      error: "States.DataLimitExceeded",
    });
  });

  it("counts bytes of UTF-8, as JSON writes them", async () => {
    const pass = { Pass: { Type: "Pass", Output: "{% $states.input & $states.input %}", End: true } };
    const half = 128 * 1024 - 1;
    expect(await setting(pass).run("x".repeat(half))).toMatchObject({ status: "SUCCEEDED" });
    expect(await setting(pass).run("x".repeat(half + 1))).toMatchObject({ error: "States.DataLimitExceeded" });
    expect(await setting(pass).run("é".repeat(half / 2 + 1))).toMatchObject({ error: "States.DataLimitExceeded" });
    expect(await setting(pass).run('"'.repeat(half / 2 + 1))).toMatchObject({ error: "States.DataLimitExceeded" });
  });

  it("holds for all variables together: 10 MiB", async () => {
    const names = Array.from({ length: 52 }, (_, index) => `v${index}`);
    const states = Object.fromEntries(
      names.map((name, index) => [
        name,
        { Type: "Pass", Assign: { [name]: "{% $states.input %}" }, Next: names[index + 1] ?? "End" },
      ]),
    );
    const { run, entered } = setting({ ...states, End: { Type: "Succeed", Output: 1 } });
    expect(await run(kilobytes(200))).toMatchObject({ error: "States.DataLimitExceeded" });
    expect(entered()).toHaveLength(52);
  });

  it("ends an execution at 25,000 events of history, which nothing catches", async () => {
    const world = setting({
      Loop: { Type: "Pass", Next: "Again" },
      Again: { Type: "Choice", Choices: [{ Condition: "{% false %}", Next: "End" }], Default: "Loop" },
      End: { Type: "Succeed" },
    });
    const result = await world.run();
    expect(result).toMatchObject({ status: "FAILED", error: "States.Runtime" });
    expect(result.statesEntered).toBeGreaterThan(12_000);
  });
});
