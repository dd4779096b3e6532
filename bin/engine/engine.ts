/**
 * One machine as a lab: the interpreter with our state machines, the functions, a launcher, and the sockets on which
 * runners answer and scripted models are served. It decides nothing; it only puts together.
 */

import { taskStopped } from "../../lambdas/task-stopped.ts";
import { adapters } from "../../lib/agents/registry.ts";
import {
  launchedAnswer,
  launchFailure,
  launchSpecOf,
  runTaskRequest,
  stopTaskRequest,
} from "../../lib/attempt/launch-request.ts";
import { machineDefinitions } from "../../lib/attempt/machines.ts";
import { createChecksPool } from "../../lib/platform/local/checks-pool.ts";
import {
  type HistoryEvent,
  type Resources,
  StatesInterpreter,
} from "../../lib/platform/local/interpreter/interpreter.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import { startScriptedModels } from "../../lib/platform/local/scripted-models.ts";
import { startTokenServer } from "../../lib/platform/local/token-server.ts";
import { createModelClient } from "../../lib/platform/openai-client.ts";
import type { MachineName } from "../../lib/platform/ports.ts";
import {
  type Clock,
  LaunchError,
  type Launcher,
  type ModelClient,
  type Random,
  type Secrets,
} from "../../lib/platform/ports.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { tell } from "../terminal-text.ts";
import { type Functions, functionNames, localFunctions } from "./functions.ts";
import { Launches } from "./launches.ts";
import { mapResults } from "./map-results.ts";
import { Slots } from "./slots.ts";
import { removeDeadSockets, type SweepSockets } from "./sockets.ts";

export interface EngineOptions {
  runs: Runs;
  sockets: SweepSockets;
  clock: Clock;
  random: Random;
  secrets: Secrets;
  /** Attempts at the same time, over all lanes. */
  concurrency: number;
  /** Opens the launcher, once the socket for its runners' answers is there. */
  openLauncher(at: { objects: string; tokens: string; secrets: Secrets }): Promise<Launcher>;
  /** The attempt of this execution is over: its row stands. `settled` and `close` wait for what it does. */
  onAttemptEnded?(line: ManifestLine): Promise<void>;
  /** Every event of every execution, for measurements. */
  onEvent?(event: HistoryEvent): void;
}

/** Names that the placeholders of the machines' files stand for on one machine, beside the functions'. */
const localNames = {
  Cluster: "local",
  Subnets: "local",
  SecurityGroup: "local",
  AttemptMachine: "attempt",
  LaneMachine: "lane",
  ResultsBucket: "results",
} as const;

export class Engine {
  readonly workflow: StatesInterpreter;
  readonly launcher: Launcher;
  readonly functions: Functions;
  /** Attempts that were started and have not ended. */
  readonly running = new Map<string, ManifestLine>();
  readonly #closers: (() => Promise<void>)[];
  readonly #afterwards = new Set<Promise<unknown>>();
  readonly #options: EngineOptions;
  readonly #slots: Slots;
  #draining = false;

  private constructor(
    options: EngineOptions,
    parts: {
      launcher: Launcher;
      functions: Functions;
      workflow: StatesInterpreter;
      slots: Slots;
      closers: (() => Promise<void>)[];
    },
  ) {
    this.#options = options;
    this.launcher = parts.launcher;
    this.functions = parts.functions;
    this.workflow = parts.workflow;
    this.#slots = parts.slots;
    this.#closers = parts.closers;
  }

