/**
 * The score table on one SQLite file. What changes rows is one transaction that holds the write lock from its start, so
 * its conditions are true when it writes, whoever else runs; several processes use the file at once.
 */
import type Database from "libsql";
import { z } from "zod";
import { statusRank } from "../../attempt/vocabulary.ts";
import { type ScoreRow, scoreRow } from "../../results/score-row.ts";
import { type Lease, type ScoreTable, StoreError, type SweepRecord } from "../ports.ts";
import { firstValue, guarded, inTransaction, openScoresFile, toUnits, toUsd } from "./scores-file.ts";

/**
 * Opens `path`, which is made when it is not there.
 * @throws StoreError unavailable (damaged, another program's, a later version's, locked), no_space
 */
export function openScoreTable(path: string): ScoreTable {
  return new SqliteScoreTable(path, openScoresFile(path));
}

const controller = z.object({ pid: z.number(), host: z.string(), startedAt: z.string(), heartbeatAt: z.string() });
const sweepColumns = z.object({
  sweep: z.string(),
  generation: z.number(),
  digest: z.string(),
  fixed: z.string(),
  cap: z.number().nullable(),
  reserved: z.number(),
  spent: z.number(),
  planned: z.number(),
  controller: z.string().nullable(),
  abort: z.number(),
});
const leaseColumns = z.object({
  sweep: z.string(),
  attempt: z.string(),
  try: z.number(),
  generation: z.number(),
  round: z.number(),
  mailbox: z.string(),
  seal_key: z.string(),
  turn_secret: z.string(),
  turn_token: z.string().nullable(),
  reserved: z.number(),
  executor: z.string().nullable(),
  expires_at: z.string(),
});
const tryColumns = z.object({ attempt: z.string(), try: z.number(), rank: z.number(), spent: z.number() });
const rowColumn = z.object({ row: z.string() });
/** Rows that `rows` reads at a time: no read stays open while its caller works. */
const pageRows = 500;

class SqliteScoreTable implements ScoreTable {
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();

  constructor(path: string, database: Database.Database) {
    this.#path = path;
    this.#database = database;
  }

  async sweep(sweep: string): Promise<SweepRecord | null> {
    const row = this.#get("SELECT * FROM sweeps WHERE sweep = ?", sweep);
    return row === undefined ? null : toSweep(row);
  }

  async sweeps(): Promise<SweepRecord[]> {
    return this.#all("SELECT * FROM sweeps ORDER BY sweep").map(toSweep);
  }

