/**
 * Runs the States Language files of this house on one machine, as Step Functions runs them in the cloud.
 *
 *     const workflow = new StatesInterpreter({
 *       definitions: [{ name: "attempt", file: "lib/attempt/attempt.asl.json", definition: text }, ...],
 *       placeholders: { PrepareFunction: "prepare", AttemptMachine: "attempt", ... },  // ${Name} in the files
 *       resources,        // what tasks call: see resources.ts
 *       clock, random,    // ports; tests hand in a VirtualClock
 *       onEvent,          // optional: history, event by event
 *     });
 *     const handle = await workflow.start("attempt", name, line);
 *     const result = await handle.result;   // {status, output | error and cause, statesEntered, retries}
 *     await workflow.tokens.succeed(token, report);   // TaskTokens: "accepted" | "closed"
 *     await workflow.stop("attempt", name, "Proctor.Cancelled", "the operator stopped the sweep");
 *
 * `admit` says when tasks may start executions of a machine: so a sweep is drained, and runs so many attempts at once.
 *
 * A machine is named in `startExecution.sync:2` by its name or by an ARN that ends in `:<name>`. Errors that handlers
 * throw are named by the Error's `name`; a task's cause is {"errorType", "errorMessage"} as JSON. An execution that has
 * ended leaves its name behind, which is refused from then on, and nothing else.
 *
 * What is not as in the cloud: the cause of a failed function has no stack; a function goes on after its task timed out
 * only if it does not heed the signal; an answer to a token that is cut to 256 and 32,768 characters of error and cause
 * is refused there; names are remembered as long as the process lives.
 */

import { isDeepStrictEqual } from "node:util";
import type { Clock, ExecutionHandle, Random, Workflow } from "../../ports.ts";
import { errorNames, fromOutside, type Json, limits, nameProblem, StateFailure } from "./data.ts";
import { Execution, type ExecutionResult, type Surroundings } from "./execution.ts";
import { DefinitionError, type DefinitionProblem, type DefinitionSource, loadMachine } from "./load.ts";
import type { Machine } from "./machine.ts";
import type { HistoryEvent, Resources } from "./resources.ts";
import { runExecution } from "./run.ts";
import { TokenTable } from "./tokens.ts";

export interface InterpreterOptions {
  definitions: readonly DefinitionSource[];
  placeholders: Record<string, string>;
  resources: Resources;
  clock: Clock;
  random: Random;
  /**
   * Asked before a task starts an execution of a machine; without it all may. What it resolves to is called when that
   * execution has ended. Null fails the task with Proctor.NotAdmitted and leaves no trace, so that the name can be used
   * later. `signal` fires when the task is given up.
   */
  admit?: (machine: string, signal: AbortSignal) => Promise<(() => void) | null>;
  /** Called at once for each event; what it throws would end the execution, so it must not throw. */
  onEvent?: (event: HistoryEvent) => void;
}

/** Why an execution was not started: `error` is the name that a Catch would see, such as StepFunctions.ExecutionAlreadyExistsException. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
  constructor(
    readonly error: string,
    message: string,
  ) {
    super(message);
  }
}

export interface LocalExecutionHandle extends ExecutionHandle {
  result: Promise<ExecutionResult>;
}

export class StatesInterpreter implements Workflow {
  /** Answers to task tokens. */
  readonly tokens: TokenTable;
  readonly #machines = new Map<string, Machine>();
  /** By machine and name. */
  readonly #running = new Map<string, Execution>();
  readonly #ended = new Set<string>();
  readonly #around: Surroundings;

  /** @throws DefinitionError with the problems of all files */
  constructor(options: InterpreterOptions) {
    const { clock, random, resources } = options;
    this.tokens = new TokenTable(clock, random);
    const problems: DefinitionProblem[] = [];
    for (const source of options.definitions) {
      try {
        this.#machines.set(source.name, loadMachine(source, options.placeholders, { clock, random }));
      } catch (error) {
        if (!(error instanceof DefinitionError)) throw error;
        problems.push(...error.problems);
      }
    }
    if (problems.length > 0) throw new DefinitionError(problems);
    this.#around = {
      clock,
      random,
      resources,
      tokens: this.tokens,
      onEvent: options.onEvent ?? null,
      admit: options.admit ?? null,
      startExecution: (machine, name, input) => this.#start(machine, name, input),
    };
  }

  /** Executions that run, without the children of Distributed Maps. */
  get running(): number {
    return this.#running.size;
  }

  /** @throws StartRefused unknown machine, bad name, input over 256 KiB, a name that ended or runs with another input */
  async start(machine: string, name: string, input: unknown): Promise<LocalExecutionHandle> {
    try {
      return { name, result: this.#start(machine, name, fromOutside(input)).result };
    } catch (error) {
      if (error instanceof StateFailure) throw new StartRefused(error.error, error.reason);
      throw error;
    }
  }

  /** Aborts an execution and those that it waits for; no Catch runs. Nothing happens when it is unknown or has ended. */
  async stop(machine: string, name: string, error: string, cause: string): Promise<void> {
    this.#running.get(`${machine}:${name}`)?.end({ status: "ABORTED", error, cause });
  }

  /** Aborts all that runs. */
  async close(error: string, cause: string): Promise<void> {
    for (const execution of this.#running.values()) execution.end({ status: "ABORTED", error, cause });
  }

  #start(machineName: string, name: string, input: { value: Json; bytes: number }): Execution {
    const machine = this.#machines.get(machineName);
    if (machine === undefined) throw new StateFailure(errorNames.noMachine, `there is no state machine ${machineName}`);
    const wrongName = nameProblem(name);
    if (wrongName !== null)
      throw new StateFailure(errorNames.invalidName, `the execution's name ${JSON.stringify(name)} ${wrongName}`);
    if (input.bytes > limits.dataBytes) {
      throw new StateFailure(
        errorNames.invalidInput,
        `the input is ${input.bytes} bytes of JSON; at most ${limits.dataBytes} are allowed`,
      );
    }
    const key = `${machineName}:${name}`;
    const running = this.#running.get(key);
    if (running !== undefined && isDeepStrictEqual(running.input, input.value)) return running;
    if (running !== undefined || this.#ended.has(key)) {
      const why = running === undefined ? "has ended" : "runs with another input";
      throw new StateFailure(errorNames.exists, `an execution ${name} of ${machineName} ${why}`);
    }
    const execution = new Execution(this.#around, machineName, name, machine.flow, input.value);
    this.#running.set(key, execution);
    execution.onEnd = () => {
      this.#running.delete(key);
      this.#ended.add(key);
    };
    void runExecution(execution, machine.timeoutSeconds);
    return execution;
  }
}

export { DefinitionError, type DefinitionProblem, type DefinitionSource, loadMachine } from "./load.ts";
export type { Caller, ChildResult, HistoryEvent, Resources, ResultSink } from "./resources.ts";
export type { ExecutionResult };
