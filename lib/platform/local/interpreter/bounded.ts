/** Work that ends with the first of three: its result, its time limit, the end of what it belongs to. */
import type { Clock } from "../../ports.ts";

/** The execution, or the Map around this state, ended: nothing here runs on, and no Catch sees it. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  constructor() {
    super("the execution that this belongs to has ended");
  }
}

/** One reason for all: making a DOMException each time costs more than the rest of an abort. */
const noLongerWanted = "the result is no longer wanted";

/**
 * @param work is handed a signal that fires as soon as its result is no longer wanted (or when it has given one)
 * @param limit milliseconds, and the error when they are over; null: no limit
 * @throws Interrupted when `outer` fires first
 */
export function bounded<T>(
  clock: Clock,
  outer: AbortSignal,
  limit: { ms: number; error: () => Error } | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (outer.aborted) return reject(new Interrupted());
    const inner = new AbortController();
    let open = true;
    const finish = (): boolean => {
      if (!open) return false;
      open = false;
      outer.removeEventListener("abort", interrupt);
      inner.abort(noLongerWanted);
      return true;
    };
    const interrupt = (): void => {
      if (finish()) reject(new Interrupted());
    };
    outer.addEventListener("abort", interrupt, { once: true });
    if (limit !== null) {
      void clock.sleep(limit.ms, inner.signal).then(() => {
        if (finish()) reject(limit.error());
      });
    }
    work(inner.signal).then(
      (value) => {
        if (finish()) resolve(value);
      },
      (error: unknown) => {
        if (finish()) reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}

/** Sleeps, unless what it belongs to ends first. @throws Interrupted */
export async function pause(clock: Clock, outer: AbortSignal, ms: number): Promise<void> {
  if (outer.aborted) throw new Interrupted();
  if (ms > 0) await clock.sleep(ms, outer);
  if (outer.aborted) throw new Interrupted();
}
