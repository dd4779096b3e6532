/** Ctrl-C drains, twice stops; a sweep that was aborted or taken over by another process stops too. */
import type { Clock } from "../../lib/platform/ports.ts";
import type { Engine } from "../engine/engine.ts";
import type { Progress } from "./progress.ts";

const lookEveryMs = 500;

export interface Interrupts {
  stopped(): "drained" | "cancelled" | null;
  end(): void;
}

/** @param at `alive` is asked twice a second; what it answers, if anything, is why the sweep stops. */
export function interruptible(
  engine: Engine,
  progress: Progress,
  at: { clock: Clock; alive(): Promise<string | null> },
): Interrupts {
  let stopped: "drained" | "cancelled" | null = null;
  /** What was last said of a look that failed. */
  let troubled: string | null = null;
  const ended = new AbortController();
  const cancel = (why: string): void => {
    if (stopped === "cancelled") return;
    stopped = "cancelled";
    progress.say(`stopping: ${why}; attempts that run become cancelled, the same command goes on with them`);
    void engine.cancel(why);
  };
  const interrupt = (): void => {
    if (stopped === null) {
      stopped = "drained";
      engine.drain();
      progress.say(
        `draining: ${engine.running.size} attempts run to their end, none is started; again Ctrl-C stops them now`,
      );
    } else cancel("interrupted");
  };
  const terminate = (): void => cancel("terminated");
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", terminate);
  process.on("SIGHUP", terminate);
  void (async () => {
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
  })();
  return {
    stopped: () => stopped,
    end() {
      ended.abort();
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", terminate);
      process.off("SIGHUP", terminate);
    },
  };
}
