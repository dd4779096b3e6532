/** One running execution: its identity, its end, its history and its children. */
import { setMaxListeners } from "node:events";
import type { Clock, Random } from "../../ports.ts";
import { errorNames, type Json, type JsonObject, limits, StateFailure } from "./data.ts";
import type { Flow } from "./machine.ts";
import type { HistoryEntry, HistoryEvent, Resources } from "./resources.ts";
import type { TokenTable } from "./tokens.ts";

/** What every execution of one interpreter shares. */
export interface Surroundings {
  clock: Clock;
  random: Random;
  resources: Resources;
  tokens: TokenTable;
  onEvent: ((event: HistoryEvent) => void) | null;
  /** Starts or joins. @throws StateFailure StepFunctions.* */
  admit: ((machine: string, signal: AbortSignal) => Promise<(() => void) | null>) | null;
  startExecution(machine: string, name: string, input: { value: Json; bytes: number }): Execution;
}

export type ExecutionResult = (
  | { status: "SUCCEEDED"; output: Json }
  | { status: "FAILED" | "TIMED_OUT" | "ABORTED"; error: string; cause: string }
) & {
  /** States entered, those in inline Maps too; not those of other executions. */
  statesEntered: number;
  retries: number;
};

export class Execution {
  readonly id: string;
  readonly arn: string;
  readonly startedAt: number;
  /** The part of the context object that stays the same. */
  readonly context: JsonObject;
  /** Ended when the execution has: what it still does is interrupted. */
  readonly signal: AbortSignal;
  readonly result: Promise<ExecutionResult>;
  /** Executions that end with this one. */
  readonly children = new Set<Execution>();
  /** Called in the moment it ends, before anybody can see the result. */
  onEnd: (() => void) | null = null;
  endedAt: number | null = null;
  statesEntered = 0;
  retries = 0;
  #events = 0;
  #settle!: (result: ExecutionResult) => void;
  readonly #abort = new AbortController();

  /** @param id names it in messages and in the context object; unique within a machine. */
  constructor(
    readonly around: Surroundings,
    readonly machine: string,
    readonly name: string,
    readonly flow: Flow,
    readonly input: Json,
    label: string | null = null,
  ) {
    this.arn = `arn:aws:states:local:000000000000:stateMachine:${machine}`;
    this.id = `arn:aws:states:local:000000000000:execution:${machine}${label === null ? "" : `/${label}`}:${name}`;
    this.startedAt = around.clock.now();
    this.context = {
      Id: this.id,
      Input: input,
      Name: name,
      RoleArn: "arn:aws:iam::000000000000:role/local",
      StartTime: new Date(this.startedAt).toISOString(),
      RedriveCount: 0,
    };
    this.signal = this.#abort.signal;
    setMaxListeners(0, this.signal);
    this.result = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#events = 1;
    this.tell({ type: "ExecutionStarted", input });
  }

  get ended(): boolean {
    return this.endedAt !== null;
  }

  /**
   * Counts events of history as Step Functions would have written them.
   * @throws StateFailure States.Runtime at the limit of 25,000, which no Catch takes
   */
  count(events: number): void {
    this.#events += events;
    if (this.#events >= limits.historyEvents) {
      throw new StateFailure(errorNames.runtime, `the execution reached ${limits.historyEvents} events of history`);
    }
  }

  /** Tells the listener. */
  tell(entry: HistoryEntry): void {
    const { onEvent, clock } = this.around;
    onEvent?.({ at: clock.now(), machine: this.machine, execution: this.name, ...entry } as HistoryEvent);
  }

  /** Ends it once; later ends change nothing. Children that still run are aborted, before anything of its own is told. */
  end(
    outcome:
      | { status: "SUCCEEDED"; output: Json }
      | { status: "FAILED" | "TIMED_OUT" | "ABORTED"; error: string; cause: string },
  ): void {
    if (this.ended) return;
    this.endedAt = this.around.clock.now();
    const failed = outcome.status !== "SUCCEEDED";
    const [error, cause] = failed ? [outcome.error, outcome.cause] : [null, null];
    try {
      this.tell({ type: "ExecutionEnded", status: outcome.status, error, cause });
    } finally {
      for (const child of this.children) child.end({ status: "ABORTED", error: error ?? "", cause: cause ?? "" });
      this.children.clear();
      this.onEnd?.();
      this.#abort.abort("the execution has ended");
      this.#settle({ ...outcome, statesEntered: this.statesEntered, retries: this.retries });
    }
  }
}
