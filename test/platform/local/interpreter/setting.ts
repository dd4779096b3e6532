/** An interpreter in virtual time, with resources that a test fills in, and its history. */

import type { ExecutionResult } from "../../../../lib/platform/local/interpreter/execution.ts";
import {
  type HistoryEvent,
  type LocalExecutionHandle,
  type Resources,
  StatesInterpreter,
} from "../../../../lib/platform/local/interpreter/interpreter.ts";
import { VirtualClock } from "../../../../lib/platform/local/virtual-clock.ts";
import type { Random } from "../../../../lib/platform/ports.ts";

/** Counts up instead of drawing: every byte string is new, `unit` is what the test says. */
export class ScriptedRandom implements Random {
  units: number[] = [];
  #count = 0;
  bytes(count: number): Uint8Array {
    const bytes = Buffer.alloc(count);
    bytes.writeUInt32BE(++this.#count, count - 4);
    return bytes;
  }
  unit(): number {
    return this.units.shift() ?? 0.5;
  }
}

export const start = Date.UTC(2026, 0, 1);

export interface Setting {
  workflow: StatesInterpreter;
  clock: VirtualClock;
  random: ScriptedRandom;
  history: HistoryEvent[];
  /** States as they were entered, `name` or `name#iteration`. */
  entered(execution?: string): string[];
  run(input?: unknown, name?: string): Promise<ExecutionResult>;
  begin(input?: unknown, name?: string): Promise<LocalExecutionHandle>;
  /** Seconds of virtual time since the beginning. */
  seconds(): number;
}

type Functions = Record<string, (event: never, signal: AbortSignal) => unknown>;

/** @param states the states of the machine `main`, which begins with the first of them */
export function setting(
  states: Record<string, unknown>,
  options: {
    functions?: Functions;
    resources?: Partial<Resources>;
    /** Fields of the machine beside StartAt and States. */
    machine?: Record<string, unknown>;
    /** Further machines: name to states. */
    others?: Record<string, Record<string, unknown>>;
    placeholders?: Record<string, string>;
    admit?: NonNullable<ConstructorParameters<typeof StatesInterpreter>[0]["admit"]>;
    /** Beside the history that is always kept. */
    onEvent?: (event: HistoryEvent) => void;
  } = {},
): Setting {
  const clock = new VirtualClock(start);
  const random = new ScriptedRandom();
  const history: HistoryEvent[] = [];
  const refuse = (what: string) => (): never => {
    throw new Error(`the test calls no ${what}`);
  };
  const resources: Resources = {
    async invoke(name, event, { signal }) {
      const handler = options.functions?.[name];
      if (handler === undefined)
        throw Object.assign(new Error(`no function ${name}`), { name: "Lambda.ResourceNotFoundException" });
      return handler(event as never, signal);
    },
    runTask: refuse("runTask"),
    stopTask: refuse("stopTask"),
    readItems: refuse("readItems"),
    openResults: refuse("openResults"),
    ...options.resources,
  };
  const workflow = new StatesInterpreter({
    definitions: [
      { name: "main", file: "main.asl.json", definition: machine(states, options.machine) },
      ...Object.entries(options.others ?? {}).map(([name, other]) => ({
        name,
        file: `${name}.asl.json`,
        definition: machine(other),
      })),
    ],
    placeholders: options.placeholders ?? {},
    resources,
    clock,
    random,
    ...(options.admit === undefined ? {} : { admit: options.admit }),
    onEvent: (event) => {
      history.push(event);
      options.onEvent?.(event);
    },
  });
  const begin = (input: unknown = {}, name = "one"): Promise<LocalExecutionHandle> =>
    workflow.start("main", name, input);
  return {
    workflow,
    clock,
    random,
    history,
    begin,
    entered: (execution = "one") =>
      history.flatMap((event) => {
        if (event.type !== "StateEntered" || event.execution !== execution) return [];
        return [event.iteration === null ? event.state : `${event.state}#${event.iteration}`];
      }),
    run: async (input, name) => (await begin(input, name)).result,
    seconds: () => (clock.now() - start) / 1000,
  };
}

export function machine(
  states: Record<string, unknown>,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return { QueryLanguage: "JSONata", StartAt: Object.keys(states)[0], States: states, ...fields };
}

/** A Task that invokes a function with the state's input. */
export function invoke(name: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const end = "Next" in fields ? {} : { End: true };
  return {
    Type: "Task",
    Resource: "arn:aws:states:::lambda:invoke",
    Arguments: { FunctionName: name, Payload: "{% $states.input %}" },
    ...end,
    ...fields,
  };
}

/** An error with the name that a Retry or a Catch sees. */
export function named(name: string, message = "made by the test"): Error {
  return Object.assign(new Error(message), { name });
}

/** A placeholder as definitions write it. */
export function placeholder(name: string): string {
  return `\${${name}}`;
}
