/**
 * A world for the attempt machine in virtual time: its real functions on stores in memory, and in place of executors,
 * supervisors and simulators a script that says what each does. Faults are put between the machine and all of them.
 */

import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import { compactHandler } from "../../lambdas/compact.ts";
import { executionEndedHandler } from "../../lambdas/execution-ended.ts";
import { openTurnHandler } from "../../lambdas/open-turn.ts";
import { preflightHandler } from "../../lambdas/preflight.ts";
import { prepareHandler } from "../../lambdas/prepare.ts";
import { recordHandler } from "../../lambdas/record.ts";
import { taskStoppedHandler } from "../../lambdas/task-stopped.ts";
import { attemptExecutionName, machineDefinitions, machinePlaceholders } from "../../lib/attempt/machines.ts";
import { guardScores } from "../../lib/platform/local/guarded-scores.ts";
import {
  type ExecutionResult,
  type HistoryEvent,
  StatesInterpreter,
} from "../../lib/platform/local/interpreter/interpreter.ts";
import { VirtualClock } from "../../lib/platform/local/virtual-clock.ts";
import type { MachineName, Role } from "../../lib/platform/ports.ts";
import { type ManifestLine, manifestLine } from "../../lib/sweep/manifest-line.ts";
import { aLine } from "./manifest-line.ts";
import { MemoryObjects } from "./memory-objects.ts";
import { MemoryScores } from "./memory-scores.ts";
import { publishForTest } from "./published.ts";
import { countingRandom } from "./random.ts";
import { ScriptedExecutors, type TurnScript } from "./scripted-executors.ts";
import { type LaunchFaultScript, launchScripted } from "./scripted-launcher.ts";
import { type RoleScript, scriptedRoles } from "./scripted-roles.ts";

/** What happens in one turn: the executor's part, then the supervisor's and the simulator's. */
export type Turn = TurnScript & RoleScript;

/** Errors that a call ends with, by when it strikes: before the service did anything, or after, its answer lost. */
export interface Fault {
  /** The state whose call is struck. */
  state: string;
  /** The how-manyth call of that state, from 1; null: each. */
  call: number | null;
  when: "before" | "after";
  error: string;
}

export interface WorldOptions {
  line?: ManifestLine;
  /** Turns of each try; the last try's repeat. */
  tries: Turn[][];
  faults?: Fault[];
  /** What runTask does on each launch, in order; then it starts. */
  launches?: LaunchFaultScript[];
  /** Replaces the answer of a function, garbage say. */
  answer?: (state: string, answer: unknown) => unknown;
  capUsd?: number | null;
  /** Machines that are loaded; the attempt's alone if not given. */
  machines?: MachineName[];
  onEvent?: (event: HistoryEvent, world: AttemptWorld) => void;
}

export const timing = { turnMarginSeconds: 600, heartbeatSeconds: 300, leaseSeconds: 259_200 };

export class AttemptWorld {
  readonly clock = new VirtualClock();
  readonly objects = new MemoryObjects();
  readonly scores = new MemoryScores();
  readonly executors: ScriptedExecutors;
  readonly machine: StatesInterpreter;
  readonly line: ManifestLine;
  readonly history: HistoryEvent[] = [];
  /** Each call of a service: the state that made it, and the service's name. */
  readonly calls: { state: string; service: string; request: unknown }[] = [];
  readonly #random = countingRandom();
  readonly #struck = new Map<string, number>();
  readonly #inputs = new Map<string, ManifestLine>();
  readonly #endings: Promise<unknown>[] = [];
  #launches = 0;

