/**
 * Runs checks in processes of their own (dist/checks-worker.js) with limits on memory and on the time of each check. Warm
 * workers are used again; one that runs over is ended and replaced, and its job goes on with the next check.
 *
 * They are no threads: V8 ends the whole process, not a thread of it, when one large string or list does not fit.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { WorkerRequest } from "../../roles/checks/checks-worker.ts";
import { withoutEvidence } from "../../roles/checks/decide.ts";
import { type CheckJob, type CheckOutcome, checkOutcome } from "../../roles/checks/job.ts";
import type { CheckRunner } from "../ports.ts";

export interface ChecksPoolOptions {
  /** Workers that run at once: with two, one that hangs does not hold up every other attempt. */
  workers?: number;
  /** How long one check may take. */
  checkSeconds?: number;
  /** Heap of a worker. */
  megabytes?: number;
  /** The bundle; by default beside the running one. */
  worker?: URL;
}

/** How long a worker may take to start. */
const startMs = 60_000;

export interface ChecksPool extends CheckRunner {
  /** Ends the workers. Jobs that wait or run are rejected. */
  close(): Promise<void>;
}

/** What came of a run of checks: outcomes in order, and why it ended before the last of them. */
interface Run {
  outcomes: CheckOutcome[];
  stopped: string | null;
}

export function createChecksPool(options: ChecksPoolOptions = {}): ChecksPool {
  return new WorkerPool(options);
}

class WorkerPool implements ChecksPool {
  readonly #limit: number;
  readonly #checkMs: number;
  readonly #megabytes: number;
  readonly #file: URL;
  readonly #idle: ChildProcess[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #all = new Set<ChildProcess>();
  #running = 0;
  #closed = false;

  constructor(options: ChecksPoolOptions) {
    this.#limit = options.workers ?? 2;
    this.#checkMs = (options.checkSeconds ?? 5) * 1000;
    this.#megabytes = options.megabytes ?? 256;
    this.#file = options.worker ?? bundledWorker();
  }

