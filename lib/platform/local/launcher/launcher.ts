/**
 * The launcher of one machine. An executor has two sides that share a Unix socket each way and nothing else: the
 * agent's side, a turn server in a sandbox; and the runner, which holds this try's keys. Three kinds of launcher differ
 * in how a side is started; what an executor is, when it has ended and what is left of it stands here once.
 */
import { randomBytes } from "node:crypto";
import type { RunnerInput } from "../../../executor/runner-input.ts";
import {
  LaunchError,
  type LaunchedExecutor,
  type Launcher,
  type LaunchSpec,
  type Secrets,
  type StoppedExecutor,
} from "../../ports.ts";
import { type ExecutorFolder, LaunchSession } from "./session.ts";

/** One side of an executor, running. */
export interface Side {
  /** Resolves when it has ended, with everything that it started. */
  ended: Promise<SideEnd>;
  /** Ends it; resolves when it has ended. */
  end(): Promise<void>;
}

export interface SideEnd {
  code: number | null;
  signal: string | null;
  /** The end of what it wrote on standard error; of the agent's side this is hostile. */
  said: string;
}

/** How the sides of an executor are started. */
export interface Sides {
  readonly isolation: Launcher["isolation"];
  /** The gateway's socket as the turn server sees it. */
  gatewayPath(folder: ExecutorFolder): string;
  /** Starts a turn server that listens on `folder.turnSocket` from the moment this resolves. */
  startAgentSide(folder: ExecutorFolder, spec: LaunchSpec): Promise<Side>;
  startRunner(input: RunnerInput): Promise<Side>;
}

export interface LocalLauncherOptions {
  /** Root folder of the object store. */
  objects: string;
  /** Unix socket that takes answers to turn tokens. */
  tokens: string;
  /** Provider keys by name. */
  secrets: Secrets;
  /** Folder on disk for attempts' files while they run; a folder of the system's temporary files when it is not given. */
  work?: string;
  /** Milliseconds that a runner has for its report after its agent's side has ended by itself. */
  reportMs?: number;
}

interface Executor {
  id: string;
  spec: LaunchSpec;
  agentSide: Side;
  runner: Side;
  /** Why it is being ended; the first reason stands. */
  reason: string | null;
  /** Resolves when both sides have ended, its folder is gone and listeners were told. */
  gone: Promise<void>;
}

const startedByForm = /^(?<attempt>[^/]+)\/(?<number>\d+)$/;

export class LocalLauncher implements Launcher {
  readonly isolation: Launcher["isolation"];
  readonly #sides: Sides;
  readonly #options: LocalLauncherOptions;
  readonly #session: LaunchSession;
  readonly #launches = new Map<string, Promise<LaunchedExecutor>>();
  readonly #running = new Map<string, Executor>();
  readonly #listeners: ((stopped: StoppedExecutor) => void)[] = [];
  #closed = false;

  private constructor(sides: Sides, options: LocalLauncherOptions, session: LaunchSession) {
    this.isolation = sides.isolation;
    this.#sides = sides;
    this.#options = options;
    this.#session = session;
  }

  static async open(
    sides: (session: LaunchSession) => Promise<Sides>,
    options: LocalLauncherOptions,
  ): Promise<LocalLauncher> {
    const session = await LaunchSession.open(options.work);
    return new LocalLauncher(await sides(session), options, session);
  }

