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

/** A timer that is this much late has not come late by itself: the process was stopped, or too busy to see anything. */
const lateMs = 1000;
/** What arrived meanwhile is read within that. */
const catchUpMs = 2000;

/**
 * Sleeps until a limit is over. A process that was stopped (Ctrl-Z, a machine that slept) finds all its limits over when
 * it goes on, and the answers that kept them still unread: these come first.
 * @param until milliseconds since 1970
 */
export async function limitOver(clock: Clock, until: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(until - clock.now(), signal);
  if (!signal.aborted && clock.now() - until > lateMs) await clock.sleep(catchUpMs, signal);
}

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
      void limitOver(clock, clock.now() + limit.ms, inner.signal).then(() => {
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
