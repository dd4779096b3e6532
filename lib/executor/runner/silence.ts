/**
 * A bound on how long the other side may say nothing. Only the time in which we wait for it counts: a store that is slow
 * to take what came is not the other side's silence.
 */
import type { Clock } from "../../platform/ports.ts";

export class Silence {
  readonly #over = new AbortController();
  #heard = false;

  constructor(
    private readonly clock: Clock,
    readonly limitMs: number,
  ) {}

  /** Aborted once the other side was silent for too long: to be given to what waits for it. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get tooLong(): boolean {
    return this.#over.signal.aborted;
  }

  /** Whether any byte of a stream came. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Waits for what comes; `signal` is aborted when that takes longer than the limit. */
  async bound<T>(coming: Promise<T>): Promise<T> {
    const came = new AbortController();
    void this.clock.sleep(this.limitMs, came.signal).then(() => {
      if (!came.signal.aborted) this.#over.abort();
    });
    try {
      return await coming;
    } finally {
      came.abort();
    }
  }

  /** The same stream, with each wait for its next chunk bounded. */
  async *chunks(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const chunks = stream[Symbol.asyncIterator]();
    for (;;) {
      const next = await this.bound(chunks.next());
      if (next.done) return;
      this.#heard = true;
      yield next.value;
    }
  }
}
