/** Task states: what each resource is called with, how its answer looks, and how its errors are named. */
import { bounded, Interrupted } from "./bounded.ts";
import {
  errorNames,
  fromOutside,
  isObject,
  type Json,
  type JsonObject,
  limits,
  StateFailure,
  withinLimit,
} from "./data.ts";
import type { Execution } from "./execution.ts";
import { type Bindings, evaluate, type Template } from "./expressions.ts";
import type { TaskState } from "./machine.ts";
import type { Caller } from "./resources.ts";
import { bindingsOf, conclude, type Outcome, unexpected, type Visit, whole, withResult } from "./run.ts";

/** One try of a task. @throws StateFailure by the name of what went wrong; Interrupted */
export async function runTask(visit: Visit, state: TaskState): Promise<Outcome> {
  const { execution, signal: outer } = visit.scope;
  const { around } = execution;
  const token = state.kind === "invokeWithToken" ? around.tokens.issue() : null;
  const bindings = bindingsOf(visit, state.name, token);
  const request = withinLimit(await evaluate(state.arguments, bindings, "Arguments"), "Arguments");
  if (!isObject(request)) throw unexpected("Arguments", request, "an object");
  const timeout = await secondsOf(state.timeoutSeconds, bindings, "TimeoutSeconds");
  const heartbeat = await secondsOf(state.heartbeatSeconds, bindings, "HeartbeatSeconds");

  // Scheduled, started, submitted where an answer comes later, ended.
  execution.count(state.kind === "invokeWithToken" || state.kind === "startExecution" ? 4 : 3);
  const limit =
    timeout === null
      ? null
      : {
          ms: timeout * 1000,
          error: () => new StateFailure(errorNames.timeout, `${state.name} took longer than ${timeout} s`),
        };
  const result = await bounded(around.clock, outer, limit, (signal) => {
    const caller: Caller = { machine: execution.machine, execution: execution.name, state: state.name, signal };
    switch (state.kind) {
      case "invoke":
        return invoke(execution, request, caller);
      case "invokeWithToken":
        return invokeWithToken(execution, request, caller, token as string, heartbeat);
      case "runTask":
        return called(() => around.resources.runTask(copyOf(request), caller));
      case "stopTask":
        return called(() => around.resources.stopTask(copyOf(request), caller));
      case "startExecution":
        return startExecution(execution, request, signal);
    }
  });
  const output = withinLimit(result, `the result of ${state.name}`);
  return conclude(withResult(bindings, output), state, output, state.next);
}

type Data = { value: Json; bytes: number };

async function secondsOf(template: Template | null, bindings: Bindings, what: string): Promise<number | null> {
  if (template === null) return null;
  return whole((await evaluate(template, bindings, what)).value, what, 1, limits.seconds);
}

/** Calls what lies outside: its answer as JSON, its errors by name. */
async function called(call: () => Promise<unknown>): Promise<Data> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    throw outsideFailure(error);
  }
  try {
    return fromOutside(answer);
  } catch (error) {
    throw new StateFailure(errorNames.taskFailed, `an answer has no JSON: ${String(error)}`);
  }
}

/** The cause has the form that Lambda gives it, without the stack. */
function outsideFailure(error: unknown): StateFailure {
  if (error instanceof StateFailure) return error;
  if (!(error instanceof Error)) return new StateFailure(errorNames.taskFailed, cause("Unknown", String(error)));
  return new StateFailure(error.name, cause(error.name, error.message));
}

function cause(errorType: string, errorMessage: string): string {
  return JSON.stringify({ errorType, errorMessage }).slice(0, 32_768);
}

/** Data on its way out: whoever gets it may change it. */
function copyOf(value: Json): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

function functionOf(request: JsonObject): string {
  if (typeof request.FunctionName === "string") return request.FunctionName;
  throw unexpected("Arguments.FunctionName", request.FunctionName ?? null, "a string");
}

async function invoke(execution: Execution, request: JsonObject, caller: Caller): Promise<Data> {
  const name = functionOf(request);
  const { value, bytes } = await called(() =>
    execution.around.resources.invoke(name, copyOf(request.Payload ?? {}), caller),
  );
  const response = { ExecutedVersion: "$LATEST", Payload: value, StatusCode: 200 };
  return { value: response, bytes: bytes + envelopeBytes };
}
const envelopeBytes = JSON.stringify({ ExecutedVersion: "$LATEST", Payload: null, StatusCode: 200 }).length - 4;

/** The function's answer means nothing, its failure is the task's; else the token's answer counts, even if it is first. */
function invokeWithToken(
  execution: Execution,
  request: JsonObject,
  caller: Caller,
  token: string,
  heartbeat: number | null,
): Promise<Data> {
  const name = functionOf(request);
  const { resources, tokens } = execution.around;
  return new Promise((resolve, reject) => {
    tokens.wait(token, heartbeat, caller.signal).then(resolve, reject);
    called(() => resources.invoke(name, copyOf(request.Payload ?? {}), caller)).catch(reject);
  });
}

/** `.sync:2`: waits for the other execution, which ends with this task. */
async function startExecution(execution: Execution, request: JsonObject, signal: AbortSignal): Promise<Data> {
  const { StateMachineArn: arn, Name: name, Input: input } = request;
  if (typeof arn !== "string") throw unexpected("Arguments.StateMachineArn", arn ?? null, "a string");
  if (name !== undefined && typeof name !== "string") throw unexpected("Arguments.Name", name, "a string");
  const machine = arn.slice(arn.lastIndexOf(":") + 1);
  const { around } = execution;
  const release = around.admit === null ? () => undefined : await around.admit(machine, signal);
  if (signal.aborted) {
    release?.();
    throw new Interrupted();
  }
  if (release === null) {
    throw new StateFailure("Proctor.NotAdmitted", `no further execution of ${machine} is started`);
  }
  try {
    const child = around.startExecution(machine, name ?? around.tokens.issue(), fromOutside(input ?? {}));
    return await resultOf(execution, child, signal);
  } finally {
    release();
  }
}

async function resultOf(execution: Execution, child: Execution, signal: AbortSignal): Promise<Data> {
  execution.children.add(child);
  const stop = (): void =>
    child.end({ status: "ABORTED", error: "", cause: "the execution that waited for this one stopped waiting" });
  signal.addEventListener("abort", stop, { once: true });
  const result = await child.result;
  signal.removeEventListener("abort", stop);
  execution.children.delete(child);
  if (signal.aborted) throw new Interrupted();

  const described: JsonObject = {
    ExecutionArn: child.id,
    Input: child.input,
    InputDetails: { Included: true },
    Name: child.name,
    StartDate: child.startedAt,
    StateMachineArn: child.arn,
    Status: result.status,
    StopDate: child.endedAt,
  };
  if (result.status === "SUCCEEDED")
    return fromOutside({ ...described, Output: result.output, OutputDetails: { Included: true } });
  const failed = { ...described, Error: result.error, Cause: result.cause };
  const text = JSON.stringify(failed);
  // A cause has 32,768 characters at most; cut in the middle it would be no JSON, so the input goes.
  throw new StateFailure(
    errorNames.taskFailed,
    text.length <= 32_768 ? text : JSON.stringify({ ...failed, Input: null, InputDetails: { Included: false } }),
  );
}
