/** What every object store does, whatever it stands on. An adapter's test calls this with a way to open it. */
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { evidenceFileKey, mailboxKey, type ObjectName, packageFile } from "../../../lib/firewall/keys.ts";
import type { Identity, ObjectInfo, ObjectStore } from "../../../lib/platform/ports.ts";

export interface OpenedObjectStore {
  /** The same objects as another identity sees them. */
  as(identity: Identity): ObjectStore;
  close(): Promise<void>;
}

const digest = "0".repeat(64);
const own = { attempt: "attemptaaaaaaaaaaaaaaaaaaa", try: 1 };
const grant: Identity = { role: "turn-grant", try: own, package: { task: "task_1", digest } };

/** Keys that an agent, a task author or a file system could make trouble with. */
const awkward = [
  "results/a",
  "results/a/b",
  "results/a/b.txt",
  "results/README.md",
  "results/readme.md",
  "results/数独 解.txt",
  "results/é.txt",
  "results/e\u0301.txt",
  "results/trailing.",
  "results/trailing ",
  "results/.hidden",
  "results/..dots",
  "results/100%.txt",
  "results/%2e%2e",
  'results/a\\b:c*?"<>|',
  "results/line\nbreak",
  "results/-rf",
  "results/con.txt",
  `results/${"long".repeat(150)}`,
  `results/${"long".repeat(150)}er`,
  "results/__proto__",
];

