/** Clocks for tests in which real sockets take part. */
import type { Clock, Random } from "../../../lib/platform/ports.ts";

/** Time that stands still until a test moves it to its next timer. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 0, 1);
  #timers: { at: number; fire: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = {
        at: this.#now + Math.max(0, ms),
        fire: () => {
          signal?.removeEventListener("abort", timer.fire);
          this.#timers = this.#timers.filter((other) => other !== timer);
          resolve();
        },
      };
      signal?.addEventListener("abort", timer.fire);
      this.#timers.push(timer);
    });
  }

  /** Milliseconds to the next timer, null if there is none. */
  get next(): number | null {
    return this.#timers.length === 0 ? null : Math.min(...this.#timers.map((timer) => timer.at)) - this.#now;
  }

  /** Moves time on by `ms`; timers fire in their order, and what they set off runs between them. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#now = Math.max(this.#now, next.at);
      next.fire();
      await io();
    }
    this.#now = end;
    await io();
  }
}

/** Lets sockets do their work. */
export async function io(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves when a condition holds; what it waits for is I/O, never time. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

export const realClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, 2_147_483_647));
      signal?.addEventListener("abort", done);
    }),
};

let counter = 0;
/** Different bytes at each call, the same in each run. */
export const countingRandom: Random = {
  bytes: (count) => Buffer.alloc(count, ++counter),
  unit: () => 0.5,
};