  async startGeneration(expected: number, next: Parameters<ScoreTable["startGeneration"]>[1]): Promise<boolean> {
    const cap = next.capUsd === null ? null : toUnits(next.capUsd);
    const holder = next.controller === null ? null : JSON.stringify(next.controller);
    return this.#change(() => {
      const stored = this.#get("SELECT generation FROM sweeps WHERE sweep = ?", next.sweep);
      if (stored === undefined) {
        if (expected !== 0) return false;
        this.#run(
          "INSERT INTO sweeps VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, 0)",
          next.sweep,
          next.generation,
          next.digest,
          next.fixed,
          cap,
          next.planned,
          holder,
        );
        return true;
      }
      if (firstValue(stored) !== expected) return false;
      // Dollars that a killed process had reserved without opening a try are free again: only leases hold some.
      this.#run(
        `UPDATE sweeps SET generation = ?, digest = ?, fixed = ?, cap = ?, planned = ?, controller = ?, abort = 0,
           reserved = (SELECT coalesce(sum(leases.reserved), 0) FROM leases WHERE leases.sweep = sweeps.sweep)
         WHERE sweep = ?`,
        next.generation,
        next.digest,
        next.fixed,
        cap,
        next.planned,
        holder,
        next.sweep,
      );
      return true;
    });
  }

  async heartbeat(sweep: string, holder: SweepRecord["controller"], generation: number): Promise<boolean> {
    const text = holder === null ? null : JSON.stringify(holder);
    const told = "UPDATE sweeps SET controller = ? WHERE sweep = ? AND generation = ?";
    if (this.#run(told, text, sweep, generation) === 1) return true;
    if (this.#get("SELECT 1 FROM sweeps WHERE sweep = ?", sweep) === undefined) throw noSweep(sweep);
    return false;
  }

  async requestAbort(sweep: string): Promise<boolean> {
    return this.#run("UPDATE sweeps SET abort = 1 WHERE sweep = ?", sweep) === 1;
  }

  async reserve(sweep: string, usd: number): Promise<boolean> {
    const units = toUnits(usd);
    return this.#change(() => {
      const taken = this.#run(
        `UPDATE sweeps SET reserved = max(0, reserved + ?)
         WHERE sweep = ? AND (? <= 0 OR cap IS NULL OR reserved + spent + ? <= cap)`,
        units,
        sweep,
        units,
        units,
      );
      if (taken === 0 && this.#get("SELECT 1 FROM sweeps WHERE sweep = ?", sweep) === undefined) throw noSweep(sweep);
      return taken === 1;
    });
  }

  async openTry(row: ScoreRow, lease: Lease): Promise<boolean> {
    if (row.attempt !== lease.attempt || row.try !== lease.try || row.sweep !== lease.sweep) {
      throw new TypeError(`the row of ${row.attempt} try ${row.try} came with the lease of another try`);
    }
    return this.#change(() => {
      const opened = this.#run(
        "INSERT INTO tries VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        row.sweep,
        row.attempt,
        row.try,
        statusRank(row.status),
        spentUnits(row),
        JSON.stringify(row),
      );
      if (opened === 0) return false;
      this.#run(
        "INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        lease.attempt,
        lease.try,
        lease.sweep,
        lease.generation,
        lease.round,
        lease.mailbox,
        lease.sealKey,
        lease.turnSecret,
        lease.turnToken,
        toUnits(lease.reservedUsd),
        lease.executor,
        lease.expiresAt,
      );
      return true;
    });
  }

  async closeTry(row: ScoreRow): Promise<boolean> {
    const rank = statusRank(row.status);
    const spent = spentUnits(row);
    return this.#change(() => {
      const found = this.#get(
        "SELECT attempt, try, rank, spent FROM tries WHERE sweep = ? AND attempt = ? AND try = ?",
        row.sweep,
        row.attempt,
        row.try,
      );
      const stored = found === undefined ? null : tryColumns.parse(found);
      const judgedInVain = row.status === "unjudged" && stored?.rank === rank && spent > stored.spent;
      if (stored && stored.rank >= rank && !judgedInVain) return false;
      this.#run(
        "INSERT INTO tries VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rank = excluded.rank, spent = excluded.spent, row = excluded.row",
        row.sweep,
        row.attempt,
        row.try,
        rank,
        spent,
        JSON.stringify(row),
      );
      const lease = this.#get("SELECT reserved FROM leases WHERE attempt = ? AND try = ?", row.attempt, row.try);
      const reserved = lease === undefined ? 0 : Number(firstValue(lease));
      if (lease !== undefined) this.#run("DELETE FROM leases WHERE attempt = ? AND try = ?", row.attempt, row.try);
      // A row that is judged again adds only what the new judging cost.
      const added = spent - (stored?.spent ?? 0);
      this.#run(
        "UPDATE sweeps SET reserved = max(0, reserved - ?), spent = max(0, spent + ?) WHERE sweep = ?",
        reserved,
        added,
        row.sweep,
      );
      return true;
    });
  }

  async tries(sweep: string, attempt: string): Promise<ScoreRow[]> {
    return this.#all("SELECT row FROM tries WHERE sweep = ? AND attempt = ? ORDER BY try", sweep, attempt).map((row) =>
      this.#row(row),
    );
  }

  async *rows(sweep: string): AsyncIterable<ScoreRow> {
    let after: [attempt: string, tryNumber: number] = ["", 0];
    for (;;) {
      const page = this.#all(
        "SELECT row FROM tries WHERE sweep = ? AND (attempt, try) > (?, ?) ORDER BY attempt, try LIMIT ?",
        sweep,
        ...after,
        pageRows,
      ).map((row) => this.#row(row));
      yield* page;
      const last = page.at(-1);
      if (page.length < pageRows || !last) return;
      after = [last.attempt, last.try];
    }
  }

  async lease(attempt: string, tryNumber: number): Promise<Lease | null> {
    const row = this.#get("SELECT * FROM leases WHERE attempt = ? AND try = ?", attempt, tryNumber);
    return row === undefined ? null : toLease(row);
  }

  async leases(sweep: string): Promise<Lease[]> {
    return this.#all("SELECT * FROM leases WHERE sweep = ? ORDER BY attempt, try", sweep).map(toLease);
  }

  async updateLease(
    attempt: string,
    tryNumber: number,
    change: Parameters<ScoreTable["updateLease"]>[2],
  ): Promise<boolean> {
    const fields: [column: string, value: string | null][] = [];
    if (change.turnToken !== undefined) fields.push(["turn_token", change.turnToken]);
    if (change.executor !== undefined) fields.push(["executor", change.executor]);
    if (change.expiresAt !== undefined) fields.push(["expires_at", change.expiresAt]);
    if (fields.length === 0) return (await this.lease(attempt, tryNumber)) !== null;
    const set = fields.map(([column]) => `${column} = ?`).join(", ");
    const values = fields.map(([, value]) => value);
    return this.#run(`UPDATE leases SET ${set} WHERE attempt = ? AND try = ?`, ...values, attempt, tryNumber) === 1;
  }

  async close(): Promise<void> {
    this.#statements.clear();
    if (this.#database.open) this.#database.close();
  }

  #statement(sql: string): Database.Statement {
    const known = this.#statements.get(sql);
    if (known) return known;
    const made = this.#database.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }

  #get(sql: string, ...values: unknown[]): unknown {
    return guarded(this.#path, () => this.#statement(sql).get(...values));
  }

  #all(sql: string, ...values: unknown[]): unknown[] {
    return guarded(this.#path, () => this.#statement(sql).all(...values));
  }

  /** Number of rows that were changed. */
  #run(sql: string, ...values: unknown[]): number {
    return guarded(this.#path, () => this.#statement(sql).run(...values).changes);
  }

  #change<T>(work: () => T): T {
    return guarded(this.#path, () => inTransaction(this.#database, work));
  }

  /** A stored row. @throws StoreError unavailable for one that is not of our form: the file was changed by hand. */
  #row(found: unknown): ScoreRow {
    const { row } = rowColumn.parse(found);
    const parsed = scoreRow.safeParse(JSON.parse(row));
    if (parsed.success) return parsed.data;
    throw new StoreError("unavailable", `${this.#path} has a row that is not of its form: ${row.slice(0, 200)}`, {
      cause: parsed.error,
    });
  }
}