export function objectStoreContract(adapter: string, open: () => Promise<OpenedObjectStore>): void {
  describe(`object store: ${adapter}`, () => {
    let opened: OpenedObjectStore;
    let runner: ObjectStore;
    let supervisor: ObjectStore;
    beforeEach(async () => {
      opened = await open();
      runner = opened.as(grant);
      supervisor = opened.as({ role: "supervisor" });
    });
    afterEach(() => opened.close());
    const evidence = (path: string): ObjectName => evidenceFileKey(own, 1, path);

    it("gives back what was created", async () => {
      const bytes = Uint8Array.from([0, 255, 10, 13, 0]);
      expect(await runner.create(evidence("results/a.bin"), bytes)).toEqual({
        key: evidence("results/a.bin").key,
        bytes: 5,
      });
      await runner.create(evidence("report.json"), "{}");
      await runner.create(evidence("empty"), "");
      expect(Buffer.from(await supervisor.get(evidence("results/a.bin")))).toEqual(Buffer.from(bytes));
      expect(Buffer.from(await supervisor.get(evidence("report.json"))).toString()).toBe("{}");
      expect((await supervisor.get(evidence("empty"))).byteLength).toBe(0);
    });

    it("streams in and out, whole and in part", async () => {
      const chunk = Buffer.alloc(100_000, "0123456789");
      const name = evidence("transcript.jsonl");
      const info = await runner.create(name, Readable.from(Array.from({ length: 20 }, () => chunk)));
      expect(info.bytes).toBe(2_000_000);
      expect((await supervisor.get(name)).byteLength).toBe(2_000_000);
      expect((await buffer(await supervisor.stream(name))).byteLength).toBe(2_000_000);
      expect(await text(await supervisor.stream(name, { start: 3, end: 8 }))).toBe("34567");
      expect(await text(await supervisor.stream(name, { start: 1_999_995 }))).toBe("56789");
      expect(await text(await supervisor.stream(name, { start: 5, end: 5 }))).toBe("");
    });

    it("writes once", async () => {
      await runner.create(evidence("report.json"), "first");
      for (const second of ["second", Readable.from(["second"])]) {
        await expect(runner.create(evidence("report.json"), second)).rejects.toMatchObject({ code: "already_exists" });
      }
      expect(Buffer.from(await supervisor.get(evidence("report.json"))).toString()).toBe("first");
    });

    it("lets one of many creators win, and nobody sees half of an object", async () => {
      const bodies = Array.from({ length: 20 }, (_, at) => String.fromCharCode(97 + at).repeat(50_000));
      const results = await Promise.allSettled(
        bodies.map((body, at) =>
          runner.create(evidence("report.json"), at % 2 ? body : Readable.from([body.slice(0, 9), body.slice(9)])),
        ),
      );
      expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
      for (const result of results) {
        if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "already_exists" });
      }
      expect(bodies).toContain(Buffer.from(await supervisor.get(evidence("report.json"))).toString());
    });

    it("leaves nothing of a creation whose source breaks", async () => {
      const broken = Readable.from(
        (async function* () {
          yield "half";
          throw new Error("the source broke");
        })(),
      );
      await expect(runner.create(evidence("report.json"), broken)).rejects.toThrow("the source broke");
      await expect(supervisor.get(evidence("report.json"))).rejects.toMatchObject({ code: "not_found" });
      expect(await all(supervisor.list({ bucket: "evidence", key: "attempts/" }))).toEqual([]);
      await runner.create(evidence("report.json"), "whole");
    });

    it("says that an object is not there", async () => {
      await runner.create(evidence("results/a"), "x");
      for (const path of ["results/b", "results", "results/a/c", "results/A"]) {
        await expect(supervisor.get(evidence(path))).rejects.toMatchObject({ name: "StoreError", code: "not_found" });
        await expect(supervisor.stream(evidence(path))).rejects.toMatchObject({ code: "not_found" });
      }
      expect(await all(supervisor.list({ bucket: "evidence", key: "attempts/none/" }))).toEqual([]);
    });

    it("keeps awkward names as data", async () => {
      for (const path of awkward) await runner.create(evidence(path), path);
      const listed = (await all(supervisor.list(evidence("")))).map(({ key }) => key);
      expect(listed).toEqual(inKeyOrder(awkward.map((path) => evidence(path).key)));
      for (const path of awkward) {
        expect(Buffer.from(await supervisor.get(evidence(path))).toString()).toBe(path);
        await expect(runner.create(evidence(path), "again")).rejects.toMatchObject({ code: "already_exists" });
      }
    });

    it("lists below a prefix in key order, with sizes", async () => {
      const paths = ["b", "a-b", "a/z", "a/b/c", "a0", "a"];
      for (const path of paths) await runner.create(evidence(`results/${path}`), path);
      const listed = async (path: string): Promise<ObjectInfo[]> => all(supervisor.list(evidence(path)));
      const start = evidence("results/").key.length;
      expect((await listed("results/")).map(({ key, bytes }) => [key.slice(start), bytes])).toEqual([
        ["a", 1],
        ["a-b", 3],
        ["a/b/c", 5],
        ["a/z", 3],
        ["a0", 2],
        ["b", 1],
      ]);
      expect((await listed("results/a/")).map(({ key }) => key.slice(start))).toEqual(["a/b/c", "a/z"]);
      expect((await listed("results/a")).map(({ key }) => key.slice(start))).toEqual([
        "a",
        "a-b",
        "a/b/c",
        "a/z",
        "a0",
      ]);
      expect(await listed("resu")).toHaveLength(6);
    });

    it("refuses what the matrix denies, naming role, verb and key", async () => {
      const hidden = packageFile("task_1", digest, "hidden", "references/eval_rule.md");
      await opened.as({ role: "operator" }).create(hidden, "canary");
      const simulator = opened.as({ role: "user-simulator" });
      await expect(simulator.get(hidden)).rejects.toMatchObject({
        name: "StoreError",
        code: "access_denied",
        message: expect.stringMatching(/user-simulator.*get.*eval_rule\.md/),
      });
      await expect(simulator.stream(hidden)).rejects.toMatchObject({ code: "access_denied" });
      await expect(runner.create(evidenceFileKey({ ...own, try: 2 }, 1, "report.json"), "")).rejects.toMatchObject({
        code: "access_denied",
      });
      await expect(all(runner.list({ bucket: "evidence", key: "mailbox/" }))).rejects.toMatchObject({
        code: "access_denied",
      });
      await expect(opened.as({ role: "executor-task" }).get(mailboxKey("guessed", 1))).rejects.toMatchObject({
        code: "not_found",
      });
    });

    it("refuses bad keys before anything else", async () => {
      for (const path of ["", "../x", "a/../../x", "a//b", "./a", "a\0b", "a/", "a\udc00", "x".repeat(1025)]) {
        await expect(runner.create(evidence(path), "x")).rejects.toMatchObject({ code: "bad_key" });
        await expect(supervisor.get(evidence(path))).rejects.toMatchObject({ code: "bad_key" });
      }
    });
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** By UTF-8 bytes, as S3 orders keys. */
function inKeyOrder(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.from(a).compare(Buffer.from(b)));
}
