import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { evidenceFileKey } from "../../../lib/firewall/keys.ts";
import { openFileStore, removeLeftovers } from "../../../lib/platform/local/file-store.ts";
import type { Identity } from "../../../lib/platform/ports.ts";
import { objectStoreContract } from "../contract/object-store.ts";
import { bundleModule } from "./bundle-module.ts";
import { type TemporaryFolder, temporaryFolder } from "./temporary-folder.ts";

objectStoreContract("files", async () => {
  const folder = temporaryFolder();
  return {
    as: (identity) => openFileStore(join(folder.path, "objects"), identity),
    close: async () => folder.remove(),
  };
});

const own = { attempt: "attemptaaaaaaaaaaaaaaaaaaa", try: 1 };
const grant: Identity = { role: "turn-grant", try: own, package: { task: "task_1", digest: "d" } };
const supervisor: Identity = { role: "supervisor" };
const report = evidenceFileKey(own, 1, "report.json");

describe("object store on files", () => {
  let folder: TemporaryFolder;
  let root: string;
  beforeEach(() => {
    folder = temporaryFolder();
    root = join(folder.path, "objects");
  });
  afterEach(() => {
    vi.restoreAllMocks();
    folder.remove();
  });
  const leftovers = (): string[] => fs.readdirSync(join(root, ".new"));
  const onDisk = (...path: string[]): string => join(root, "evidence", "attempts", own.attempt, "01", ...path);

  it("says no_space when the disk is full and leaves nothing behind", async () => {
    const store = openFileStore(root, grant);
    vi.spyOn(fs, "writeSync").mockImplementation(() => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
    });
    await expect(store.create(report, "body")).rejects.toMatchObject({ code: "no_space" });
    vi.restoreAllMocks();
    vi.spyOn(fs, "createWriteStream").mockImplementation(() => {
      throw Object.assign(new Error("EDQUOT: quota, open"), { code: "EDQUOT", syscall: "open" });
    });
    await expect(store.create(report, Readable.from(["body"]))).rejects.toMatchObject({ code: "no_space" });
    vi.restoreAllMocks();
    expect(leftovers()).toEqual([]);
    await expect(openFileStore(root, supervisor).get(report)).rejects.toMatchObject({ code: "not_found" });
    await store.create(report, "body");
  });

  it("follows no link out of the root", async () => {
    const store = openFileStore(root, grant);
    const reader = openFileStore(root, supervisor);
    await store.create(report, "body");
    const outside = join(folder.path, "outside");
    fs.mkdirSync(outside);
    fs.writeFileSync(join(outside, "secret.txt"), "secret");
    fs.symlinkSync(outside, onDisk("turn-02"));
    fs.symlinkSync(join(outside, "secret.txt"), onDisk("turn-01", "stolen.txt"));
    execFileSync("mkfifo", [onDisk("turn-01", "pipe.txt")]);
    for (const name of [
      evidenceFileKey(own, 1, "stolen.txt"),
      evidenceFileKey(own, 2, "secret.txt"),
      evidenceFileKey(own, 1, "pipe.txt"),
    ]) {
      await expect(reader.get(name)).rejects.toMatchObject({ code: "not_found" });
      await expect(reader.stream(name)).rejects.toMatchObject({ code: "not_found" });
    }
    await expect(store.create(evidenceFileKey(own, 2, "a.txt"), "x")).rejects.toMatchObject({ code: "unavailable" });
    expect(fs.readdirSync(outside)).toEqual(["secret.txt"]);
    const listed: string[] = [];
    for await (const { key } of reader.list({ bucket: "evidence", key: "attempts/" })) listed.push(key);
    expect(listed).toEqual([report.key]);
  });

  it("lists neither what is being written nor strangers' files", async () => {
    const store = openFileStore(root, grant);
    await store.create(report, "body");
    fs.writeFileSync(onDisk("turn-01", ".DS_Store"), "");
    fs.writeFileSync(onDisk("turn-01", "No Key.txt"), "");
    fs.writeFileSync(join(root, ".new", "999999999-a-0"), "half");
    const listed: string[] = [];
    const all = openFileStore(root, supervisor).list({ bucket: "evidence", key: "attempts/" });
    for await (const { key } of all) listed.push(key);
    expect(listed).toEqual([report.key]);
  });

  it("removes what killed creators left and nothing of the living", () => {
    openFileStore(root, grant);
    fs.writeFileSync(join(root, ".new", "999999999-a-0"), "half");
    fs.writeFileSync(join(root, ".new", `${process.pid}-a-0`), "half");
    removeLeftovers(root);
    expect(leftovers()).toEqual([`${process.pid}-a-0`]);
  });

  it("refuses a root that is a file", () => {
    fs.writeFileSync(root, "");
    expect(() => openFileStore(root, grant)).toThrow(expect.objectContaining({ code: "unavailable" }));
  });

  it("a creator that is killed leaves no object", async () => {
    const script = join(folder.path, "creator.mjs");
    const bundle = join(folder.path, "store.mjs");
    await bundleModule("lib/platform/local/file-store.ts", bundle);
    fs.writeFileSync(
      script,
      `import { openFileStore } from ${JSON.stringify(bundle)};
       import { Readable } from "node:stream";
       const [name, identity] = JSON.parse(process.argv[2]);
       const endless = Readable.from((async function* () {
         for (;;) { yield Buffer.alloc(65536, "x"); process.stdout.write("."); await new Promise((r) => setImmediate(r)); }
       })());
       await openFileStore(${JSON.stringify(root)}, identity).create(name, endless);`,
    );
    const child = spawn(process.execPath, [script, JSON.stringify([report, grant])], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let written = 0;
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (data: Buffer) => {
        written += data.length;
        if (written > 20) child.kill("SIGKILL");
      });
      child.on("close", () => resolve());
    });
    expect(leftovers()).toHaveLength(1);
    await expect(openFileStore(root, supervisor).get(report)).rejects.toMatchObject({ code: "not_found" });
    removeLeftovers(root);
    expect(leftovers()).toEqual([]);
    await openFileStore(root, grant).create(report, "the next one's");
  });

  it("one of several processes wins a key", async () => {
    const bundle = join(folder.path, "store.mjs");
    await bundleModule("lib/platform/local/file-store.ts", bundle);
    const script = join(folder.path, "racer.mjs");
    fs.writeFileSync(
      script,
      `import { openFileStore } from ${JSON.stringify(bundle)};
       const [names, identity] = JSON.parse(process.argv[2]);
       const store = openFileStore(${JSON.stringify(root)}, identity);
       const won = [];
       for (const name of names) {
         try { await store.create(name, String(process.pid)); won.push(name.key); }
         catch (error) { if (error.code !== "already_exists") throw error; }
       }
       process.stdout.write(JSON.stringify({ pid: process.pid, won }));`,
    );
    const names = Array.from({ length: 60 }, (_, at) => evidenceFileKey(own, 1, `results/${at}.txt`));
    const results = await Promise.all(
      [0, 1, 2].map(
        () =>
          new Promise<{ pid: number; won: string[] }>((resolve) => {
            const child = spawn(process.execPath, [script, JSON.stringify([names, grant])], {
              stdio: ["ignore", "pipe", "inherit"],
            });
            let text = "";
            child.stdout.on("data", (data: Buffer) => {
              text += data.toString();
            });
            child.on("close", () => resolve(JSON.parse(text)));
          }),
      ),
    );
    expect(results.flatMap(({ won }) => won).sort()).toEqual(names.map(({ key }) => key).sort());
    const reader = openFileStore(root, supervisor);
    for (const { pid, won } of results) {
      for (const key of won) {
        expect(Buffer.from(await reader.get({ bucket: "evidence", key })).toString()).toBe(String(pid));
      }
    }
  });
});
