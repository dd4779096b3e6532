import { describe, expect, it } from "vitest";
import { invoke, named, setting, start } from "./setting.ts";

describe("a flow of states", () => {
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
    const output = { label: "many", seen: { n: 2 } };
    expect(await run({ n: 1 })).toEqual({ status: "SUCCEEDED", output, statesEntered: 3, retries: 0 });
    expect(entered()).toEqual(["Ask", "Which", "Many"]);
    expect(await run({ n: 0 }, "two")).toMatchObject({ status: "FAILED", error: "Few", cause: "only 1" });
  });

  it("passes on the input where a state names no output, and the result where it has one", async () => {
    const { run } = setting(
      {
        Wait: { Type: "Wait", Seconds: 1, Next: "Pass" },
        Pass: { Type: "Pass", Next: "Choose" },
        Choose: { Type: "Choice", Choices: [{ Condition: "{% true %}", Next: "Task" }] },
        Task: invoke("echo", { Next: "End" }),
        End: { Type: "Succeed" },
      },
      { functions: { echo: (event: unknown) => event } },
    );
    expect(await run({ a: [1] })).toMatchObject({
      output: { ExecutedVersion: "$LATEST", Payload: { a: [1] }, StatusCode: 200 },
    });
  });

  it("waits the seconds that an expression gives", async () => {
    const { run, seconds } = setting({
      Wait: { Type: "Wait", Seconds: "{% $states.input.delay * 2 %}", Assign: { at: 1 }, End: true },
    });
    expect(await run({ delay: 45 })).toMatchObject({ status: "SUCCEEDED" });
    expect(seconds()).toBe(90);
    for (const delay of [0.3, -1, 1e9, "1"]) {
      expect(await run({ delay }, `delay-${typeof delay}${delay}`)).toMatchObject({
        status: "FAILED",
        error: "States.QueryEvaluationError",
      });
    }
  });

  it("evaluates Assign and Output from the entry data, not from each other", async () => {
    const { run } = setting({
      First: { Type: "Pass", Assign: { a: 1, b: 2 }, Next: "Swap" },
      Swap: { Type: "Pass", Assign: { a: "{% $b %}", b: "{% $a %}" }, Output: ["{% $a %}", "{% $b %}"], Next: "End" },
      End: { Type: "Succeed", Output: { output: "{% $states.input %}", now: ["{% $a %}", "{% $b %}"] } },
    });
    expect(await run()).toMatchObject({ output: { output: [1, 2], now: [2, 1] } });
  });

  it("takes the rule's Assign and Output for a rule, the state's own for Default", async () => {
    const { run } = setting({
      Choose: {
        Type: "Choice",
        Choices: [{ Condition: "{% $states.input.x = 1 %}", Assign: { by: "rule" }, Output: "from rule", Next: "End" }],
        Default: "End",
        Assign: { by: "default" },
        Output: "from default",
      },
      End: { Type: "Succeed", Output: ["{% $by %}", "{% $states.input %}"] },
    });
    expect(await run({ x: 1 })).toMatchObject({ output: ["rule", "from rule"] });
    expect(await run({ x: 2 }, "two")).toMatchObject({ output: ["default", "from default"] });
  });

  it("fails a choice that nothing decides, and one whose condition is no boolean", async () => {
    const { run } = setting({
      Choose: { Type: "Choice", Choices: [{ Condition: "{% $states.input.x %}", Next: "End" }] },
      End: { Type: "Succeed" },
    });
    expect(await run({ x: false })).toMatchObject({ status: "FAILED", error: "States.NoChoiceMatched" });
    expect(await run({ x: "true" }, "two")).toMatchObject({ error: "States.QueryEvaluationError" });
    expect(await run({}, "three")).toMatchObject({ error: "States.QueryEvaluationError" });
  });

  it("gives the context object", async () => {
    const { run, history } = setting(
      {
        Wait: { Type: "Wait", Seconds: 5, Next: "Task" },
        Task: invoke("flaky", {
          Arguments: { FunctionName: "flaky", Payload: "{% $states.context %}" },
          Retry: [{ ErrorEquals: ["Again"], IntervalSeconds: 1 }],
          Output: "{% $states.result.Payload %}",
        }),
      },
      {
        functions: {
          flaky: (event: { State: { RetryCount: number } }) => {
            if (event.State.RetryCount < 2) throw named("Again");
            return event;
          },
        },
      },
    );
    const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString();
    expect(await run({ i: 1 }, "my-run")).toMatchObject({
      output: {
        Execution: {
          Id: "arn:aws:states:local:000000000000:execution:main:my-run",
          Input: { i: 1 },
          Name: "my-run",
          StartTime: at(0),
        },
        State: { Name: "Task", EnteredTime: at(5), RetryCount: 2 },
        StateMachine: { Id: "arn:aws:states:local:000000000000:stateMachine:main", Name: "main" },
      },
      retries: 2,
    });
    expect(history.map((event) => event.type)).toEqual([
      "ExecutionStarted",
      "StateEntered",
      "StateExited",
      "StateEntered",
      "StateFailed",
      "StateFailed",
      "StateExited",
      "ExecutionEnded",
    ]);
    expect(history.map((event) => (event.at - start) / 1000)).toEqual([0, 0, 5, 5, 5, 6, 8, 8]);
  });

  it("hands functions a copy, and takes a copy of what they give", async () => {
    const kept: { list: number[] } = { list: [1] };
    const { run } = setting(
      {
        One: invoke("spoil", { Output: "{% $states.input %}", Next: "Two" }),
        Two: invoke("give", { Assign: { before: "{% $states.result.Payload %}" }, Next: "Three" }),
        Three: invoke("change", { Output: "{% $before %}" }),
      },
      {
        functions: {
          spoil: (event: { a: number }) => {
            event.a = 99;
          },
          give: () => kept,
          change: () => {
            kept.list.push(2);
          },
        },
      },
    );
    expect(await run({ a: 1 })).toMatchObject({ output: { list: [1] } });
  });

  it("calls ECS with the request as it stands and gives its response", async () => {
    const requests: unknown[] = [];
    const { run } = setting(
      {
        Launch: {
          Type: "Task",
          Resource: "arn:aws:states:::aws-sdk:ecs:runTask",
          Arguments: { Cluster: "c", TaskDefinition: "{% $states.input.definition %}", Count: 1 },
          Assign: { task: "{% $states.result.Tasks[0].TaskArn %}" },
          Next: "Stop",
        },
        Stop: {
          Type: "Task",
          Resource: "arn:aws:states:::aws-sdk:ecs:stopTask",
          Arguments: { Cluster: "c", Task: "{% $task %}" },
          Catch: [{ ErrorEquals: ["Ecs.InvalidParameterException"], Next: "Gone" }],
          End: true,
        },
        Gone: { Type: "Succeed", Output: "{% $states.input %}" },
      },
      {
        resources: {
          async runTask(request) {
            requests.push(request);
            return { Tasks: [{ TaskArn: "task-1" }], Failures: [] };
          },
          async stopTask(request) {
            requests.push(request);
            throw named("Ecs.InvalidParameterException", "it is gone");
          },
        },
      },
    );
    const cause = JSON.stringify({ errorType: "Ecs.InvalidParameterException", errorMessage: "it is gone" });
    expect(await run({ definition: "d:3" })).toMatchObject({
      output: { Error: "Ecs.InvalidParameterException", Cause: cause },
    });
    expect(requests).toEqual([
      { Cluster: "c", TaskDefinition: "d:3", Count: 1 },
      { Cluster: "c", Task: "task-1" },
    ]);
  });
});