  launch(spec: LaunchSpec): Promise<LaunchedExecutor> {
    const earlier = this.#launches.get(spec.clientToken);
    if (earlier !== undefined) return earlier;
    const launch = this.#start(spec);
    this.#launches.set(spec.clientToken, launch);
    // What could not be started may be tried again under its token.
    launch.catch(() => this.#launches.delete(spec.clientToken));
    return launch;
  }

  async stop(id: string, reason: string): Promise<void> {
    const executor = this.#running.get(id);
    if (executor === undefined) return;
    executor.reason ??= reason;
    // The runner first: it must not take our end of the agent for the agent's own.
    await executor.runner.end();
    await executor.agentSide.end();
    await executor.gone;
  }

  async describe(id: string): Promise<"running" | "stopped"> {
    return this.#running.has(id) ? "running" : "stopped";
  }

  onStopped(listener: (stopped: StoppedExecutor) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#launches.values());
    await Promise.all([...this.#running.keys()].map((id) => this.stop(id, "the launcher was closed")));
    await this.#session.close();
  }

  async #start(spec: LaunchSpec): Promise<LaunchedExecutor> {
    if (this.#closed) throw new LaunchError("configuration", "the launcher is closed");
    const named = startedByForm.exec(spec.startedBy)?.groups;
    if (named === undefined) throw new LaunchError("configuration", `"${spec.startedBy}" is not <attempt>/<try>`);
    const providerKey = spec.keyName === null ? null : await this.#options.secrets.get(spec.keyName);
    if (spec.keyName !== null && providerKey === null) {
      throw new LaunchError("configuration", `the key ${spec.keyName} is not set: put it into the environment`);
    }
    let folder: ExecutorFolder | null = null;
    let agentSide: Side | null = null;
    try {
      folder = await this.#session.executor();
      agentSide = await this.#sides.startAgentSide(folder, spec);
      const runner = await this.#sides.startRunner({
        v: 1,
        try: { attempt: named.attempt as string, try: Number(named.number) },
        objects: this.#options.objects,
        mailbox: spec.mailbox,
        sealKey: spec.sealKey,
        turnSecret: spec.turnSecret,
        turnServer: folder.turnSocket,
        gatewaySocket: folder.gatewaySocket,
        gatewayBaseUrl: `unix:${this.#sides.gatewayPath(folder)}`,
        providerKey,
        tokens: this.#options.tokens,
        isolation: this.isolation,
      });
      const id = `local-${randomBytes(8).toString("hex")}`;
      const executor: Executor = { id, spec, agentSide, runner, reason: null, gone: Promise.resolve() };
      executor.gone = this.#follow(executor, folder);
      this.#running.set(id, executor);
      return { id, isolation: this.isolation };
    } catch (error) {
      await agentSide?.end();
      await folder?.remove();
      throw launchError(error);
    }
  }

  /** Waits for an executor's end, whoever caused it, and leaves nothing of it. */
  async #follow(executor: Executor, folder: ExecutorFolder): Promise<void> {
    const { agentSide, runner } = executor;
    const first = await Promise.race([
      agentSide.ended.then((end) => ({ side: "agent" as const, end })),
      runner.ended.then((end) => ({ side: "runner" as const, end })),
    ]);
    executor.reason ??=
      first.side === "runner"
        ? `the runner ended (${endText(first.end)})${said(first.end)}`
        : `the agent's side ended (${endText(first.end)})${said(first.end)}`;
    if (first.side === "agent") {
      // An agent that ends its own turn server has failed by itself: the runner may still report that.
      await within(runner.ended, this.#options.reportMs ?? 10_000);
    }
    await runner.end();
    await agentSide.end();
    const end = await runner.ended;
    await agentSide.ended;
    await folder.remove();
    this.#running.delete(executor.id);
    const stopped: StoppedExecutor = {
      id: executor.id,
      startedBy: executor.spec.startedBy,
      code: end.code,
      signal: end.signal,
      reason: executor.reason,
    };
    for (const listener of this.#listeners) listener(stopped);
  }
}

const endText = (end: SideEnd): string => (end.signal === null ? `exit ${end.code}` : `signal ${end.signal}`);
/** In one line and without control characters: of the agent's side it is hostile. */
function said(end: SideEnd): string {
  const text = end.said.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}

function within(promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** What the system lacks for a moment may pass; the rest will not. */
function launchError(error: unknown): LaunchError {
  if (error instanceof LaunchError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const passing = ["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT"].includes(code);
  const message = error instanceof Error ? error.message : String(error);
  return new LaunchError(passing ? "capacity" : "configuration", `an executor could not be started: ${message}`, {
    cause: error,
  });
}