  static async open(options: EngineOptions): Promise<Engine> {
    const { runs, sockets, clock, random, secrets } = options;
    const closers: (() => Promise<void>)[] = [];
    const slots = new Slots(options.concurrency);
    await removeDeadSockets(sockets);
    try {
      const models: ModelClient & { close(): Promise<void> } = createModelClient({ secrets, clock });
      closers.push(() => models.close());
      const scripted = await startScriptedModels({ socket: sockets.models, clock });
      closers.push(() => scripted.close());
      const checks = createChecksPool();
      closers.push(() => checks.close());

      // Functions need the tokens, the tokens are the interpreter's, and the interpreter needs the functions.
      const late: { engine: Engine | null } = { engine: null };
      const tokens = {
        succeed: (token: string, output: unknown) => workflow.tokens.succeed(token, output),
        fail: (token: string, error: string, cause: string) => workflow.tokens.fail(token, error, cause),
        heartbeat: (token: string) => workflow.tokens.heartbeat(token),
      };
      const tokenServer = await startTokenServer({ socket: sockets.tokens, tokens });
      closers.push(() => tokenServer.close());
      const launcher = await options.openLauncher({ objects: runs.objectsRoot, tokens: sockets.tokens, secrets });
      closers.push(() => launcher.close());

      const launches = new Launches(launcher);
      const functions = localFunctions({
        runs,
        clock,
        random,
        secrets,
        models,
        checks,
        tokens,
        tokensSocket: sockets.tokens,
        stopExecutors: (startedBy, _executor, reason) => launches.stopAll(startedBy, reason),
      });
      const workflow = new StatesInterpreter({
        definitions: Object.entries(machineDefinitions).map(([name, definition]) => ({
          name,
          file: `lib/attempt/${name}.asl.json`,
          definition,
        })),
        placeholders: { ...functionNames, ...localNames, TaskDefinitions: taskDefinitions() },
        resources: resourcesOf(functions, launcher, launches, runs),
        clock,
        random,
        onEvent: (event) => late.engine?.see(event),
        admit: async (machine, signal) => (machine === "attempt" ? slots.take(signal) : () => undefined),
      });
      const engine = new Engine(options, { launcher, functions, workflow, slots, closers });
      late.engine = engine;
      launcher.onStopped((stopped) => {
        launches.forget(stopped.startedBy, stopped.id);
        engine.after(functions.taskStopped(taskStopped(stopped)));
      });
      return engine;
    } catch (error) {
      for (const close of closers.reverse()) await close().catch(() => undefined);
      throw error;
    }
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /** Starts no further attempt; those that run go on to their end. */
  drain(): void {
    this.#draining = true;
    this.#slots.close();
  }

  /** Ends everything that runs: rows become `cancelled`, executors are stopped. */
  async cancel(why: string): Promise<void> {
    this.drain();
    await this.workflow.close("Proctor.Cancelled", why);
  }

  /** Starts an execution and waits for it and for all that follows from it. */
  async execute(
    machine: MachineName,
    name: string,
    input: unknown,
  ): Promise<{ status: string; output: unknown; error: string | null; cause: string | null }> {
    const handle = await this.workflow.start(machine, name, input);
    const ended = await handle.result;
    await this.settled();
    return ended.status === "SUCCEEDED"
      ? { status: ended.status, output: ended.output, error: null, cause: null }
      : { status: ended.status, output: null, error: ended.error, cause: ended.cause };
  }

  /** Resolves when every follow-up of an ended execution is done. */
  async settled(): Promise<void> {
    while (this.#afterwards.size > 0) await Promise.allSettled([...this.#afterwards]);
  }

  async close(): Promise<void> {
    await this.settled();
    const failures: unknown[] = [];
    // What one of them can not end must not keep the others open, and with them this process.
    for (const close of [...this.#closers].reverse()) await close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  private after(work: Promise<unknown>): void {
    const tracked = work.catch((error: unknown) => {
      tell(`proctor: ${error instanceof Error ? error.message : String(error)}\n`);
    });
    this.#afterwards.add(tracked);
    void tracked.finally(() => this.#afterwards.delete(tracked));
  }

  private see(event: HistoryEvent): void {
    this.#options.onEvent?.(event);
    if (event.machine !== "attempt") return;
    if (event.type === "ExecutionStarted") this.running.set(event.execution, event.input as unknown as ManifestLine);
    if (event.type !== "ExecutionEnded") return;
    const line = this.running.get(event.execution);
    this.running.delete(event.execution);
    if (line === undefined) return;
    const { status, error, cause, execution } = event;
    const closed =
      status === "SUCCEEDED"
        ? Promise.resolve()
        : this.functions.executionEnded({ v: 1, name: execution, status, error, cause, line });
    this.after(closed.then(() => this.#options.onAttemptEnded?.(line)));
  }
}

function taskDefinitions(): string {
  return adapters.map((agent) => `${agent.name}=local`).join(" ");
}

function resourcesOf(functions: Functions, launcher: Launcher, launches: Launches, runs: Runs): Resources {
  const store = runs.as({ role: "state-machine" }).objects;
  const known: Readonly<Record<string, (event: unknown) => Promise<unknown>>> = functions.byName;
  return {
    invoke: async (name, event) => {
      const called = known[name];
      if (!called) throw new Error(`there is no function ${name}`);
      return called(event);
    },
    async runTask(request) {
      try {
        const { StartedBy } = runTaskRequest.parse(request);
        return launchedAnswer(await launches.launch(launchSpecOf(request)), StartedBy);
      } catch (error) {
        if (!(error instanceof LaunchError)) throw error;
        const failure = launchFailure(error);
        if ("answer" in failure) return failure.answer;
        throw Object.assign(new Error(failure.cause), { name: failure.error });
      }
    },
    async stopTask(request) {
      const { Task, Reason } = stopTaskRequest.parse(request);
      await launcher.stop(Task, Reason);
      return { Task: { TaskArn: Task } };
    },
    async *readItems({ bucket, key }) {
      if (bucket !== "results") throw new Error(`items stand in results, not in ${bucket}`);
      yield* await store.stream({ bucket, key });
    },
    openResults: async ({ prefix, mapRun }) => mapResults(store, prefix, mapRun),
  };
}
