import { describe, expect, it } from "vitest";
import { DefinitionError, loadMachine } from "../../../../lib/platform/local/interpreter/interpreter.ts";
import { invoke, machine, placeholder, ScriptedRandom, start } from "./setting.ts";

const ports = { clock: { now: () => start }, random: new ScriptedRandom() };

function problemsOf(definition: unknown, placeholders: Record<string, string> = {}): string[] {
  try {
    loadMachine({ name: "main", file: "main.asl.json", definition }, placeholders, ports);
    return [];
  } catch (error) {
    if (error instanceof DefinitionError) return error.message.split("\n");
    throw error;
  }
}

const end = { End: { Type: "Succeed" } };
const task = (fields: Record<string, unknown>) =>
  machine({ Task: invoke("f", fields), ...("Next" in fields ? end : {}) });
const token = (fields: Record<string, unknown>) =>
  task({
    Resource: "arn:aws:states:::lambda:invoke.waitForTaskToken",
    Arguments: { FunctionName: "f", Payload: "{% $states.context.Task.Token %}" },
    ...fields,
  });
const map = (
  fields: Record<string, unknown>,
  states: Record<string, unknown> = { Inner: { Type: "Pass", End: true } },
) =>
  machine({
    Each: { Type: "Map", ItemProcessor: { StartAt: Object.keys(states)[0], States: states }, End: true, ...fields },
  });

