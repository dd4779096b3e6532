/**
 * Entry of the process that decides checks (dist/checks-worker.js): it takes jobs over its channel and answers with one
 * outcome after the other, so that whoever stops it knows which check it hung on:
 * `checks-worker.js --serve <libsql> <seconds of a query>`.
 *
 * SQLite is native code without a limit of its own on time, so a database is read by this same file as a short process,
 * with a cleared environment: `checks-worker.js --query <libsql> <file>`, the query on standard input.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type Libsql from "libsql";
import { z } from "zod";
import { decideCheck, type QueryDatabase, QueryError } from "./decide.ts";
import type { CheckJob, CheckOutcome } from "./job.ts";
import { UnreadableFile } from "./read-file.ts";

/** To the worker. `checks`: ids to decide, in this order. It answers "ready" once, then each outcome. */
export interface WorkerRequest {
  job: CheckJob;
  checks: string[];
}

const queryAnswer = z.discriminatedUnion("status", [
  z.object({ status: z.literal("ok"), rows: z.array(z.array(z.unknown())) }),
  z.object({ status: z.enum(["syntax", "query", "database"]), message: z.string() }),
]);
/** Rows and bytes that a query may give: expected rows are few. */
const maxRows = 1001;
const maxAnswerBytes = 4 * 1024 * 1024;

/** How often a worker looks whether its parent is still there, while a check runs. */
const watchMs = 1000;

const [, , mode, libsql = "", operand = ""] = process.argv;
if (mode === "--serve") serve(queryInProcess(libsql, Number(operand)));
else if (mode === "--query") answerQuery(libsql, operand);

function serve(query: QueryDatabase): void {
  process.on("disconnect", () => process.exit());
  endWithParent();
  process.on("message", async ({ job, checks }: WorkerRequest) => {
    for (const id of checks) await send(await decideCheck(job, id, query));
  });
  void send("ready");
}

/** Resolves when the message is on its way: the next check may end this process. */
function send(message: CheckOutcome | "ready"): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

/** A check that hangs hears no disconnect, so a thread watches: no worker, nor its query, outlives a killed parent. */
function endWithParent(): void {
  const watcher = `
    const parent = ${process.ppid};
    setInterval(() => { if (process.ppid !== parent) process.kill(-process.pid, "SIGKILL"); }, ${watchMs});
  `;
  new Worker(watcher, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } }).unref();
}

function queryInProcess(libsql: string, seconds: number): QueryDatabase {
  return (database, query) => {
    const folder = mkdtempSync(join(tmpdir(), `proctor-${process.pid}-check-`));
    try {
      const file = join(folder, "evidence.sqlite");
      writeFileSync(file, database, { mode: 0o600 });
      const self = fileURLToPath(import.meta.url);
      const ended = spawnSync(process.execPath, ["--max-old-space-size=128", self, "--query", libsql, file], {
        input: query,
        env: {},
        timeout: seconds * 1000,
        killSignal: "SIGKILL",
        maxBuffer: maxAnswerBytes,
        stdio: ["pipe", "pipe", "ignore"],
      });
      if (ended.error || ended.status !== 0) {
        throw new QueryError(ended.signal ? `the query took more than ${seconds} s` : "the query ended its process");
      }
      const answer = queryAnswer.parse(JSON.parse(ended.stdout.toString("utf8")));
      if (answer.status === "ok") return answer.rows;
      // No database makes it a query: that is the check's own fault.
      if (answer.status === "syntax") throw new Error(`the query is no SQL: ${answer.message}`);
      throw answer.status === "query" ? new QueryError(answer.message) : new UnreadableFile(answer.message);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Read-only, without extensions (off unless asked for), ATTACH (the query is one SELECT) or functions in its schema. */
function answerQuery(libsql: string, file: string): void {
  const chunks: Buffer[] = [];
  process.stdin.on("data", (chunk: Buffer) => chunks.push(chunk));
  process.stdin.on("end", () => {
    process.stdout.write(JSON.stringify(runQuery(libsql, file, Buffer.concat(chunks).toString("utf8"))));
  });
}

function runQuery(libsql: string, file: string, query: string): z.infer<typeof queryAnswer> {
  let database: Libsql.Database;
  try {
    const Database = createRequire(libsql)(libsql) as typeof Libsql;
    database = new Database(`file:${file}?mode=ro&immutable=1`);
    database.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
  } catch (error) {
    return { status: "database", message: `it is no database that can be read: ${(error as Error).message}` };
  }
  try {
    const statement = database.prepare(query);
    const rows: unknown[][] = [];
    for (const row of statement.raw().iterate()) {
      if (rows.length >= maxRows) break;
      rows.push((row as unknown[]).map(plain));
    }
    return { status: "ok", rows };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const damaged = code !== undefined && /NOTADB|CORRUPT/.test(code);
    if (/syntax error|incomplete input|unrecognized token/.test(message)) return { status: "syntax", message };
    return { status: damaged ? "database" : "query", message };
  }
}

/** A column as JSON has it. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return value;
}
