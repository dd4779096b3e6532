import { describe, expect, it } from "vitest";
import { invoke, named, setting } from "./setting.ts";

describe("flow of states", () => {
  it("runs a task, keeps a variable, chooses and ends", async () => {
    const { run, entered } = setting(
      {
        Ask: invoke("ask", {
          Assign: { n: "{% $states.result.Payload.n %}" },
          Output: { seen: "{% $states.result.Payload %}" },
          Next: "Which",
        }),
        Which: {
          Type: "Choice",
          Choices: [{ Condition: "{% $n > 1 %}", Next: "Many", Assign: { label: "many" } }],
          Default: "Few",
        },
        Many: { Type: "Succeed", Output: { label: "{% $label %}", seen: "{% $states.input.seen %}" } },
        Few: { Type: "Fail", Error: "Few", Cause: "{% 'only ' & $string($n) %}" },
      },
      { functions: { ask: (event: { n: number }) => ({ n: event.n + 1 }) } },
    );
    expect(await run({ n: 1 })).toEqual({
      status: "SUCCEEDED",
      output: { label: "many", seen: { n: 2 } },
      statesEntered: 3,
      retries: 0,
    });
    expect(entered()).toEqual(["Ask", "Which", "Many"]);
    expect(await run({ n: 0 }, "two")).toMatchObject({ status: "FAILED", error: "Few", cause: "only 1" });
  });

  it("retries and catches", async () => {
    let calls = 0;
    const { run, seconds } = setting(
      {
        Try: invoke("try", {
          Retry: [{ ErrorEquals: ["Busy"], IntervalSeconds: 2, MaxAttempts: 2, BackoffRate: 3 }],
          Catch: [{ ErrorEquals: ["States.ALL"], Next: "Sorry", Assign: { why: "{% $states.errorOutput.Error %}" } }],
        }),
        Sorry: { Type: "Pass", Output: "{% $why & '/' & $states.input.Error %}", End: true },
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
    expect(await run()).toMatchObject({ status: "SUCCEEDED", output: "Busy/Busy", retries: 2 });
    expect(calls).toBe(3);
    expect(seconds()).toBe(8);
  });
});
