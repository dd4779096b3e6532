import { describe, expect, it } from "vitest";
import { matches, retryDelay } from "../../../../lib/platform/local/interpreter/faults.ts";
import { invoke, named, setting } from "./setting.ts";

describe("error names", () => {
  it.each([
    ["Mine", "Mine", true],
    ["Mine", "Other", false],
    ["States.ALL", "Mine", true],
    ["States.ALL", "States.Timeout", true],
    ["States.ALL", "States.QueryEvaluationError", true],
    ["States.ALL", "States.Runtime", false],
    ["States.ALL", "States.DataLimitExceeded", false],
    ["States.DataLimitExceeded", "States.DataLimitExceeded", true],
    ["States.TaskFailed", "Mine", true],
    ["States.TaskFailed", "States.Timeout", false],
    ["States.TaskFailed", "States.HeartbeatTimeout", false],
    ["States.TaskFailed", "States.DataLimitExceeded", false],
    ["States.TaskFailed", "States.Runtime", false],
    ["States.Timeout", "States.HeartbeatTimeout", true],
    ["States.HeartbeatTimeout", "States.Timeout", false],
    ["States.Runtime", "States.Runtime", false],
  ])("%s takes %s: %s", (name, error, taken) => {
    expect(matches([name], error)).toBe(taken);
  });
});

describe("the delay before a retry", () => {
  const retrier = {
    ErrorEquals: ["A"],
    IntervalSeconds: 2,
    MaxAttempts: 5,
    BackoffRate: 3,
    JitterStrategy: "NONE" as const,
  };
  const delays = (retriers: Parameters<typeof retryDelay>[0], errors: string[], unit = 0.5): (number | null)[] => {
    const used: number[] = [];
    return errors.map((error) => retryDelay(retriers, used, error, { unit: () => unit }));
  };

  it("grows by the backoff rate, up to the longest", () => {
    expect(delays([retrier], Array(6).fill("A"))).toEqual([2, 6, 18, 54, 162, null]);
    expect(delays([{ ...retrier, MaxDelaySeconds: 20 }], Array(5).fill("A"))).toEqual([2, 6, 18, 20, 20]);
  });

  it("is anywhere below that with full jitter", () => {
    const jittered = { ...retrier, MaxDelaySeconds: 20, JitterStrategy: "FULL" as const };
    expect(delays([jittered], Array(4).fill("A"), 0.25)).toEqual([0.5, 1.5, 4.5, 5]);
    expect(delays([jittered], ["A"], 0)).toEqual([0]);
  });

  it("is counted by each retrier apart, and only the first that takes the error counts", () => {
    const one = { ...retrier, MaxAttempts: 1 };
    const all = { ...retrier, ErrorEquals: ["States.ALL"], IntervalSeconds: 10, MaxAttempts: 2 };
    expect(delays([one, all], ["A", "B", "A", "B", "B"])).toEqual([2, 10, null, 30, null]);
    expect(delays([{ ...retrier, MaxAttempts: 0 }, all], ["A"])).toEqual([null]);
  });
});