function toSweep(row: unknown): SweepRecord {
  const stored = sweepColumns.parse(row);
  return {
    sweep: stored.sweep,
    generation: stored.generation,
    digest: stored.digest,
    fixed: stored.fixed,
    capUsd: stored.cap === null ? null : toUsd(stored.cap),
    reservedUsd: toUsd(stored.reserved),
    spentUsd: toUsd(stored.spent),
    planned: stored.planned,
    controller: stored.controller === null ? null : controller.parse(JSON.parse(stored.controller)),
    abortRequested: stored.abort === 1,
  };
}

function toLease(row: unknown): Lease {
  const stored = leaseColumns.parse(row);
  return {
    sweep: stored.sweep,
    attempt: stored.attempt,
    try: stored.try,
    generation: stored.generation,
    round: stored.round,
    mailbox: stored.mailbox,
    sealKey: stored.seal_key,
    turnSecret: stored.turn_secret,
    turnToken: stored.turn_token,
    reservedUsd: toUsd(stored.reserved),
    executor: stored.executor,
    expiresAt: stored.expires_at,
  };
}

/** What a try has cost so far, all roles. */
function spentUnits(row: ScoreRow): number {
  return toUnits(row.usd.executor + row.usd.supervisor + row.usd.simulator);
}

function noSweep(sweep: string): StoreError {
  return new StoreError("not_found", `there is no sweep ${sweep}`);
}
