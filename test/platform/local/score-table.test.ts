import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openScoreTable } from "../../../lib/platform/local/score-table.ts";
import { guarded, inTransaction, openScoresFile } from "../../../lib/platform/local/scores-file.ts";
import type { ScoreTable } from "../../../lib/platform/ports.ts";
import { exampleLease, exampleRow, exampleSweep, scoreTableContract } from "../contract/score-table.ts";
import { bundleModule } from "./bundle-module.ts";
import { type TemporaryFolder, temporaryFolder } from "./temporary-folder.ts";

scoreTableContract("SQLite", async () => {
  const folder = temporaryFolder();
  const opened: ScoreTable[] = [];
  return {
    connect: async () => {
      const table = openScoreTable(join(folder.path, "scores.sqlite"));
      opened.push(table);
      return table;
    },
    close: async () => {
      for (const table of opened) await table.close();
      folder.remove();
    },
  };
});

describe("score table on SQLite", () => {
  let folder: TemporaryFolder;
  let path: string;
  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder.path, "scores.sqlite");
  });
  afterEach(() => folder.remove());

  it("is for its user's eyes alone, since leases hold secrets", async () => {
    const table = openScoreTable(path);
    await table.startGeneration(0, exampleSweep);
    for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o077).toBe(0);
    await table.close();
  });

  it("refuses a file of a later version", async () => {
    const database = openScoresFile(path);
    database.exec("PRAGMA user_version = 7");
    database.close();
    expect(() => openScoreTable(path)).toThrow(/form 7.*knows form 2.*newer Proctor/);
  });

  it("refuses another program's database", () => {
    const database = new Database(path);
    database.exec("CREATE TABLE bookmarks (url TEXT)");
    database.close();
    expect(() => openScoreTable(path)).toThrow(/another program.*--runs/);
  });

  it("refuses what is no database, and a folder in its place", () => {
    writeFileSync(path, "garbage".repeat(1000));
    expect(() => openScoreTable(path)).toThrow(expect.objectContaining({ code: "unavailable" }));
    expect(() => openScoreTable(path)).toThrow(/damaged or no SQLite database/);
    rmSync(path);
    mkdirSync(path);
    expect(() => openScoreTable(path)).toThrow(expect.objectContaining({ code: "unavailable" }));
  });

  it("says that a damaged file is damaged", async () => {
    const table = openScoreTable(path);
    for (let at = 0; at < 200; at++) await table.closeTry(exampleRow({ attempt: `a${at}`, status: "pass" }));
    await table.close();
    const log = openScoresFile(path);
    log.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
    log.close();
    const bytes = readFileSync(path);
    bytes.fill(0xff, 3 * 4096);
    writeFileSync(path, bytes);
    const read = async (): Promise<number> => {
      const again = openScoreTable(path);
      try {
        let rows = 0;
        for await (const _ of again.rows("night")) rows++;
        return rows;
      } finally {
        await again.close();
      }
    };
    await expect(read()).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("damaged") });
  });

  it("says no_space when the disk is full, and loses nothing", async () => {
    const table = openScoreTable(path);
    await table.startGeneration(0, exampleSweep);
    // A limit of pages fails as a full disk does. It holds for one connection, so the writes are made on it directly.
    const full = openScoresFile(path);
    full.exec("PRAGMA max_page_count = 20");
    const insert = full.prepare("INSERT INTO tries VALUES ('night', ?, 1, 0, 0, ?)");
    const fill = (): void => {
      for (let at = 0; at < 1000; at++) {
        guarded(path, () => inTransaction(full, () => insert.run(`a${at}`, JSON.stringify(exampleRow()))));
      }
    };
    expect(fill).toThrow(expect.objectContaining({ name: "StoreError", code: "no_space" }));
    full.close();
    expect(await table.closeTry(exampleRow({ attempt: "b", status: "pass" }))).toBe(true);
    expect(await table.sweep("night")).toMatchObject({ generation: 1 });
    await table.close();
  });

  it("several processes keep every row, and the cap, to the last", async () => {
    const bundle = join(folder.path, "table.mjs");
    await bundleModule("lib/platform/local/score-table.ts", bundle);
    const script = join(folder.path, "worker.mjs");
    writeFileSync(
      script,
      `import { openScoreTable } from ${JSON.stringify(bundle)};
       const { path, row, lease } = JSON.parse(process.argv[2]);
       const table = openScoreTable(path);
       const won = { opened: 0, closed: 0, reserved: 0 };
       for (let at = 0; at < 100; at++) {
         const attempt = "a" + at;
         if (await table.reserve("night", 0.01)) won.reserved++;
         if (await table.openTry({ ...row, attempt }, { ...lease, attempt })) won.opened++;
         if (await table.closeTry({ ...row, attempt, status: "pass", reason: String(process.pid) })) won.closed++;
       }
       await table.close();
       process.stdout.write(JSON.stringify(won));`,
    );
    const table = openScoreTable(path);
    await table.startGeneration(0, { ...exampleSweep, capUsd: 1.5 });
    const argument = JSON.stringify({ path, row: exampleRow(), lease: exampleLease() });
    const results = await Promise.all([1, 2, 3].map(() => runScript(script, argument)));
    const sum = (name: string): number => results.reduce((total, result) => total + result[name]!, 0);
    expect(sum("opened")).toBe(100);
    expect(sum("closed")).toBe(100);
    expect(sum("reserved")).toBe(150);
    let rows = 0;
    for await (const row of table.rows("night")) rows += row.status === "pass" ? 1 : 0;
    expect(rows).toBe(100);
    expect(await table.leases("night")).toEqual([]);
    await table.close();
  });

  it("several processes may make the file at once", async () => {
    const bundle = join(folder.path, "table.mjs");
    await bundleModule("lib/platform/local/score-table.ts", bundle);
    const script = join(folder.path, "opener.mjs");
    writeFileSync(
      script,
      `import { openScoreTable } from ${JSON.stringify(bundle)};
       const table = openScoreTable(process.argv[2]);
       await table.sweeps();
       await table.close();
       process.stdout.write("{}");`,
    );
    await Promise.all([1, 2, 3, 4].map(() => runScript(script, path)));
  });

  it("a killed writer leaves whole rows or none, and no lock", async () => {
    const bundle = join(folder.path, "table.mjs");
    await bundleModule("lib/platform/local/score-table.ts", bundle);
    const script = join(folder.path, "writer.mjs");
    writeFileSync(
      script,
      `import { openScoreTable } from ${JSON.stringify(bundle)};
       const { path, row, lease } = JSON.parse(process.argv[2]);
       const table = openScoreTable(path);
       for (let at = 0; ; at++) {
         await table.openTry({ ...row, attempt: "a" + at }, { ...lease, attempt: "a" + at });
         process.stdout.write(".");
       }`,
    );
    const child = spawn(
      process.execPath,
      [script, JSON.stringify({ path, row: exampleRow(), lease: exampleLease() })],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    let written = 0;
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (data: Buffer) => {
        written += data.length;
        if (written > 50) child.kill("SIGKILL");
      });
      child.on("close", () => resolve());
    });
    const table = openScoreTable(path);
    const rows: string[] = [];
    for await (const row of table.rows("night")) rows.push(row.attempt);
    expect(rows.length).toBeGreaterThanOrEqual(written);
    expect((await table.leases("night")).map(({ attempt }) => attempt)).toEqual(rows);
    expect(await table.closeTry(exampleRow({ attempt: "a0", status: "pass" }))).toBe(true);
    await table.close();
  });
});

function runScript(script: string, argument: string): Promise<Record<string, number>> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, argument], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (data: Buffer) => {
      text += data.toString();
    });
    child.on("close", (code) => (code === 0 ? resolve(JSON.parse(text)) : reject(new Error(`ended with ${code}`))));
  });
}
