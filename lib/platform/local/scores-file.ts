/**
 * The SQLite file of scores.sqlite: opening it, its schema and version, and its failures in our words. Write-ahead log,
 * so that readers never wait for a writer; `synchronous = NORMAL`, so that a crash of a process loses nothing and a
 * crash of the machine at most the last commits, never the file. `secure_delete`, so that a lease's secrets are gone
 * with it: what is deleted is overwritten, and the log that still has it goes when the last process closes the file.
 */
import { closeSync, openSync } from "node:fs";
import Database from "libsql";
import { StoreError } from "../ports.ts";

/** Raised with every change of the schema. A file with a higher number is left alone. */
const schemaVersion = 2;
/** "Prct": tells our files from other SQLite databases. */
const applicationId = 0x50726374;
/** How long a writer waits for another's transaction, which takes less than a millisecond. */
const busyMs = 10_000;

/** Dollars are whole numbers of this part of a dollar, so that sums of any order are equal. */
const unitsPerUsd = 1e9;
export const toUnits = (usd: number): number => Math.round(usd * unitsPerUsd);
export const toUsd = (units: number): number => units / unitsPerUsd;

const schema = `
  CREATE TABLE sweeps (
    sweep TEXT PRIMARY KEY, generation INTEGER NOT NULL,
    digest TEXT NOT NULL, fixed TEXT NOT NULL, cap INTEGER, reserved INTEGER NOT NULL, spent INTEGER NOT NULL,
    planned INTEGER NOT NULL, controller TEXT, abort INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE tries (
    sweep TEXT NOT NULL, attempt TEXT NOT NULL, try INTEGER NOT NULL, rank INTEGER NOT NULL,
    spent INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (sweep, attempt, try)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE leases (
    attempt TEXT NOT NULL, try INTEGER NOT NULL, sweep TEXT NOT NULL, generation INTEGER NOT NULL, round INTEGER NOT NULL,
    mailbox TEXT NOT NULL, seal_key TEXT NOT NULL, turn_secret TEXT NOT NULL, turn_token TEXT, reserved INTEGER NOT NULL,
    executor TEXT, expires_at TEXT NOT NULL, PRIMARY KEY (attempt, try)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX leases_of_sweep ON leases (sweep);
`;

/**
 * Opens or makes the file; several processes may do so at once.
 * @throws StoreError unavailable for a file that is no database of ours, is damaged, or was written by a later version;
 *   no_space when there is no room to make it
 */
export function openScoresFile(path: string): Database.Database {
  return guarded(path, () => {
    makePrivate(path);
    const database = new Database(path, { timeout: busyMs });
    try {
      useWriteAheadLog(database);
      database.exec("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA foreign_keys = OFF");
      ensureSchema(database, path);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Leases hold secrets of tries that run, and the folder may be open to others. SQLite makes its logs with the same mode. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch {
    // It is there, or can not be made: SQLite says which.
  }
}

/** Changing the journal needs the file for oneself and does not wait for it: it is asked for until it is given. */
function useWriteAheadLog(database: Database.Database): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let left = busyMs; ; left -= 5) {
    try {
      database.prepare("PRAGMA journal_mode = WAL").get();
      return;
    } catch (error) {
      if (sqliteCode(error) !== "SQLITE_BUSY" || left <= 0) throw error;
      Atomics.wait(pause, 0, 0, 5);
    }
  }
}

function ensureSchema(database: Database.Database, path: string): void {
  const number = (pragma: string): number => Number(firstValue(database.prepare(`PRAGMA ${pragma}`).get()));
  if (number("user_version") === 0) {
    // Looked at again under the lock: another process may have made it meanwhile.
    inTransaction(database, () => {
      if (number("user_version") !== 0) return;
      if (firstValue(database.prepare("SELECT count(*) FROM sqlite_schema").get()) !== 0) return;
      database.exec(`${schema} PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`);
    });
  }
  if (number("application_id") !== applicationId) {
    throw new StoreError(
      "unavailable",
      `${path} is an SQLite database of another program; choose another folder with --runs`,
    );
  }
  const version = number("user_version");
  if (version !== schemaVersion) {
    throw new StoreError(
      "unavailable",
      `${path} has scores of form ${version}, and this Proctor knows form ${schemaVersion}: use the ${version > schemaVersion ? "newer" : "older"} Proctor that wrote it, or another folder with --runs`,
    );
  }
}

/** Runs `work` in one transaction that has the write lock from its start. */
export function inTransaction<T>(database: Database.Database, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // A failed COMMIT of a full disk has rolled back already.
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** Runs `work` with SQLite's failures in our words. @throws StoreError no_space, unavailable */
export function guarded<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw scoresError(path, error);
  }
}

function scoresError(path: string, error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const code = sqliteCode(error);
  const no = (kind: "no_space" | "unavailable", what: string): StoreError =>
    new StoreError(kind, what, { cause: error });
  if (code === "SQLITE_FULL" || /disk is full|No space left/i.test(error.message)) {
    return no("no_space", `${path} can not be written: the disk is full; make room and run the same again`);
  }
  if (code === "SQLITE_NOTADB" || code?.startsWith("SQLITE_CORRUPT")) {
    return no(
      "unavailable",
      `${path} is damaged or no SQLite database (${error.message}); put back a copy, or begin anew in another folder with --runs`,
    );
  }
  if (code?.startsWith("SQLITE_BUSY")) {
    return no("unavailable", `${path} was locked by another process for ${busyMs / 1000} s; is one of them stopped?`);
  }
  if (code?.startsWith("SQLITE_") || /ConnectionFailed/.test(error.message)) {
    return no("unavailable", `${path} can not be used: ${error.message}`);
  }
  return error;
}

function sqliteCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** The first column of a row. */
export function firstValue(row: unknown): unknown {
  return typeof row === "object" && row !== null ? Object.values(row)[0] : undefined;
}
