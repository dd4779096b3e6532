import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { afterAll, describe, expect, it } from "vitest";
import { createChecksPool } from "../../../lib/platform/local/checks-pool.ts";
import type { CheckJob } from "../../../lib/roles/checks/job.ts";
import type { Check } from "../../../lib/roles/checks/schema.ts";

const pool = createChecksPool({ workers: 1, checkSeconds: 1, megabytes: 64 });
afterAll(() => pool.close());
const bundle = fileURLToPath(new URL("../../../dist/checks-worker.js", import.meta.url));

const job = (checks: Record<string, Check>, files: Record<string, Uint8Array | string> = {}): CheckJob => ({
  files: Object.entries(files).map(([path, bytes]) => ({
    path,
    content: { status: "ok", bytes: Uint8Array.from(Buffer.from(bytes)) },
  })),
  checks: Object.entries(checks).map(([id, check]) => ({ id, check })),
  toolCounts: {},
});
const expression = (text: string): Check => ({
  kind: "expression",
  files: { a: { file: "results/a", as: "json", optional: true } },
  expression: text,
});
const there: Check = { kind: "file_exists", file: "results/a" };

describe("checks in a worker", () => {
  it("come back in order, several jobs at once", async () => {
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        pool.evaluate(
          job({ x: expression(`$a = ${at}`), y: there, z: expression("$a < 5") }, { "results/a": `${at}` }),
        ),
      ),
    );
    for (const [at, outcomes] of results.entries()) {
      expect(outcomes.map((outcome) => [outcome.id, outcome.status === "decided" && outcome.credit])).toEqual([
        ["x", 1],
        ["y", 1],
        ["z", at < 5 ? 1 : 0],
      ]);
    }
  });

  it("one that runs over on this evidence counts as 0, and the others are decided", async () => {
    const redos: Check = { kind: "text_matches", file: "results/a", pattern: "^(a+)+$" };
    const outcomes = await pool.evaluate(
      job({ before: there, redos, after: there }, { "results/a": `${"a".repeat(40)}b` }),
    );
    expect(outcomes).toMatchObject([
      { id: "before", status: "decided", credit: 1 },
      { id: "redos", status: "evidence", note: "the check took more than 1 s" },
      { id: "after", status: "decided", credit: 1 },
    ]);
  });

  it("one that runs over on any evidence is broken", async () => {
    const endless = expression("($f := function($n) { $f($n + 1) }; $f(0))");
    const outcomes = await pool.evaluate(job({ endless, after: there }, { "results/a": "1" }));
    expect(outcomes).toMatchObject([
      { id: "endless", status: "broken" },
      { id: "after", status: "decided" },
    ]);
  });

  it.each([
    ["nested ranges", "$exists($a) ? $count([1..10000000].[1..10000000]) > 5 : false"],
    [
      "one long string",
      "($d := function($s, $n) { $n = 0 ? $s : $d($s & $s, $n - 1) }; $length($d('a', 28 * $a)) > 5)",
    ],
  ])("one that eats memory is ended, not this process: %s", async (_, text) => {
    const outcomes = await pool.evaluate(job({ hungry: expression(text), after: there }, { "results/a": "1" }));
    expect(outcomes).toMatchObject([
      { id: "hungry", status: "evidence", note: "the check used more than 64 MB of memory" },
      { id: "after", status: "decided", credit: 1 },
    ]);
  });

  it("one that eats memory on any evidence is broken", async () => {
    const hungry = expression("$count([1..10000000].[1..10000000]) > 5");
    const outcomes = await pool.evaluate(job({ hungry, after: there }, { "results/a": "1" }));
    expect(outcomes).toMatchObject([
      { id: "hungry", status: "broken", note: "the check used more than 64 MB of memory" },
      { id: "after", status: "decided", credit: 1 },
    ]);
  });

  it("an agent's number does not set how long a string becomes", async () => {
    const long = expression("$length($pad('a', $exists($a) ? $a : 1)) > 5");
    const [far] = await pool.evaluate(job({ long }, { "results/a": "500000000" }));
    expect(far).toMatchObject({ status: "evidence", note: expect.stringContaining("$pad to 500000000 characters") });
    const [near] = await pool.evaluate(job({ long }, { "results/a": "-6" }));
    expect(near).toMatchObject({ status: "decided", credit: 1 });
  });

  it("a worker that hangs does not outlive a killed parent", async () => {
    const redos: Check = { kind: "text_matches", file: "results/a", pattern: "^(a+)+$" };
    const hang = { job: job({ redos }), checks: ["redos"] };
    const script = `
      const request = ${JSON.stringify(hang)};
      const content = { status: "ok", bytes: Buffer.from("a".repeat(60) + "b") };
      request.job.files = [{ path: "results/a", content }];
      const options = { detached: true, serialization: "advanced", stdio: ["ignore", "ignore", "ignore", "ipc"] };
      const worker = require("node:child_process").fork(${JSON.stringify(bundle)}, ["--serve", "none", "1"], options);
      worker.once("message", () => worker.send(request, () => console.log(worker.pid)));
    `;
    const parent = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = (await once(parent.stdout, "data")) as [Buffer];
    const commandLine = `/proc/${Number(said.toString())}/cmdline`;
    // A process that has ended, but that nobody has waited for, has an empty one.
    const runs = () => existsSync(commandLine) && readFileSync(commandLine, "utf8") !== "";
    expect(runs()).toBe(true);
    parent.kill("SIGKILL");
    await expect.poll(runs, { timeout: 10_000 }).toBe(false);
  }, 20_000);

  it("sees no environment of ours", async () => {
    const outcomes = await pool.evaluate(job({ x: expression("$exists($process) or $exists(process)") }));
    expect(outcomes).toMatchObject([{ status: "decided", credit: 0 }]);
  });

  it("a closed pool rejects what comes", async () => {
    const closed = createChecksPool();
    await closed.close();
    await expect(closed.evaluate(job({ x: there }))).rejects.toThrow("closed");
  });
});

