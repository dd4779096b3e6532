/**
 * Which executors were started for a try. A lease names its executor only once a turn was opened, so an execution that
 * is cut off between its launch and its first turn leaves an executor that nothing else knows.
 */
import type { LaunchedExecutor, Launcher, LaunchSpec } from "../../lib/platform/ports.ts";

export class Launches {
  readonly #launcher: Pick<Launcher, "launch" | "stop">;
  /** By `<attempt>/<NN>`: launches that were asked for, those that are still starting too. */
  readonly #byTry = new Map<string, Set<Promise<LaunchedExecutor>>>();
  /** The launch of each executor that runs, by its id. */
  readonly #ids = new Map<string, Promise<LaunchedExecutor>>();

  constructor(launcher: Pick<Launcher, "launch" | "stop">) {
    this.#launcher = launcher;
  }

  /** @throws LaunchError when nothing was started */
  async launch(spec: LaunchSpec): Promise<LaunchedExecutor> {
    const launch = this.#launcher.launch(spec);
    const ofTry = this.#byTry.get(spec.startedBy) ?? new Set();
    this.#byTry.set(spec.startedBy, ofTry.add(launch));
    try {
      const launched = await launch;
      this.#ids.set(launched.id, launch);
      return launched;
    } catch (error) {
      this.#drop(spec.startedBy, launch);
      throw error;
    }
  }

  /** Stops every executor of a try, one that is just starting as soon as it has; answers how many there were. */
  async stopAll(startedBy: string, reason: string): Promise<number> {
    let stopped = 0;
    for (const launch of [...(this.#byTry.get(startedBy) ?? [])]) {
      const launched = await launch.catch(() => null);
      if (launched === null) continue;
      await this.#launcher.stop(launched.id, reason);
      stopped += 1;
    }
    return stopped;
  }

  /** The executor has ended. */
  forget(startedBy: string, id: string): void {
    const launch = this.#ids.get(id);
    this.#ids.delete(id);
    if (launch !== undefined) this.#drop(startedBy, launch);
  }

  #drop(startedBy: string, launch: Promise<LaunchedExecutor>): void {
    const ofTry = this.#byTry.get(startedBy);
    ofTry?.delete(launch);
    if (ofTry?.size === 0) this.#byTry.delete(startedBy);
  }
}
