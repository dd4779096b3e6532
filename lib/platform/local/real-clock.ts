/** The machine's own time behind the Clock port. */
import type { Clock } from "../ports.ts";

/** The longest delay that a timer of Node takes, in milliseconds; longer sleeps are made of several. */
const longestTimer = 2_147_483_647;

export class RealClock implements Clock {
  now(): number {
    return Date.now();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = Date.now() + ms;
      let timer: NodeJS.Timeout;
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const wait = (): void => {
        const left = end - Date.now();
        timer = left > longestTimer ? setTimeout(wait, longestTimer) : setTimeout(done, Math.max(0, left));
      };
      signal?.addEventListener("abort", done, { once: true });
      wait();
    });
  }
}
