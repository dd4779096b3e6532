/**
 * Runs checks in worker threads (dist/checks-worker.js) with limits on memory and on the time of each check. Warm
 * workers are used again; one that runs over is ended and replaced, and its job goes on with the next check.
 */
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
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
  readonly #idle: Worker[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #all = new Set<Worker>();
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
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
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
    const warm = this.#idle.pop();
    const worker = warm ?? this.#start();
    return new Promise((resolve, reject) => {
      const outcomes: CheckOutcome[] = [];
      let timer: NodeJS.Timeout | undefined;
      let ended = false;
      const end = (stopped: string | null): void => {
        if (ended) return;
        ended = true;
        clearTimeout(timer);
        worker.off("online", watch).off("message", onMessage).off("error", onError).off("exit", onExit);
        if (stopped === null) {
          worker.unref();
          this.#idle.push(worker);
          resolve({ outcomes, stopped });
          return;
        }
        this.#all.delete(worker);
        worker.terminate().then(() => {
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
        const outcome = checkOutcome.safeParse(message);
        if (outcome.success) outcomes.push(outcome.data);
        if (!outcome.success) end("gave no outcome");
        else if (outcomes.length === checks.length) end(null);
        else watch();
      };
      const onError = (error: NodeJS.ErrnoException): void => {
        const memory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        end(memory ? `used more than ${this.#megabytes} MB of memory` : `ended its worker: ${error.message}`);
      };
      const onExit = (): void => end("ended its worker");
      worker.on("message", onMessage).on("error", onError).on("exit", onExit);
      worker.ref();
      // The start of a thread on a busy machine is not the check's time.
      if (warm) watch();
      else {
        limit(startMs, `was not begun within ${startMs / 1000} s`);
        worker.once("online", watch);
      }
      worker.postMessage({ job, checks } satisfies WorkerRequest);
    });
  }

  #start(): Worker {
    const worker = new Worker(this.#file, {
      workerData: { libsql: createRequire(import.meta.url).resolve("libsql"), querySeconds: this.#checkMs / 2000 },
      resourceLimits: { maxOldGenerationSizeMb: this.#megabytes, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
      // No key of this process's environment stands in a worker's.
      env: {},
      stdout: true,
      stderr: true,
    });
    this.#all.add(worker);
    // What a run does not hear (a worker that ends while idle) must not end the process.
    worker.on("error", () => {});
    worker.on("exit", () => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return worker;
  }
}

/** Bundles of ours lie beside each other in dist/, chunks one folder below; sources use the same bundle. */
function bundledWorker(): URL {
  const here = import.meta.url;
  const folder = here.endsWith(".ts") ? "../../../dist/" : here.includes("/dist/chunks/") ? "../" : "./";
  return new URL(`${folder}checks-worker.js`, here);
}
