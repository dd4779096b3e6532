/** Places for so many attempts at once, over all lanes. Who waits is let in by turn. */
export class Slots {
  readonly #waiting: ((admitted: boolean) => void)[] = [];
  #free: number;
  #closed = false;

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves to what gives the place back, once there is one; to null when none will be given any more, or nobody wants it. */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (this.#closed || signal.aborted) return null;
    if (this.#free > 0) this.#free -= 1;
    else if (!(await this.#turn(signal))) return null;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      if (next) next(true);
      else this.#free += 1;
    };
  }

  /** Gives no further place; who waits goes away with none. */
  close(): void {
    this.#closed = true;
    for (const next of this.#waiting.splice(0)) next(false);
  }

  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        const place = this.#waiting.indexOf(answer);
        if (place >= 0) this.#waiting.splice(place, 1);
        resolve(false);
      };
      const answer = (admitted: boolean): void => {
        signal.removeEventListener("abort", leave);
        resolve(admitted);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(answer);
    });
  }
}