  constructor(readonly options: WorldOptions) {
    const { clock } = this;
    this.line = options.line ?? aLine();
    this.executors = new ScriptedExecutors({
      clock,
      random: this.#random,
      objects: this.objects,
      turnsOf: (tryNumber) => options.tries[Math.min(tryNumber, options.tries.length) - 1] ?? [],
    });
    const handlers = this.#handlers();
    this.machine = new StatesInterpreter({
      definitions: (options.machines ?? ["attempt"]).map((name) => ({
        name,
        file: `lib/attempt/${name}.asl.json`,
        definition: JSON.stringify(machineDefinitions[name]),
      })),
      placeholders: placeholders(),
      clock,
      random: this.#random,
      resources: {
        invoke: (name, event, caller) =>
          this.#call(caller.state, name, event, async () => {
            const handler = handlers[name];
            if (!handler) throw new Error(`no function ${name}`);
            const answer = await handler(event);
            return options.answer ? options.answer(caller.state, answer) : answer;
          }),
        runTask: (request, caller) =>
          this.#call(caller.state, "runTask", request, async () => {
            this.#launches += 1;
            return launchScripted(this.executors, request, options.launches?.[this.#launches - 1] ?? "starts");
          }),
        stopTask: (request, caller) =>
          this.#call(caller.state, "stopTask", request, async () => this.executors.stopTask(request)),
        readItems: ({ bucket, key }) => this.#items(bucket, key),
        openResults: async ({ prefix }) => ({ add: () => {}, close: async () => ({ key: `${prefix}/manifest.json` }) }),
      },
      onEvent: (event) => {
        this.history.push(event);
        this.#follow(event);
        options.onEvent?.(event, this);
      },
    });
    const tokens = this.machine.tokens;
    const stopped = taskStoppedHandler({ scores: this.scoresOf("reaper"), tokens });
    this.executors.connect(tokens, async (event) => void (await stopped(event)));
  }

  async prepareStores(): Promise<this> {
    const { sweep, generation } = this.line;
    publishForTest(this.objects, this.line);
    await this.scores.startGeneration(generation - 1, {
      sweep,
      generation,
      digest: "s".repeat(64),
      fixed: "",
      capUsd: this.options.capUsd ?? null,
      planned: 1,
      controller: null,
    });
    return this;
  }

  scoresOf(role: Role) {
    return guardScores(this.scores, role);
  }

  /** Runs the attempt to its end, and what follows on it. */
  async run(line: ManifestLine = this.line): Promise<ExecutionResult> {
    const name = attemptExecutionName(line.attempt, line.generation);
    const handle = await this.machine.start("attempt", name, line);
    const result = await handle.result;
    await this.settled();
    return result;
  }

  /** All ends of executions have been looked after. */
  async settled(): Promise<void> {
    await Promise.all(this.#endings);
  }

  /** As the event rule does: an attempt's execution that did not succeed is told to execution-ended. */
  #follow(event: HistoryEvent): void {
    if (event.machine !== "attempt") return;
    if (event.type === "ExecutionStarted") this.#inputs.set(event.execution, manifestLine.parse(event.input));
    if (event.type !== "ExecutionEnded" || event.status === "SUCCEEDED") return;
    const line = this.#inputs.get(event.execution) ?? null;
    this.#endings.push(this.executionEnded(line, event.execution, event));
  }

  async executionEnded(
    line: ManifestLine | null,
    name: string,
    ended: { status: string; error: string | null; cause: string | null },
  ): Promise<unknown> {
    const { status, error, cause } = ended;
    return executionEndedHandler({
      closeLeftOpen: closeLeftOpen({
        store: this.objects.as({ role: "record" }),
        scores: this.scoresOf("record"),
        clock: this.clock,
      }),
      scores: this.scoresOf("reaper"),
      clock: this.clock,
      tokens: this.machine.tokens,
      stopExecutors: async (startedBy) => this.executors.stopStartedBy(startedBy),
    })({ v: 1, name, status, error, cause, line });
  }

  rows() {
    return this.scores.tries(this.line.sweep, this.line.attempt);
  }

  /** States that were entered in executions of the attempt machine, in order. */
  entered(): string[] {
    return this.history.flatMap((event) => (event.type === "StateEntered" ? [event.state] : []));
  }

  async #call(state: string, service: string, request: unknown, work: () => Promise<unknown>): Promise<unknown> {
    this.calls.push({ state, service, request });
    const number = (this.#struck.get(state) ?? 0) + 1;
    this.#struck.set(state, number);
    const fault = this.options.faults?.find((one) => one.state === state && (one.call === null || one.call === number));
    if (fault?.when === "before") throw named(fault.error);
    const answer = await work();
    if (fault) throw named(fault.error);
    return answer;
  }

  async *#items(bucket: string, key: string): AsyncIterable<string> {
    if (bucket !== "results") throw new Error(`no items in ${bucket}`);
    const fault = this.options.faults?.find((one) => one.state === "Attempts");
    if (fault) throw named(fault.error);
    yield this.objects.text({ bucket: "results", key }) ?? "";
  }

  #handlers(): Record<string, (event: unknown) => Promise<unknown>> {
    const { clock, objects } = this;
    const random = this.#random;
    const as = (role: Exclude<Role, "turn-grant">) => ({ store: objects.as({ role }), scores: this.scoresOf(role) });
    const roles = scriptedRoles({
      objects,
      turnsOf: (tryNumber) => this.options.tries[Math.min(tryNumber, this.options.tries.length) - 1] ?? [],
    });
    return {
      PrepareFunction: prepareHandler({
        ...as("prepare"),
        clock,
        random,
        closeLeftOpen: closeLeftOpen({ ...as("record"), clock }),
        imageOf: () => "bundle-1",
        ...timing,
      }),
      OpenTurnFunction: openTurnHandler({
        ...as("open-turn"),
        clock,
        random,
        secrets: { get: async () => null },
        grantFor: async () => ({ kind: "local", objects: "/objects", tokens: "/tokens.sock" }),
        turnMarginSeconds: timing.turnMarginSeconds,
      }),
      SuperviseFunction: roles.supervise,
      SimulateFunction: roles.simulate,
      RecordFunction: recordHandler({ ...as("record"), clock }),
      PreflightFunction: preflightHandler(as("preflight")),
      CompactFunction: compactHandler(as("compact")),
    };
  }
}

export async function attemptWorld(options: WorldOptions): Promise<AttemptWorld> {
  return new AttemptWorld(options).prepareStores();
}

function placeholders(): Record<string, string> {
  const names = Object.fromEntries(
    Object.values(machinePlaceholders).flatMap((list) => list.map((name) => [name, name])),
  );
  return {
    ...names,
    TaskDefinitions: "mini=mini:1 null=null:1",
    Subnets: "subnet-a subnet-b",
    AttemptMachine: "attempt",
    LaneMachine: "lane",
    ResultsBucket: "results",
  };
}

function named(error: string): Error {
  const made = new Error(`injected: ${error}`);
  made.name = error;
  return made;
}
