import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openFileStore } from "../../lib/platform/local/file-store.ts";
import { type ObjectInfo, type ObjectStore, StoreError } from "../../lib/platform/ports.ts";
import { type PackageContent, readContent } from "../../lib/tasks/digest.ts";
import { loadPackages } from "../../lib/tasks/load.ts";
import type { TaskPackage } from "../../lib/tasks/package.ts";
import { publish } from "../../lib/tasks/publish.ts";
import { type PackageFolder, packageFolder } from "../support/package-folder.ts";

describe("publishing a package", () => {
  let folder: PackageFolder;
  let content: PackageContent;
  const big = "sources/big.bin";
  beforeEach(async () => {
    folder = packageFolder();
    folder.add("task_1", { files: { "sources/a.txt": "a", "sources/b.txt": "", "references/truth.json": "{}" } });
    folder.write(`injection/102_exploration/task_1/${big}`, Buffer.alloc(3_000_000, 7));
    content = await readContent(loadPackages(folder.path, { env: {} })?.packages[0] as TaskPackage);
  });
  afterEach(() => folder.remove());

  const store = (): ObjectStore => openFileStore(join(folder.path, "objects"), { role: "operator" });
  const keys = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const bucket of ["tasks", "hidden"] as const) {
      for await (const object of store().list({ bucket, key: "packages/" })) found.push(`${bucket} ${object.key}`);
    }
    return found;
  };
  /** A store in which only the first so many creations happen. */
  const dying = (after: number): ObjectStore => {
    const inner = store();
    let made = 0;
    return {
      get: (name) => inner.get(name),
      stream: (name, range) => inner.stream(name, range),
      list: (prefix) => inner.list(prefix),
      create: (name, body) =>
        ++made > after ? Promise.reject(new StoreError("unavailable", "gone")) : inner.create(name, body),
    };
  };

  it("writes four parts under task and digest", async () => {
    const result = await publish(content, store());
    expect(result).toEqual({
      created: content.entries.length,
      bytes: content.entries.reduce((sum, entry) => sum + entry.bytes, 0),
    });
    const at = `packages/task_1@${content.digest}`;
    expect(await keys()).toEqual([
      `tasks ${at}/agent/request.md`,
      `tasks ${at}/agent/sources/a.txt`,
      `tasks ${at}/agent/sources/b.txt`,
      `tasks ${at}/agent/sources/big.bin`,
      `tasks ${at}/runner/package.json`,
      `tasks ${at}/simulator/policy.json`,
      `hidden ${at}/hidden/references/eval_rule.md`,
      `hidden ${at}/hidden/references/truth.json`,
      `hidden ${at}/hidden/supervisor.json`,
    ]);
    const reader = openFileStore(join(folder.path, "objects"), { role: "preflight" });
    const body = await reader.get({ bucket: "tasks", key: `${at}/agent/${big}` });
    expect(Buffer.from(body).equals(Buffer.alloc(3_000_000, 7))).toBe(true);
  });

  it("is done once", async () => {
    await publish(content, store());
    expect(await publish(content, store())).toEqual({ created: 0, bytes: 0 });
  });

  it("is completed after a crash at any object, runner/package.json last", async () => {
    // Each call makes one object more and dies.
    for (let made = 1; made < content.entries.length; made++) {
      await expect(publish(content, dying(1))).rejects.toThrow("gone");
      const published = await keys();
      expect(published).toHaveLength(made);
      expect(published.some((key) => key.endsWith("runner/package.json"))).toBe(false);
    }
    expect((await publish(content, store())).created).toBe(1);
    expect((await keys()).some((key) => key.endsWith("runner/package.json"))).toBe(true);
    expect(await publish(content, store())).toEqual({ created: 0, bytes: 0 });
  });

  it("never doubles when two sweeps publish at the same time", async () => {
    const [one, other] = await Promise.all([publish(content, store()), publish(content, store())]);
    expect(one.created + other.created).toBe(content.entries.length);
    expect(await keys()).toHaveLength(content.entries.length);
  });

  it.each([["sources/a.txt"], [big]])(
    "refuses %s when it changed since it was hashed, before it becomes an object",
    async (path) => {
      writeFileSync(
        join(folder.path, "injection/102_exploration/task_1", path),
        Buffer.alloc(path === big ? 3_000_000 : 1, 9),
      );
      await expect(publish(content, store())).rejects.toThrow("changed while it was read");
      const published = await keys();
      expect(published.some((key) => key.endsWith(path))).toBe(false);
      expect(published.some((key) => key.endsWith("runner/package.json"))).toBe(false);
    },
  );

  it("says so when the store has lost bytes of an object", async () => {
    await publish(content, store());
    const inner = store();
    const cut: ObjectStore = {
      ...inner,
      get: (name) => inner.get(name),
      stream: (name) => inner.stream(name),
      create: (name, body) => inner.create(name, body),
      async *list(prefix): AsyncIterable<ObjectInfo> {
        for await (const object of inner.list(prefix))
          yield object.key.endsWith("a.txt") ? { ...object, bytes: 0 } : object;
      },
    };
    await expect(publish(content, cut)).rejects.toThrow("a.txt has 0 bytes and should have 1");
  });
});