describe("queries over a database", () => {
  const folder = mkdtempSync(join(tmpdir(), "proctor-test-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let made = 0;
  const database = (...statements: string[]): Buffer => {
    const path = join(folder, `${made++}.sqlite`);
    const opened = new Database(path);
    for (const statement of statements) opened.exec(statement);
    opened.close();
    return readFileSync(path);
  };
  const query = (text: string, rows: (string | number | null)[][]): Check => ({
    kind: "sqlite_query",
    file: "results/a",
    query: text,
    rows,
  });
  const outcome = async (check: Check, bytes: Uint8Array | string) =>
    (await pool.evaluate(job({ x: check }, { "results/a": bytes })))[0];

  it("give credit for the expected rows", async () => {
    const bytes = database("create table t (name text, n int)", "insert into t values ('a', 1), ('b', null)");
    const rows = query("select name, n from t order by name", [
      ["a", 1],
      ["b", null],
    ]);
    expect(await outcome(rows, bytes)).toMatchObject({ status: "decided", credit: 1 });
    expect(await outcome(query("select count(*) from t", [[3]]), bytes)).toMatchObject({
      status: "decided",
      credit: 0,
      note: "the query gave [[2]]",
    });
  });

  it("take what is no database, and a table that is missing, for the agent's", async () => {
    const rows = query("select n from t", [[1]]);
    expect(await outcome(rows, "no database ".repeat(1000))).toMatchObject({ status: "evidence" });
    expect(await outcome(rows, "")).toMatchObject({ status: "evidence" });
    expect(await outcome(rows, database("create table u (n int)"))).toMatchObject({ status: "evidence" });
  });

  it("take what is no SQL for ours", async () => {
    const bytes = database("create table t (n int)");
    expect(await outcome(query("select n frm t where", [[1]]), bytes)).toMatchObject({ status: "broken" });
  });

  it("end a database that never ends", async () => {
    const bytes = database(
      "create view t as with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) as n from c",
    );
    expect(await outcome(query("select n from t", [[1]]), bytes)).toMatchObject({ status: "evidence" });
  });
});
