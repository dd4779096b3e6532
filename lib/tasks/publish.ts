/** Publishing: a package's content becomes objects under its digest, once. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { packageFile } from "../firewall/keys.ts";
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

/** Files up to this size are handed to the store in one piece. */
const streamedFrom = 1024 * 1024;

/**
 * Writes `packages/<task>@<digest>/{agent,runner,simulator,hidden}/`. runner/package.json is written last: once it is there
 * the package is whole, so a call that was cut off is completed by the next, and a published package costs one listing.
 * Objects are created, never replaced, and a file that changed since it was hashed is refused before it becomes an object.
 * @throws ProblemsError for such a file; StoreError as the store's `create`.
 */
export async function publish(content: PackageContent, store: ObjectStore): Promise<PublishResult> {
  const result: PublishResult = { created: 0, bytes: 0 };
  const seal = packageFile(content.task, content.digest, "runner", publishedFiles.runner);
  for await (const found of store.list(seal)) if (found.key === seal.key) return result;

  const isSeal = (entry: ContentEntry): boolean => entry.part === "runner" && entry.path === publishedFiles.runner;
  const put = async (entry: ContentEntry): Promise<void> => {
    const name = packageFile(content.task, content.digest, entry.part, entry.path);
    try {
      await store.create(name, await bodyOf(entry));
      result.created++;
      result.bytes += entry.bytes;
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "already_exists")) throw error;
    }
  };
  await inParallel(
    content.entries.filter((entry) => !isSeal(entry)),
    put,
  );
  await inParallel(content.entries.filter(isSeal), put);
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