describe("a definition is refused", () => {
  it.each<[string, unknown, RegExp]>([
    ["that is no JSON", '{"StartAt": ', /^main.asl.json: is no JSON/],
    ["without a query language", { StartAt: "A", States: {} }, /QueryLanguage is missing/],
    ["in JSONPath", machine({ ...end }, { QueryLanguage: "JSONPath" }), /QueryLanguage is "JSONPath"/],
    ["with a state in JSONPath", machine({ A: { Type: "Succeed", QueryLanguage: "JSONPath" } }), /A: QueryLanguage/],
    [
      "with an unknown field",
      machine({ ...end }, { Extra: 1 }),
      /main.asl.json: Extra is a field that is not supported/,
    ],
    ["with a state's unknown field", task({ InputPath: "$.x" }), /Task: InputPath is a field that is not supported/],
    ["with ResultSelector", task({ ResultSelector: {} }), /Task: ResultSelector/],
    ["with Credentials", task({ Credentials: {} }), /Task: Credentials/],
    [
      "with a Parallel state",
      machine({ P: { Type: "Parallel", Branches: [], End: true } }),
      /P: Type is "Parallel"; expected/,
    ],
    ["with a state without a type", machine({ P: { End: true } }), /P: Type is undefined/],
    [
      "with another resource",
      task({ Resource: "arn:aws:states:::sqs:sendMessage" }),
      /Task: Resource is "arn:aws:states:::sqs:sendMessage"/,
    ],
    [
      "with a function's ARN as resource",
      task({ Resource: "arn:aws:lambda:us-east-1:1:function:f" }),
      /Task: Resource/,
    ],
    [
      "with startExecution that does not wait",
      task({ Resource: "arn:aws:states:::states:startExecution" }),
      /Task: Resource/,
    ],
    [
      "with an unknown argument",
      task({ Arguments: { FunctionName: "f", InvocationType: "Event" } }),
      /Arguments.InvocationType is not supported/,
    ],
    ["without a needed argument", task({ Arguments: { Payload: 1 } }), /Arguments.FunctionName is missing/],
    ["with Timestamp", machine({ W: { Type: "Wait", Timestamp: "2026-01-01T00:00:00Z", End: true } }), /W: Timestamp/],
    ["with both Next and End", task({ End: true, Next: "End" }), /Task: Next or End/],
    ["with neither Next nor End", machine({ A: { Type: "Pass" } }), /A: Next or End/],
    ["with a missing start", machine({ ...end }, { StartAt: "Nope" }), /StartAt names Nope/],
    ["with a missing next state", task({ End: undefined, Next: "Nope" }), /Task: Next names Nope/],
    [
      "with a missing target of a Catch",
      task({ Catch: [{ ErrorEquals: ["A"], Next: "Nope" }] }),
      /Task: Next names Nope/,
    ],
    [
      "with a missing target of a rule",
      machine({ C: { Type: "Choice", Choices: [{ Condition: "{% true %}", Next: "Nope" }] } }),
      /C: Next names Nope/,
    ],
    [
      "with a missing Default",
      machine({ C: { Type: "Choice", Choices: [{ Condition: "{% true %}", Next: "End" }], Default: "Nope" }, ...end }),
      /C: Next names Nope/,
    ],
    [
      "with a state that is never reached",
      machine({ A: { Type: "Pass", End: true }, B: { Type: "Pass", End: true } }),
      /B: is never reached/,
    ],
    [
      "without an end",
      machine({ A: { Type: "Pass", Next: "B" }, B: { Type: "Pass", Next: "A" } }),
      /A: leads to no state that ends/,
    ],
    [
      "with a condition that is no expression",
      machine({ C: { Type: "Choice", Choices: [{ Condition: "true", Next: "End" }] }, ...end }),
      /C: Choices\[0\].Condition is true; expected an expression/,
    ],
    [
      "with a rule of JSONPath",
      machine({ C: { Type: "Choice", Choices: [{ Variable: "$.x", IsPresent: true, Next: "End" }] }, ...end }),
      /C: Choices\[0\].Variable/,
    ],
    ["with a fraction of a second", machine({ W: { Type: "Wait", Seconds: 1.5, End: true } }), /W: Seconds is 1.5/],
    ["with seconds in words", machine({ W: { Type: "Wait", Seconds: "ten", End: true } }), /W: Seconds is "ten"/],
    ["with a timeout of nothing", task({ TimeoutSeconds: 0 }), /Task: TimeoutSeconds is 0/],
    ["with a heartbeat without a token", task({ HeartbeatSeconds: 5 }), /HeartbeatSeconds has a meaning only/],
    [
      "with a heartbeat not below the timeout",
      token({ HeartbeatSeconds: 60, TimeoutSeconds: 60 }),
      /HeartbeatSeconds is 60; expected less/,
    ],
    [
      "with a token that goes nowhere",
      token({ Arguments: { FunctionName: "f" } }),
      /hand out no \$states.context.Task.Token/,
    ],
    [
      "with States.ALL in company",
      task({ Retry: [{ ErrorEquals: ["States.ALL", "A"] }] }),
      /Retry\[0\].ErrorEquals has States.ALL/,
    ],
    [
      "with States.ALL before others",
      task({ Retry: [{ ErrorEquals: ["States.ALL"] }, { ErrorEquals: ["A"] }] }),
      /Retry\[0\].ErrorEquals has States.ALL/,
    ],
    ["that would catch States.Runtime", task({ Retry: [{ ErrorEquals: ["States.Runtime"] }] }), /names States.Runtime/],
    ["with an unknown States error", task({ Retry: [{ ErrorEquals: ["States.Tiemout"] }] }), /names States.Tiemout/],
    [
      "with a longest delay below the first",
      task({ Retry: [{ ErrorEquals: ["A"], IntervalSeconds: 5, MaxDelaySeconds: 5 }] }),
      /MaxDelaySeconds is 5/,
    ],
    ["with a shrinking backoff", task({ Retry: [{ ErrorEquals: ["A"], BackoffRate: 0.5 }] }), /Retry\[0\].BackoffRate/],
    [
      "with another jitter",
      task({ Retry: [{ ErrorEquals: ["A"], JitterStrategy: "SOME" }] }),
      /Retry\[0\].JitterStrategy is "SOME"/,
    ],
    [
      "that retries where nothing can fail",
      machine({ A: { Type: "Pass", End: true, Retry: [] } }),
      /A: Retry is a field/,
    ],
    ["with a broken expression", task({ Output: { deep: ["{% $a + %}"] } }), /Task: Output.deep\[0\] is no JSONata/],
    ["with an unknown variable", task({ Output: "{% $nope %}" }), /Task: Output \$nope is neither/],
    [
      "with the result in the arguments",
      task({ Arguments: { FunctionName: "f", Payload: "{% $states.result %}" } }),
      /Task: Arguments.Payload \$states.result has no value/,
    ],
    [
      "with an error outside a Catch",
      task({ Output: "{% $states.errorOutput %}" }),
      /\$states.errorOutput has no value/,
    ],
    ["with a variable named states", task({ Assign: { states: 1 } }), /Assign sets \$states/],
    ["with a variable that is no name", task({ Assign: { "a-b": 1 } }), /Task: Assign/],
    ["with a state's name over 80 characters", machine({ ["x".repeat(81)]: { Type: "Succeed" } }), /States/],
    [
      "with two states of one name",
      map({}, { Each: { Type: "Pass", End: true } }),
      /Each: has the name of another state/,
    ],
    ["with a Map without a processor", machine({ Each: { Type: "Map", End: true } }), /Each: ItemProcessor is missing/],
    ["with tolerance in an inline Map", map({ ToleratedFailurePercentage: 5 }), /Each: ToleratedFailurePercentage/],
    ["with batches", map({ ItemBatcher: {} }), /Each: ItemBatcher/],
    ["with a broken state in a Map", map({}, { Inner: { Type: "Pass", Next: "Nope" } }), /Inner: Next names Nope/],
    [
      "that sets an outer variable inside a Map",
      map({ Assign: { a: 1 } }, { Inner: { Type: "Pass", Assign: { a: 2 }, End: true } }),
      /Each: ItemProcessor assigns \$a/,
    ],
  ])("%s", (_what, definition, said) => {
    expect(problemsOf(definition).join("\n")).toMatch(said);
  });

  it("with all its problems at once, each with file, state and field", () => {
    const wrong = machine({ A: { Type: "Pass", Extra: 1, Next: "B" }, B: { Type: "Wait", Seconds: -1, End: true } });
    expect(problemsOf(wrong)).toEqual([
      "main.asl.json: A: Extra is a field that is not supported here",
      expect.stringMatching(/^main.asl.json: B: Seconds is -1: /),
    ]);
  });

  it("for a placeholder without a value, and takes one with", () => {
    const definition = machine({ Task: invoke("f", { Arguments: { FunctionName: placeholder("Prepare") } }) });
    expect(problemsOf(definition)).toEqual([
      `main.asl.json: States.Task.Arguments.FunctionName has the placeholder ${placeholder("Prepare")}, for which no value is given`,
    ]);
    expect(problemsOf(JSON.stringify(definition), { Prepare: "prepare" })).toEqual([]);
  });

  it("for a machine's name that Step Functions would not take", () => {
    const load = () => loadMachine({ name: "a b", file: "f", definition: machine(end) }, {}, ports);
    expect(load).toThrow(/name a b holds " "/);
  });
});
