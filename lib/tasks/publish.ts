/** Publishing: a package's content becomes objects under its digest, once. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { type PackagePart, packageFile, packagePrefix } from "../firewall/keys.ts";
import { type ObjectStore, StoreError } from "../platform/ports.ts";
import { sha256Hex } from "./canonical.ts";
import { type ContentEntry, inParallel, type PackageContent } from "./digest.ts";
import { ProblemsError } from "./problem.ts";
import { publishedFiles } from "./published.ts";

export interface PublishResult {
  /** Objects that this call made; 0 when the package was there already. */
  created: number;
  bytes: number;
}

const packageParts: readonly PackagePart[] = ["agent", "runner", "simulator", "hidden"];
/** Files up to this size are handed to the store in one piece. */
const streamedFrom = 1024 * 1024;

/**
 * Writes `packages/<task>@<digest>/{agent,runner,simulator,hidden}/`, whatever of it is not there yet: a call that was cut
 * off is completed by the next, and a published package costs four listings. runner/package.json is written last, so a
 * reader that finds it finds the rest. Objects are created, never replaced, and a file that changed since it was hashed is
 * refused before it becomes an object.
 * @throws ProblemsError for such a file; StoreError as the store's `create`, and `unavailable` for an object that was cut.
 */
export async function publish(content: PackageContent, store: ObjectStore): Promise<PublishResult> {
  const result: PublishResult = { created: 0, bytes: 0 };
  const there = new Map<string, number>();
  for (const part of packageParts) {
    for await (const object of store.list(packagePrefix(content.task, content.digest, part))) {
      there.set(`${part}:${object.key}`, object.bytes);
    }
  }
  const put = async (entry: ContentEntry): Promise<void> => {
    const name = packageFile(content.task, content.digest, entry.part, entry.path);
    const bytes = there.get(`${entry.part}:${name.key}`);
    if (bytes === entry.bytes) return;
    if (bytes !== undefined) {
      const what = `${name.bucket}/${name.key} has ${bytes} bytes and should have ${entry.bytes}`;
      throw new StoreError(
        "unavailable",
        `${what}: the store lost data, in a crash of the machine say; remove that file`,
      );
    }
    try {
      await store.create(name, await bodyOf(entry));
      result.created++;
      result.bytes += entry.bytes;
    } catch (error) {
      // Another sweep publishes the same package at the same time.
      if (!(error instanceof StoreError && error.code === "already_exists")) throw error;
    }
  };
  const isLast = (entry: ContentEntry): boolean => entry.part === "runner" && entry.path === publishedFiles.runner;
  await inParallel(
    content.entries.filter((entry) => !isLast(entry)),
    put,
  );
  await inParallel(content.entries.filter(isLast), put);
  return result;
}

async function bodyOf(entry: ContentEntry): Promise<string | Uint8Array | Readable> {
  if ("text" in entry.from) return entry.from.text;
  const { file } = entry.from;
  if (entry.bytes > streamedFrom) return Readable.from(verified(file, entry.sha256), { objectMode: false });
  const body = await readFile(file);
  if (sha256Hex(body) !== entry.sha256) throw changed(file);
  return body;
}

/** The file's bytes; it fails at the end, before the store can finish the object, when they are not those that were hashed. */
async function* verified(file: string, sha256: string): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 })) {
    const data = chunk as Buffer;
    hash.update(data);
    yield data;
  }
  if (hash.digest("hex") !== sha256) throw changed(file);
}

function changed(file: string): ProblemsError {
  return new ProblemsError([
    {
      file,
      field: "",
      severity: "error",
      found: "a file that changed while it was read",
      expected: "packages that stay as they are while a sweep starts; run it again",
    },
  ]);
}
