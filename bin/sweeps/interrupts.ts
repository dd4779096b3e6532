/**
 * Ctrl-C drains, twice stops; a sweep that was aborted or taken over by another process stops too. Signals are listened
 * to before anything is claimed, so that none leaves a sweep half begun.
 */
import type { Clock } from "../../lib/platform/ports.ts";
import type { Engine } from "../engine/engine.ts";
import type { Progress } from "./progress.ts";

const lookEveryMs = 500;

export interface Interrupts {
  /** What is stopped, once there is something; `alive` is asked twice a second, and what it answers is why the sweep stops. */
  attach(engine: Engine, at: { clock: Clock; alive(): Promise<string | null> }): void;
  stopped(): "drained" | "cancelled" | null;
  end(): void;
}

export function interruptible(progress: Progress): Interrupts {
  let engine: Engine | null = null;
  let stopped: "drained" | "cancelled" | null = null;
  /** What was last said of a look that failed. */
  let troubled: string | null = null;
  const ended = new AbortController();
  const cancel = (why: string): void => {
    if (stopped === "cancelled") return;
    stopped = "cancelled";
    progress.say(`stopping: ${why}; attempts that run become cancelled, the same command goes on with them`);
    void engine?.cancel(why);
  };
  const interrupt = (): void => {
    if (stopped === null) {
      stopped = "drained";
      engine?.drain();
      const running = engine?.running.size ?? 0;
      progress.say(
        `draining: ${running} ${running === 1 ? "attempt runs to its" : "attempts run to their"} end, none is started; again Ctrl-C stops them now`,
      );
    } else cancel("interrupted");
  };
  const terminate = (): void => cancel("terminated");
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", terminate);
  process.on("SIGHUP", terminate);
  const watch = async (at: { clock: Clock; alive(): Promise<string | null> }): Promise<void> => {
    while (!ended.signal.aborted) {
      const why = await at.alive().catch((error: unknown) => {
        // A full disk say: what waits for it is tried again for half an hour, in silence but for this.
        const message = error instanceof Error ? error.message : String(error);
        if (message !== troubled) progress.say(`trouble: ${message}; what runs goes on trying for a while`);
        troubled = message;
        return null;
      });
      if (why !== null) cancel(why);
      await at.clock.sleep(lookEveryMs, ended.signal);
    }
  };
  return {
    attach(started, at) {
      engine = started;
      if (stopped === "drained") started.drain();
      else if (stopped === "cancelled") void started.cancel("interrupted");
      void watch(at);
    },
    stopped: () => stopped,
    end() {
      ended.abort();
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", terminate);
      process.off("SIGHUP", terminate);
    },
  };
}
