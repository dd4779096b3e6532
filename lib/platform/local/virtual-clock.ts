/**
 * Time that passes by itself as soon as nothing is left to do: for tests and simulations. All that is ready runs first
 * (microtasks, and what setImmediate has queued); then time jumps to the next timer. Timers of one instant fire in the
 * order in which they were set, each with all its consequences before the next. Work that waits for real I/O is not
 * seen as work: time would run ahead of it, so use `manual` there and `advance` by hand.
 */
import type { Clock } from "../ports.ts";

interface Timer {
  at: number;
  order: number;
  /** Null once it fired or was cancelled. */
  fire: (() => void) | null;
}

export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  #cancelled = 0;
  #timers: Timer[] = [];
  #ticking = false;
  readonly #manual: boolean;

  /** @param start milliseconds since 1970 at which time begins. @param mode `manual`: time moves by `advance` alone. */
  constructor(start: number = Date.UTC(2026, 0, 1), mode: "automatic" | "manual" = "automatic") {
    this.#now = start;
    this.#manual = mode === "manual";
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const cancel = (): void => {
        timer.fire = null;
        this.#cancelled += 1;
        if (this.#cancelled > 64 && this.#cancelled > this.#timers.length / 2) this.#dropCancelled();
        resolve();
      };
      const timer: Timer = {
        at: this.#now + Math.max(0, ms),
        order: this.#order++,
        fire: () => {
          signal?.removeEventListener("abort", cancel);
          resolve();
        },
      };
      signal?.addEventListener("abort", cancel, { once: true });
      this.#push(timer);
      if (!this.#manual) this.#tick();
    });
  }

  /** Timers that are still to fire. */
  get pending(): number {
    return this.#timers.length - this.#cancelled;
  }

  /** Lets `ms` pass: every timer in that span fires, with all its consequences, at its own time. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    while (this.#next() !== undefined && (this.#next() as Timer).at <= end) {
      this.#fireNext();
      await settled();
    }
    this.#now = Math.max(this.#now, end);
  }

  #tick(): void {
    if (this.#ticking) return;
    this.#ticking = true;
    setImmediate(() => {
      this.#ticking = false;
      if (this.#next() === undefined) return;
      this.#fireNext();
      this.#tick();
    });
  }

  /** The next timer that is not cancelled. */
  #next(): Timer | undefined {
    while (this.#timers.length > 0 && this.#timers[0]?.fire === null) {
      this.#pop();
      this.#cancelled -= 1;
    }
    return this.#timers[0];
  }

  #fireNext(): void {
    const timer = this.#pop();
    this.#now = Math.max(this.#now, timer.at);
    const fire = timer.fire;
    timer.fire = null;
    fire?.();
  }

  #dropCancelled(): void {
    const kept = this.#timers.filter((timer) => timer.fire !== null);
    // A sorted array is a heap.
    this.#timers = kept.sort((a, b) => a.at - b.at || a.order - b.order);
    this.#cancelled = 0;
  }

  #push(timer: Timer): void {
    const heap = this.#timers;
    let index = heap.length;
    heap.push(timer);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Timer;
      if (!before(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): Timer {
    const heap = this.#timers;
    const top = heap[0] as Timer;
    const last = heap.pop() as Timer;
    if (heap.length === 0) return top;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as Timer, heap[child] as Timer)) child += 1;
      if (!before(heap[child] as Timer, last)) break;
      heap[index] = heap[child] as Timer;
      index = child;
    }
    heap[index] = last;
    return top;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Resolves when all microtasks, and what they set off, have run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