  async evaluate(job: CheckJob): Promise<CheckOutcome[]> {
    await this.#turn();
    try {
      const outcomes: CheckOutcome[] = [];
      const ids = job.checks.map(({ id }) => id);
      while (outcomes.length < ids.length) {
        const run = await this.#run(job, ids.slice(outcomes.length));
        outcomes.push(...run.outcomes);
        const hung = ids[outcomes.length];
        if (run.stopped !== null && hung !== undefined) outcomes.push(await this.#blame(job, hung, run.stopped));
      }
      return outcomes;
    } finally {
      // A place is handed on, not given back, where somebody waits: who comes just now must not take it as well.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map(kill));
  }

  /** A check that runs over without any deliverable runs over on all: it is broken. Else the evidence is to blame. */
  async #blame(job: CheckJob, id: string, why: string): Promise<CheckOutcome> {
    const alone = await this.#run(withoutEvidence(job), [id]);
    return { id, status: alone.stopped === null ? "evidence" : "broken", note: `the check ${why}` };
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#limit) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #run(job: CheckJob, checks: string[]): Promise<Run> {
    if (this.#closed) return Promise.reject(new Error("the pool of checks is closed"));
    const warm = this.#warm();
    const worker = warm ?? this.#start();
    return new Promise((resolve, reject) => {
      const outcomes: CheckOutcome[] = [];
      let timer: NodeJS.Timeout | undefined;
      let ended = false;
      const end = (stopped: string | null): void => {
        if (ended) return;
        ended = true;
        clearTimeout(timer);
        worker.off("message", onMessage).off("error", onError).off("close", onClose);
        if (stopped === null) {
          hold(worker, false);
          this.#idle.push(worker);
          resolve({ outcomes, stopped });
          return;
        }
        kill(worker).then(() => {
          if (this.#closed) reject(new Error("the pool of checks is closed"));
          else resolve({ outcomes, stopped });
        }, reject);
      };
      const limit = (ms: number, why: string): void => {
        clearTimeout(timer);
        timer = setTimeout(() => end(why), ms);
      };
      const watch = (): void => limit(this.#checkMs, `took more than ${this.#checkMs / 1000} s`);
      const onMessage = (message: unknown): void => {
        if (message === "ready") {
          watch();
          return;
        }
        const outcome = checkOutcome.safeParse(message);
        if (outcome.success) outcomes.push(outcome.data);
        if (!outcome.success) end("gave no outcome");
        else if (outcomes.length === checks.length) end(null);
        else watch();
      };
      // Without a process there is nothing to blame on a check.
      const onError = (error: Error): void => {
        if (worker.pid !== undefined || ended) return;
        ended = true;
        clearTimeout(timer);
        reject(new Error(`no process for checks can be started: ${error.message}`, { cause: error }));
      };
      const onClose = (code: number | null, signal: NodeJS.Signals | null): void => {
        const memory = signal !== null && memorySignals.includes(signal);
        end(
          memory
            ? `used more than ${this.#megabytes} MB of memory`
            : `ended its worker (${signal ?? `status ${code}`})`,
        );
      };
      // `close`, not `exit`: it comes after the last message, so no check is blamed that was already decided.
      worker.on("message", onMessage).on("error", onError).on("close", onClose);
      hold(worker, true);
      // The start of a process on a busy machine is not the check's time: the worker says when it is there.
      if (warm) watch();
      else limit(startMs, `was not begun within ${startMs / 1000} s`);
      // Where it can not be sent, the worker has ended, and `close` says so.
      worker.send({ job, checks } satisfies WorkerRequest, () => {});
    });
  }

  /** An idle worker that still listens. */
  #warm(): ChildProcess | undefined {
    let worker = this.#idle.pop();
    while (worker && !worker.connected) worker = this.#idle.pop();
    return worker;
  }

  #start(): ChildProcess {
    const libsql = createRequire(import.meta.url).resolve("libsql");
    const worker = fork(fileURLToPath(this.#file), ["--serve", libsql, String(this.#checkMs / 2000)], {
      execArgv: [`--max-old-space-size=${this.#megabytes}`],
      // No key of this process's environment stands in a worker's.
      env: {},
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // A group of its own: Ctrl-C in the terminal must not look like a check that ended its worker.
      detached: true,
    });
    this.#all.add(worker);
    // What a run does not hear (a worker that ends while idle) must not end the process.
    worker.on("error", () => {
      if (worker.pid === undefined) this.#all.delete(worker);
    });
    worker.on("close", () => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return worker;
  }
}

/** How V8 ends a process whose heap is full, or that asks for one object too large. */
const memorySignals: readonly NodeJS.Signals[] = ["SIGABRT", "SIGTRAP", "SIGILL"];

/** Whether this process stays for the worker's sake. */
function hold(worker: ChildProcess, busy: boolean): void {
  if (busy) {
    worker.ref();
    worker.channel?.ref();
  } else {
    worker.unref();
    worker.channel?.unref();
  }
}

/** Ends a worker, and the query it may have started; resolves when it has ended. */
async function kill(worker: ChildProcess): Promise<void> {
  if (worker.pid === undefined || worker.exitCode !== null || worker.signalCode !== null) return;
  hold(worker, true);
  const closed = new Promise<void>((resolve) => worker.once("close", () => resolve()));
  try {
    process.kill(-worker.pid, "SIGKILL");
  } catch {
    worker.kill("SIGKILL");
  }
  await closed;
}

/** Bundles of ours lie beside each other in dist/, chunks one folder below; sources use the same bundle. */
function bundledWorker(): URL {
  const here = import.meta.url;
  const folder = here.endsWith(".ts") ? "../../../dist/" : here.includes("/dist/chunks/") ? "../" : "./";
  return new URL(`${folder}checks-worker.js`, here);
}
