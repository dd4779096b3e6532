/** Watches a call for silence. */
import type { Clock } from "../../platform/ports.ts";

/** Aborts when nothing was heard for a while, or when the call is cut. */
export class Silence {
  readonly #abort = new AbortController();
  readonly #end = new AbortController();
  #lastHeard: number;
  #paused = false;
  expired = false;

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
    private readonly cut: AbortSignal,
  ) {
    this.#lastHeard = clock.now();
    if (cut.aborted) this.#abort.abort();
    cut.addEventListener("abort", this.#onCut);
    void this.#watch();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly #onCut = (): void => this.#abort.abort();

  /** One timer for the whole call, however many pieces its answer comes in. */
  async #watch(): Promise<void> {
    for (;;) {
      await this.clock.sleep(Math.max(1, this.#lastHeard + this.ms - this.clock.now()), this.#end.signal);
      if (this.#end.signal.aborted || this.#abort.signal.aborted) return;
      if (this.#paused) this.#lastHeard = this.clock.now();
      else if (this.clock.now() - this.#lastHeard >= this.ms) {
        this.expired = true;
        this.#abort.abort();
        return;
      }
    }
  }

  reset(): void {
    this.#paused = false;
    this.#lastHeard = this.clock.now();
  }

  pause(): void {
    this.#paused = true;
  }

  end(): void {
    this.#end.abort();
    this.cut.removeEventListener("abort", this.#onCut);
  }
}
