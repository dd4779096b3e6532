/** What the interpreter is handed: the services that tasks call, and what it tells of its executions. */
import type { Json } from "./data.ts";

/** Who calls. */
export interface Caller {
  machine: string;
  execution: string;
  state: string;
  /** Fires when the answer is no longer wanted: timeout, abort, or the token was answered. */
  signal: AbortSignal;
}

/** What one child of a Distributed Map came to. */
export interface ChildResult {
  name: string;
  index: number;
  status: "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "ABORTED";
  input: Json;
  output: Json | null;
  error: string | null;
  cause: string | null;
}

/** Takes the results of a Map Run one by one; `close` writes what is left and names the result's manifest. */
export interface ResultSink {
  add(result: ChildResult): Promise<void> | void;
  close(): Promise<{ key: string }>;
}

/**
 * The services behind a Task's resource. An error that is thrown fails the task: an Error's `name` is the error name of
 * the States Language, anything else is States.TaskFailed. Data goes in and comes out as JSON; what comes in is a copy.
 */
export interface Resources {
  /** A function's answer to its event. With `.waitForTaskToken` the answer is not looked at. */
  invoke(functionName: string, event: Json, caller: Caller): Promise<unknown>;
  /** `aws-sdk:ecs:runTask`: request and response of the ECS API, in capitals: {Tasks: [...], Failures: [...]}. */
  runTask(request: Json, caller: Caller): Promise<unknown>;
  /** `aws-sdk:ecs:stopTask`: stopping what is gone throws, as in the cloud. */
  stopTask(request: Json, caller: Caller): Promise<unknown>;
  /** An object of JSON lines, in pieces of any size. */
  readItems(location: { bucket: string; key: string }): AsyncIterable<Uint8Array | string>;
  /** Where a Map Run's results go; keys begin with `<prefix>/<mapRun>/`. */
  openResults(location: { bucket: string; prefix: string; mapRun: string }): Promise<ResultSink>;
}

/** One thing that happened, in the order in which it did. */
export type HistoryEvent = {
  /** Milliseconds since 1970. */
  at: number;
  machine: string;
  execution: string;
} & (
  | { type: "ExecutionStarted"; input: Json }
  | { type: "StateEntered"; state: string; iteration: number | null; input: Json }
  | { type: "StateExited"; state: string; iteration: number | null; output: Json; next: string | null }
  | {
      type: "StateFailed";
      state: string;
      iteration: number | null;
      error: string;
      cause: string;
      followedBy: { kind: "retry"; seconds: number } | { kind: "catch"; next: string } | { kind: "fail" };
    }
  | {
      type: "ExecutionEnded";
      status: "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "ABORTED";
      error: string | null;
      cause: string | null;
    }
);

/** An event without what every event has. */
export type HistoryEntry = HistoryEvent extends infer Event
  ? Event extends HistoryEvent
    ? Omit<Event, "at" | "machine" | "execution">
    : never
  : never;
