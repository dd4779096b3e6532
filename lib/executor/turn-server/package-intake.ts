/** PUT /package: the agent's part of a package, brought to where the task's text says it is. */
import { chmodSync, createWriteStream, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar-stream";
import { publishedFiles } from "../../tasks/published.ts";
import type { AgentPlace } from "./place.ts";

/**
 * Takes `sources/**` to <workspace>/clawbench/sources/ and `skills/**` to <home>/skills/; other files (the rendered
 * request comes with each turn) are passed over.
 *
 * @throws on an entry that is neither file nor folder, or whose name leads elsewhere; what stood before it is there.
 */
export async function takePackage(tar: Readable, place: AgentPlace): Promise<{ files: number; bytes: number }> {
  const targets = [
    { prefix: publishedFiles.sources, folder: join(place.workspace, "clawbench", "sources") },
    { prefix: publishedFiles.skills, folder: join(place.home, "skills") },
  ];
  for (const { folder } of targets) mkdirSync(folder, { recursive: true });
  const taken = { files: 0, bytes: 0 };
  const entries = extract();
  const reading = pipeline(tar, entries);
  reading.catch(() => {});
  for await (const entry of entries) {
    const { name, type, mode } = entry.header;
    if (type !== "file" && type !== "directory") throw new Error(`package: "${name}" is a ${type}, not a file`);
    const steps = name.replace(/\/$/, "").split("/");
    if (steps.some((step) => step === "" || step === "." || step === ".." || step.includes("\0"))) {
      throw new Error(`package: "${name}" is no path below the package`);
    }
    const target = targets.find(({ prefix }) => name.startsWith(prefix));
    if (type === "directory" || target === undefined) {
      entry.resume();
      continue;
    }
    const path = join(target.folder, name.slice(target.prefix.length));
    mkdirSync(dirname(path), { recursive: true });
    await pipeline(entry, createWriteStream(path));
    if (((mode ?? 0) & 0o111) !== 0) chmodSync(path, 0o755);
    taken.files += 1;
    taken.bytes += entry.header.size ?? 0;
  }
  await reading;
  return taken;
}
