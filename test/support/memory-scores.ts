/** A score table in memory: for tests in virtual time. Each method is one step, so none is ever half-done. */
import { statusRank } from "../../lib/attempt/vocabulary.ts";
import { type Lease, type ScoreTable, StoreError, type SweepRecord } from "../../lib/platform/ports.ts";
import type { ScoreRow } from "../../lib/results/score-row.ts";

/** What every connection to one table shares. */
export class MemoryScores implements ScoreTable {
  readonly #sweeps = new Map<string, SweepRecord>();
  readonly #rows = new Map<string, ScoreRow>();
  readonly #leases = new Map<string, Lease>();

  async sweep(sweep: string): Promise<SweepRecord | null> {
    const record = this.#sweeps.get(sweep);
    return record ? structuredClone(record) : null;
  }

  async sweeps(): Promise<SweepRecord[]> {
    return structuredClone([...this.#sweeps.values()].sort((a, b) => (a.sweep < b.sweep ? -1 : 1)));
  }

  async startGeneration(expected: number, next: Parameters<ScoreTable["startGeneration"]>[1]): Promise<boolean> {
    const stored = this.#sweeps.get(next.sweep);
    if ((stored?.generation ?? 0) !== expected) return false;
    const held = [...this.#leases.values()].filter((lease) => lease.sweep === next.sweep);
    this.#sweeps.set(next.sweep, {
      ...structuredClone(next),
      reservedUsd: held.reduce((sum, lease) => sum + lease.reservedUsd, 0),
      spentUsd: stored?.spentUsd ?? 0,
      abortRequested: false,
    });
    return true;
  }

  async heartbeat(sweep: string, controller: SweepRecord["controller"], generation: number): Promise<boolean> {
    const record = this.#sweep(sweep);
    if (record.generation !== generation) return false;
    record.controller = structuredClone(controller);
    return true;
  }

  async requestAbort(sweep: string): Promise<boolean> {
    const record = this.#sweeps.get(sweep);
    if (record) record.abortRequested = true;
    return record !== undefined;
  }

  async reserve(sweep: string, usd: number): Promise<boolean> {
    const record = this.#sweep(sweep);
    const wanted = record.reservedUsd + record.spentUsd + usd;
    if (usd > 0 && record.capUsd !== null && wanted > record.capUsd + 1e-9) return false;
    record.reservedUsd = Math.max(0, cents(record.reservedUsd + usd));
    return true;
  }

  async openTry(row: ScoreRow, lease: Lease): Promise<boolean> {
    if (row.attempt !== lease.attempt || row.try !== lease.try || row.sweep !== lease.sweep) {
      throw new TypeError("the row came with the lease of another try");
    }
    const key = rowKey(row.sweep, row.attempt, row.try);
    if (this.#rows.has(key)) return false;
    this.#rows.set(key, structuredClone(row));
    this.#leases.set(leaseKey(lease.attempt, lease.try), structuredClone(lease));
    return true;
  }

  async closeTry(row: ScoreRow): Promise<boolean> {
    const key = rowKey(row.sweep, row.attempt, row.try);
    const stored = this.#rows.get(key);
    const judgedInVain = row.status === "unjudged" && stored?.status === "unjudged" && spent(row) > spent(stored);
    if (stored && statusRank(stored.status) >= statusRank(row.status) && !judgedInVain) return false;
    this.#rows.set(key, structuredClone(row));
    const lease = this.#leases.get(leaseKey(row.attempt, row.try));
    this.#leases.delete(leaseKey(row.attempt, row.try));
    const record = this.#sweeps.get(row.sweep);
    if (record) {
      record.reservedUsd = Math.max(0, cents(record.reservedUsd - (lease?.reservedUsd ?? 0)));
      record.spentUsd = Math.max(0, cents(record.spentUsd + spent(row) - (stored ? spent(stored) : 0)));
    }
    return true;
  }

  async tries(sweep: string, attempt: string): Promise<ScoreRow[]> {
    return (await this.#all(sweep)).filter((row) => row.attempt === attempt);
  }

  async *rows(sweep: string): AsyncIterable<ScoreRow> {
    // In pages, as tables are read: what others write behind the page is seen.
    let last: ScoreRow | undefined;
    for (;;) {
      const after = last;
      const page = (await this.#all(sweep)).filter((row) => !after || byTry(row, after) > 0).slice(0, 500);
      yield* page;
      last = page.at(-1);
      if (!last) return;
    }
  }

  async lease(attempt: string, tryNumber: number): Promise<Lease | null> {
    const lease = this.#leases.get(leaseKey(attempt, tryNumber));
    return lease ? structuredClone(lease) : null;
  }

  async leases(sweep: string): Promise<Lease[]> {
    const own = [...this.#leases.values()].filter((lease) => lease.sweep === sweep);
    return structuredClone(own.sort(byTry));
  }

  async updateLease(
    attempt: string,
    tryNumber: number,
    change: Parameters<ScoreTable["updateLease"]>[2],
  ): Promise<boolean> {
    const lease = this.#leases.get(leaseKey(attempt, tryNumber));
    if (lease) Object.assign(lease, change);
    return lease !== undefined;
  }

  async close(): Promise<void> {}

  #sweep(sweep: string): SweepRecord {
    const record = this.#sweeps.get(sweep);
    if (!record) throw new StoreError("not_found", `there is no sweep ${sweep}`);
    return record;
  }

  async #all(sweep: string): Promise<ScoreRow[]> {
    const own = [...this.#rows.values()].filter((row) => row.sweep === sweep);
    return structuredClone(own.sort(byTry));
  }
}

const rowKey = (sweep: string, attempt: string, tryNumber: number): string =>
  JSON.stringify([sweep, attempt, tryNumber]);
const leaseKey = (attempt: string, tryNumber: number): string => JSON.stringify([attempt, tryNumber]);
const byTry = (a: { attempt: string; try: number }, b: { attempt: string; try: number }): number =>
  a.attempt === b.attempt ? a.try - b.try : a.attempt < b.attempt ? -1 : 1;
const spent = (row: ScoreRow): number => row.usd.executor + row.usd.supervisor + row.usd.simulator;
/** Sums without binary dust, to a millionth of a cent. */
const cents = (usd: number): number => Math.round(usd * 1e8) / 1e8;