describe("a failing task", () => {
  it("is tried again at the very times of its policy", async () => {
    const times: number[] = [];
    const world = setting(
      {
        Try: invoke("try", {
          Retry: [
            {
              ErrorEquals: ["Busy"],
              IntervalSeconds: 2,
              MaxAttempts: 3,
              BackoffRate: 3,
              MaxDelaySeconds: 10,
              JitterStrategy: "FULL",
            },
          ],
        }),
      },
      {
        functions: {
          try: () => {
            times.push(world.seconds());
            throw named("Busy");
          },
        },
      },
    );
    world.random.units = [0.5, 0.25, 1];
    expect(await world.run()).toMatchObject({ status: "FAILED", error: "Busy", retries: 3 });
    expect(times).toEqual([0, 1, 2.5, 12.5]);
  });

  it("has three retries of 1, 2 and 4 seconds where the policy says nothing", async () => {
    const { run, seconds } = setting({ Try: invoke("none", { Retry: [{ ErrorEquals: ["States.ALL"] }] }) });
    expect(await run()).toMatchObject({ error: "Lambda.ResourceNotFoundException", retries: 3 });
    expect(seconds()).toBe(7);
  });

  it("starts its count anew when it is entered again", async () => {
    let calls = 0;
    const { run } = setting(
      {
        Try: invoke("try", {
          Retry: [{ ErrorEquals: ["Busy"], MaxAttempts: 1 }],
          Catch: [{ ErrorEquals: ["Busy"], Next: "Once", Output: "{% $states.input %}" }],
        }),
        Once: {
          Type: "Choice",
          Choices: [{ Condition: "{% $exists($states.input.again) %}", Next: "End" }],
          Default: "Mark",
        },
        Mark: { Type: "Pass", Output: { again: true }, Next: "Try" },
        End: { Type: "Succeed" },
      },
      {
        functions: {
          try: () => {
            calls += 1;
            throw named("Busy");
          },
        },
      },
    );
    expect(await run({})).toMatchObject({ status: "SUCCEEDED" });
    expect(calls).toBe(4);
  });

  it("skips its own Assign when it is caught; the catcher's apply", async () => {
    const { run } = setting(
      {
        Start: { Type: "Pass", Assign: { a: "before", b: "before" }, Next: "Try" },
        Try: invoke("try", {
          Assign: { a: "result" },
          Catch: [
            { ErrorEquals: ["Other"], Next: "End" },
            {
              ErrorEquals: ["States.TaskFailed"],
              Assign: { b: "{% $states.errorOutput.Error %}" },
              Output: { cause: "{% $parse($states.errorOutput.Cause).errorMessage %}", was: "{% $states.input %}" },
              Next: "End",
            },
          ],
        }),
        End: { Type: "Succeed", Output: ["{% $a %}", "{% $b %}", "{% $states.input %}"] },
      },
      {
        functions: {
          try: () => {
            throw named("Mine", "told so");
          },
        },
      },
    );
    expect(await run({ x: 1 })).toMatchObject({ output: ["before", "Mine", { cause: "told so", was: { x: 1 } }] });
  });

  it("gives the error as the output of a catcher that names none", async () => {
    const { run } = setting(
      { Try: invoke("try", { Catch: [{ ErrorEquals: ["States.ALL"], Next: "End" }] }), End: { Type: "Succeed" } },
      {
        functions: {
          try: () => {
            throw "just words";
          },
        },
      },
    );
    const cause = JSON.stringify({ errorType: "Unknown", errorMessage: "just words" });
    expect(await run()).toMatchObject({ output: { Error: "States.TaskFailed", Cause: cause } });
  });

  it("catches an expression that fails before or after the call", async () => {
    let calls = 0;
    const caught = (fields: Record<string, unknown>) =>
      setting(
        {
          Try: invoke("try", { ...fields, Catch: [{ ErrorEquals: ["States.QueryEvaluationError"], Next: "End" }] }),
          End: { Type: "Succeed", Output: "{% $states.input.Error %}" },
        },
        { functions: { try: () => ++calls } },
      ).run({});
    const before = await caught({ Arguments: { FunctionName: "try", Payload: "{% $states.input.missing %}" } });
    expect([before, calls]).toMatchObject([{ output: "States.QueryEvaluationError" }, 0]);
    const after = await caught({ Assign: { x: "{% $states.result.Payload.missing %}" } });
    expect([after, calls]).toMatchObject([{ output: "States.QueryEvaluationError" }, 1]);
  });

  it("fails the execution when the catcher's own expression fails", async () => {
    const { run } = setting({
      Try: invoke("none", {
        Catch: [{ ErrorEquals: ["States.ALL"], Output: "{% $states.input.missing %}", Next: "End" }],
      }),
      End: { Type: "Succeed" },
    });
    expect(await run({})).toMatchObject({ status: "FAILED", error: "States.QueryEvaluationError" });
  });

  it("fails the execution where an expression fails in a state that cannot catch", async () => {
    const { run } = setting({ Pass: { Type: "Pass", Output: { deep: ["{% $states.input.missing %}"] }, End: true } });
    expect(await run({})).toMatchObject({
      status: "FAILED",
      error: "States.QueryEvaluationError",
      cause: expect.stringContaining("Output.deep[0]") as string,
    });
  });
});

describe("a task's time", () => {
  const slow = (clock: () => Promise<void>) => ({ functions: { slow: clock } });

  it("is limited by TimeoutSeconds, which may be an expression", async () => {
    let stopped = false;
    const world = setting(
      {
        Slow: invoke("slow", {
          TimeoutSeconds: "{% $states.input.limit %}",
          Catch: [
            { ErrorEquals: ["States.TaskFailed"], Next: "Wrong" },
            { ErrorEquals: ["States.Timeout"], Next: "End" },
          ],
        }),
        Wrong: { Type: "Fail", Error: "{% $states.input.Error %}" },
        End: { Type: "Succeed", Output: "{% $states.input.Error %}" },
      },
      {
        functions: {
          slow: async (_event: unknown, signal: AbortSignal) => {
            await world.clock.sleep(1_000_000, signal);
            stopped = signal.aborted;
          },
        },
      },
    );
    expect(await world.run({ limit: 30 })).toMatchObject({ output: "States.Timeout" });
    expect(world.seconds()).toBe(30);
    expect(stopped).toBe(true);
    expect(world.clock.pending).toBe(0);
    expect(await world.run({ limit: 0 }, "zero")).toMatchObject({ error: "States.QueryEvaluationError" });
  });

  it("counts anew for each retry", async () => {
    const world = setting(
      {
        Slow: invoke("slow", {
          TimeoutSeconds: 10,
          Retry: [{ ErrorEquals: ["States.Timeout"], MaxAttempts: 2, BackoffRate: 1 }],
        }),
      },
      slow(() => new Promise(() => {})),
    );
    expect(await world.run()).toMatchObject({ status: "FAILED", error: "States.Timeout" });
    expect(world.seconds()).toBe(32);
  });
});
