/**
 * The ports: what the rules need from the world. Two families of adapters implement them, local and aws; one contract
 * suite runs against both. This file imports nothing that runs, so every part of the house may import it.
 */
import type { Readable } from "node:stream";
import type { Price, Tokens } from "../attempt/usage.ts";
import type { Isolation, ModelRole, Network } from "../attempt/vocabulary.ts";
import type { ObjectName, TryName } from "../firewall/keys.ts";
import type { ScoreRow } from "../results/score-row.ts";
import type { CheckJob, CheckOutcome } from "../roles/checks/job.ts";
import type { ModelChoice } from "../sweep/manifest-line.ts";

/** Time, handed in so that tests can make it virtual. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal is aborted (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export type StoreErrorCode = "not_found" | "already_exists" | "access_denied" | "bad_key" | "no_space" | "unavailable";

/** What a store says no with. The message names role, verb and key where they matter. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  constructor(
    readonly code: StoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface ObjectInfo {
  key: string;
  bytes: number;
}

/** An object store as one role sees it: what the access matrix denies fails with `access_denied`. */
export interface ObjectStore {
  /** @throws StoreError not_found, access_denied */
  get(name: ObjectName): Promise<Uint8Array>;
  /** The object as a stream, from byte `start` up to and without `end`. @throws as get */
  stream(name: ObjectName, range?: { start: number; end?: number }): Promise<Readable>;
  /** Writes once: whole or not at all, never over. @throws StoreError already_exists, access_denied, no_space */
  create(name: ObjectName, body: Uint8Array | string | Readable): Promise<ObjectInfo>;
  /** Objects below a prefix, in key order. @throws StoreError access_denied */
  list(prefix: ObjectName): AsyncIterable<ObjectInfo>;
}

/**
 * What identifies a role to the store: the grant of a turn is bound to one try and one package; a function may be bound
 * to the attempt that it works on, which then is all that it counts as its own.
 */
export type Identity =
  | { role: Exclude<Role, "turn-grant">; attempt?: string }
  | { role: "turn-grant"; try: TryName; package: { task: string; digest: string } };

/** The rows of the access matrix. */
export type Role =
  | "executor-task"
  | "turn-grant"
  | "preflight"
  | "prepare"
  | "open-turn"
  | "supervisor"
  | "user-simulator"
  | "record"
  | "compact"
  | "reaper"
  | "state-machine"
  | "runner-container"
  | "operator";

/** A sweep's own record. Changed by condition only. */
export interface SweepRecord {
  sweep: string;
  generation: number;
  /** Digest of the sweep file as expanded. */
  digest: string;
  /** The parts of the sweep that must not change under one name: roles, limits, compat. */
  fixed: string;
  /** Dollar cap of the sweep; null: none. */
  capUsd: number | null;
  reservedUsd: number;
  spentUsd: number;
  /** Attempts planned in the latest generation. */
  planned: number;
  /** The process that runs it on one machine; null when none does. */
  controller: { pid: number; host: string; startedAt: string; heartbeatAt: string } | null;
  abortRequested: boolean;
}

/** The secrets and money of one open try; it goes when the try is closed. */
export interface Lease {
  sweep: string;
  attempt: string;
  try: number;
  generation: number;
  /** Which try of this execution it is, from 1: makes Prepare idempotent. */
  round: number;
  mailbox: string;
  /** base64, 32 bytes. */
  sealKey: string;
  turnSecret: string;
  /** Token of the turn that is open; null between turns. */
  turnToken: string | null;
  reservedUsd: number;
  /** The executor as the launcher named it; null before Launch. */
  executor: string | null;
  expiresAt: string;
}

/** Score rows, sweeps and leases. Every write is conditional; none is ever lost or doubled. */
export interface ScoreTable {
  sweep(sweep: string): Promise<SweepRecord | null>;
  sweeps(): Promise<SweepRecord[]>;
  /** Creates generation 1 or moves to the next, if the stored generation is still `expected`. False: somebody was faster. */
  startGeneration(
    expected: number,
    next: Pick<SweepRecord, "sweep" | "generation" | "digest" | "fixed" | "capUsd" | "planned" | "controller">,
  ): Promise<boolean>;
  /**
   * Says who runs the sweep; null: nobody. False: the stored generation is not `generation`, so another process has taken
   * the sweep over, and its word stays. @throws StoreError not_found
   */
  heartbeat(sweep: string, controller: SweepRecord["controller"], generation: number): Promise<boolean>;
  requestAbort(sweep: string): Promise<boolean>;
  /**
   * Adds to `reservedUsd` while reserved + spent + usd <= cap. False: the cap holds it back. Less than 0 gives back what
   * was reserved for a try that did not open. @throws StoreError not_found for a sweep that was never started
   */
  reserve(sweep: string, usd: number): Promise<boolean>;

  /** Opens a try: its `running` row, and its lease, both or neither. False: that try exists. */
  openTry(row: ScoreRow, lease: Lease): Promise<boolean>;
  /**
   * Writes a row whose status has a higher rank than the stored one, or an unjudged one over an unjudged one that cost less
   * (it was judged again, in vain), drops the lease of a closed try and settles its
   * dollars (reserved given back, spent added), in one transaction. False: the stored row stays.
   */
  closeTry(row: ScoreRow): Promise<boolean>;
  tries(sweep: string, attempt: string): Promise<ScoreRow[]>;
  /** All rows of a sweep, by attempt and try. */
  rows(sweep: string): AsyncIterable<ScoreRow>;
  lease(attempt: string, tryNumber: number): Promise<Lease | null>;
  leases(sweep: string): Promise<Lease[]>;
  /** Sets the named fields of a lease. False: it is gone. */
  updateLease(
    attempt: string,
    tryNumber: number,
    change: Partial<Pick<Lease, "turnToken" | "executor" | "expiresAt">>,
  ): Promise<boolean>;
  close(): Promise<void>;
}

