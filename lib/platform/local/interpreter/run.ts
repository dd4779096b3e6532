/** Runs a flow from state to state: entering, trying again, catching, leaving. */
import { Interrupted, pause } from "./bounded.ts";
import { errorNames, type Json, type JsonObject, limits, plain, StateFailure, withinLimit } from "./data.ts";
import type { Execution, ExecutionResult } from "./execution.ts";
import { type Bindings, evaluate, evaluateEntries } from "./expressions.ts";
import { catcherFor, retryDelay } from "./faults.ts";
import type { Flow, Results, State } from "./machine.ts";
import { runMap } from "./map.ts";
import { runTask } from "./task.ts";

/** A flow under way: a machine's own, or one iteration of an inline Map. */
export interface Scope {
  execution: Execution;
  flow: Flow;
  variables: Record<string, Json>;
  /** The item of the inline Map around; null outside. */
  item: { Index: number; Value: Json } | null;
  signal: AbortSignal;
}

/** One visit of a state, over all its retries. */
export interface Visit {
  scope: Scope;
  input: Json;
  enteredAt: string;
  retryCount: number;
}

/** How a state ended: what it leaves behind and where it leads. */
export interface Outcome {
  output: Json;
  variables: [string, { value: Json; bytes: number }][];
  next: string | null;
}

/** Runs an execution to its end. Never rejects. */
export async function runExecution(execution: Execution, timeoutSeconds: number | null): Promise<ExecutionResult> {
  if (timeoutSeconds !== null) {
    void execution.around.clock.sleep(timeoutSeconds * 1000, execution.signal).then(() => {
      execution.end({
        status: "TIMED_OUT",
        error: errorNames.timeout,
        cause: `the execution took longer than ${timeoutSeconds} s`,
      });
    });
  }
  try {
    const scope = { execution, flow: execution.flow, variables: {}, item: null, signal: execution.signal };
    execution.end({ status: "SUCCEEDED", output: await runFlow(scope, execution.input) });
  } catch (error) {
    const failure = asFailure(error);
    execution.end({ status: "FAILED", error: failure.error, cause: failure.reason });
  }
  return execution.result;
}

/** @throws StateFailure of the state that failed it; Interrupted */
export async function runFlow(scope: Scope, input: Json): Promise<Json> {
  let name = scope.flow.startAt;
  let data = input;
  for (;;) {
    const outcome = await visit(scope, scope.flow.states.get(name) as State, data);
    if (outcome.next === null) return outcome.output;
    data = outcome.output;
    name = outcome.next;
  }
}

async function visit(scope: Scope, state: State, input: Json): Promise<Outcome> {
  const { execution } = scope;
  const { clock, random } = execution.around;
  const iteration = scope.item?.Index ?? null;
  if (scope.signal.aborted) throw new Interrupted();
  execution.statesEntered += 1;
  execution.count(1);
  execution.tell({ type: "StateEntered", state: state.name, iteration, input });
  const now: Visit = { scope, input, enteredAt: new Date(clock.now()).toISOString(), retryCount: 0 };
  const used: number[] = [];
  for (;;) {
    try {
      return leave(scope, state, await attempt(now, state));
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      // It ended while this state did its work: what came of that is nobody's any more.
      if (scope.signal.aborted) throw new Interrupted();
      const failure = asFailure(error);
      const faults = "catch" in state ? state : null;
      const fail = {
        type: "StateFailed",
        state: state.name,
        iteration,
        error: failure.error,
        cause: failure.reason,
      } as const;

      const seconds = faults === null ? null : retryDelay(faults.retry, used, failure.error, random);
      if (seconds !== null) {
        execution.tell({ ...fail, followedBy: { kind: "retry", seconds } });
        now.retryCount += 1;
        execution.retries += 1;
        await pause(clock, scope.signal, seconds * 1000);
        continue;
      }
      const catcher = faults === null ? null : catcherFor(faults.catch, failure.error);
      if (catcher === null) {
        execution.tell({ ...fail, followedBy: { kind: "fail" } });
        throw failure;
      }
      execution.tell({ ...fail, followedBy: { kind: "catch", next: catcher.next } });
      const errorOutput: JsonObject = { Error: failure.error, Cause: failure.reason };
      const bindings = bindingsOf(now, state.name, null);
      (bindings.states as Record<string, unknown>).errorOutput = errorOutput;
      return leave(
        scope,
        state,
        await conclude(bindings, catcher, plain(errorOutput, "errorOutput").value, catcher.next),
      );
    }
  }
}

function leave(scope: Scope, state: State, outcome: Outcome): Outcome {
  if (scope.signal.aborted) throw new Interrupted();
  for (const [name, { value }] of outcome.variables) scope.variables[name] = value;
  const { next, output } = outcome;
  scope.execution.count(1);
  scope.execution.tell({ type: "StateExited", state: state.name, iteration: scope.item?.Index ?? null, output, next });
  return outcome;
}