/** Answers to a turn's token. `closed`: the turn was over already; the runner leaves. */
export interface TaskTokens {
  succeed(token: string, output: unknown): Promise<"accepted" | "closed">;
  fail(token: string, error: string, cause: string): Promise<"accepted" | "closed">;
  heartbeat(token: string): Promise<"accepted" | "closed">;
}

/** What an executor is started with. Secrets go to the runner alone. */
export interface LaunchSpec {
  /** Names the try: `<attempt>/<NN>`. */
  startedBy: string;
  /** A second launch with the same token answers with the first one's task. */
  clientToken: string;
  task: { task: string; digest: string };
  agent: { name: string; version: string };
  network: Network;
  mailbox: string;
  sealKey: string;
  turnSecret: string;
  /** Name of the executor provider's key, looked up by the launcher; null where none is needed. */
  keyName: string | null;
}

export interface LaunchedExecutor {
  /** The launcher's name for it. */
  id: string;
  isolation: Isolation;
}

export interface StoppedExecutor {
  id: string;
  startedBy: string;
  /** Runner's exit code or signal, for people and for classification. */
  code: number | null;
  signal: string | null;
  reason: string;
}

export interface Launcher {
  readonly isolation: Isolation;
  /** @throws LaunchError when nothing was started. */
  launch(spec: LaunchSpec): Promise<LaunchedExecutor>;
  /** Ends runner and agent with everything that they started. Stopping what is gone is no error here. */
  stop(id: string, reason: string): Promise<void>;
  describe(id: string): Promise<"running" | "stopped">;
  /** Called once for each executor that ended, whoever ended it. */
  onStopped(listener: (stopped: StoppedExecutor) => void): void;
  /** Ends all that still runs. */
  close(): Promise<void>;
}

export class LaunchError extends Error {
  override readonly name = "LaunchError";
  constructor(
    /** capacity and throttle may pass; configuration will not. */
    readonly kind: "capacity" | "throttle" | "configuration",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A message of a chat with tools, in the form of the chat completions API. */
export type ChatMessage =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string | null; toolCalls?: { id: string; name: string; arguments: string }[] }
  | { role: "tool"; toolCallId: string; content: string };

export interface ChatTool {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: Record<string, unknown>;
}

export interface ChatRequest {
  model: ModelChoice;
  messages: ChatMessage[];
  tools: ChatTool[];
  /** JSON schema that the final answer must follow; null: free text. */
  answerSchema: { name: string; schema: Record<string, unknown> } | null;
  effort: "low" | "medium" | "high";
  maxOutputTokens: number;
  timeoutMs: number;
  /** Whose call it is; a scripted model chooses its turn by it. */
  caller: { role: ModelRole; task: string; attempt: string; turn: number };
}

/** A model's answer, or the kind of fault, never an exception for what a provider may do. */
export type ChatResult =
  | {
      status: "ok";
      content: string | null;
      toolCalls: { id: string; name: string; arguments: string }[];
      finishReason: string | null;
      tokens: Tokens;
      usd: number;
      ms: number;
    }
  | {
      /** unreadable: an answer that is no completion (HTML, nothing, half of a JSON document). */
      status:
        | "rate_limited"
        | "quota_exhausted"
        | "bad_request"
        | "provider_error"
        | "disconnected"
        | "timeout"
        | "unreadable";
      /** For people; holds no key. */
      message: string;
      /** What the provider asked to wait, in milliseconds. */
      retryAfterMs: number | null;
      ms: number;
    };

export interface ModelClient {
  chat(request: ChatRequest): Promise<ChatResult>;
}

/** Decides checks where hostile files can do no harm: apart, with limits on time and memory. */
export interface CheckRunner {
  /** One outcome for each check of the job, in its order. Never rejects for what a file or an expression does. */
  evaluate(job: CheckJob): Promise<CheckOutcome[]>;
}

/** Values by name: provider keys and privacy values. The environment locally, Secrets Manager in the cloud. */
export interface Secrets {
  get(name: string): Promise<string | null>;
}

/** Random bytes and names, handed in so that the core stays pure. */
export interface Random {
  bytes(count: number): Uint8Array;
  /** Uniform in [0, 1). */
  unit(): number;
}

/** Starts and follows executions of the state machines. */
export interface Workflow {
  /** Joins when an execution of that name runs with the same input; refuses a name that ended or has another input. */
  start(machine: MachineName, name: string, input: unknown): Promise<ExecutionHandle>;
  stop(machine: MachineName, name: string, error: string, cause: string): Promise<void>;
}
export type MachineName = "attempt" | "lane" | "sweep" | "judge";
export interface ExecutionHandle {
  name: string;
  result: Promise<
    | { status: "SUCCEEDED"; output: unknown }
    | { status: "FAILED" | "TIMED_OUT" | "ABORTED"; error: string; cause: string }
  >;
}

export type { ModelChoice, Price, ScoreRow };