/** One try of a state. */
async function attempt(visit: Visit, state: State): Promise<Outcome> {
  switch (state.type) {
    case "Task":
      return runTask(visit, state);
    case "InlineMap":
    case "DistributedMap":
      return runMap(visit, state);
    case "Pass":
      return conclude(bindingsOf(visit, state.name, null), state, visit.input, state.next);
    case "Succeed":
      return conclude(bindingsOf(visit, state.name, null), state, visit.input, null);
    case "Wait": {
      const bindings = bindingsOf(visit, state.name, null);
      const seconds = whole((await evaluate(state.seconds, bindings, "Seconds")).value, "Seconds", 0, limits.seconds);
      await pause(visit.scope.execution.around.clock, visit.scope.signal, seconds * 1000);
      return conclude(bindings, state, visit.input, state.next);
    }
    case "Choice": {
      const bindings = bindingsOf(visit, state.name, null);
      for (const [index, rule] of state.rules.entries()) {
        const what = `Choices[${index}].Condition`;
        const { value } = await evaluate(rule.condition, bindings, what);
        if (typeof value !== "boolean") throw unexpected(what, value, "true or false");
        if (value) return conclude(bindings, rule, visit.input, rule.next);
      }
      if (state.default === null)
        throw new StateFailure(errorNames.noChoice, `no rule of ${state.name} holds and it has no Default`);
      return conclude(bindings, state, visit.input, state.default);
    }
    case "Fail": {
      const bindings = bindingsOf(visit, state.name, null);
      const [error, cause] = [
        await evaluate(state.error, bindings, "Error"),
        await evaluate(state.cause, bindings, "Cause"),
      ];
      if (typeof error.value !== "string") throw unexpected("Error", error.value, "a string");
      if (typeof cause.value !== "string") throw unexpected("Cause", cause.value, "a string");
      throw new StateFailure(error.value, cause.value);
    }
  }
}

/** What expressions of a state see at this moment. */
export function bindingsOf(visit: Visit, state: string, taskToken: string | null, item = visit.scope.item): Bindings {
  const { scope, input, enteredAt, retryCount } = visit;
  const { execution } = scope;
  const context: Record<string, unknown> = {
    Execution: execution.context,
    State: { Name: state, EnteredTime: enteredAt, RetryCount: retryCount },
    StateMachine: { Id: execution.arn, Name: execution.machine },
  };
  if (taskToken !== null) context.Task = { Token: taskToken };
  if (item !== null) context.Map = { Item: item };
  return { ...scope.variables, states: { input, context } };
}

/** The same view with the state's result in it. */
export function withResult(bindings: Bindings, result: Json): Bindings {
  return { ...bindings, states: { ...(bindings.states as object), result } };
}

/**
 * Evaluates Assign and Output together from the entry data and checks the limits.
 * @param natural the output of a state that names none
 */
export async function conclude(
  bindings: Bindings,
  results: Results,
  natural: Json,
  next: string | null,
): Promise<Outcome> {
  const variables = results.assign.length === 0 ? [] : await evaluateEntries(results.assign, bindings, "Assign");
  const output =
    results.output === null ? plain(natural, "Output") : await evaluate(results.output, bindings, "Output");
  if (variables.length > 0) checkVariables(bindings, variables);
  return { output: withinLimit(output, "Output"), variables, next };
}

function checkVariables(bindings: Bindings, variables: Outcome["variables"]): void {
  let together = 0;
  for (const [name, data] of variables) {
    withinLimit(data, `Assign: $${name}`);
    together += data.bytes;
  }
  withinLimit({ value: null, bytes: together }, "Assign, all its variables together,");
  const changed = new Set(variables.map(([name]) => name));
  for (const [name, value] of Object.entries(bindings)) {
    if (name !== "states" && !changed.has(name)) together += plain(value, name).bytes;
  }
  if (together > limits.variableBytes) {
    throw new StateFailure(
      errorNames.dataLimit,
      `all variables together are ${together} bytes; at most ${limits.variableBytes} are allowed`,
    );
  }
}

/** An error of ours or of the outside as a failure; what is neither is a fault of the interpreter itself. */
function asFailure(error: unknown): StateFailure {
  if (error instanceof StateFailure) return error;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new StateFailure(errorNames.runtime, text);
}

/** @throws StateFailure States.QueryEvaluationError unless the value is an integer in the range */
export function whole(value: Json, what: string, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw unexpected(what, value, `an integer from ${least} to ${most}`);
}

export function unexpected(what: string, value: Json, expected: string): StateFailure {
  return new StateFailure(errorNames.query, `${what} is ${JSON.stringify(value).slice(0, 200)}; expected ${expected}`);
}
