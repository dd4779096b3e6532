/** Whether a package stands published under its digest, as far as a role may see that: of hidden/ it sees names alone. */
import { packageFile, packagePrefix } from "../lib/firewall/keys.ts";
import { type ObjectStore, StoreError } from "../lib/platform/ports.ts";
import { publishedFiles, type RunnerPart, runnerPart } from "../lib/tasks/published.ts";

export type PublishedPackage = { kind: "published"; runner: RunnerPart } | { kind: "unusable"; reason: string };

export type PublishedLookup = (task: string, digest: string) => Promise<PublishedPackage>;

/**
 * Looks packages up and remembers those that it found: what is published under a digest never changes and never goes.
 * @throws StoreError when the store itself fails
 */
export function publishedPackages(store: ObjectStore): PublishedLookup {
  const found = new Map<string, PublishedPackage>();
  return async (task, digest) => {
    const key = `${task}@${digest}`;
    const known = found.get(key);
    if (known) return known;
    const looked = await lookUp(store, task, digest);
    if (looked.kind === "published") found.set(key, looked);
    return looked;
  };
}

async function lookUp(store: ObjectStore, task: string, digest: string): Promise<PublishedPackage> {
  const missing = (what: string): PublishedPackage => ({
    kind: "unusable",
    reason: `package ${task}@${digest.slice(0, 12)} ${what}; run the sweep again, which publishes it`,
  });
  let runner: RunnerPart;
  try {
    const bytes = await store.get(packageFile(task, digest, "runner", publishedFiles.runner));
    const parsed = runnerPart.safeParse(JSON.parse(Buffer.from(bytes).toString("utf8")));
    if (!parsed.success || parsed.data.digest !== digest) return missing("has a runner part of another form or digest");
    runner = parsed.data;
  } catch (error) {
    if (error instanceof SyntaxError) return missing("has a runner part that is not JSON");
    if (error instanceof StoreError && error.code === "not_found") return missing("is not published");
    throw error;
  }
  const request = await hasName(store, task, digest, "agent", publishedFiles.request);
  if (!request) return missing("has no request");
  const rubric = await hasName(store, task, digest, "hidden", publishedFiles.evalRule);
  if (!rubric) return missing(`has no rubric (${publishedFiles.evalRule})`);
  return { kind: "published", runner };
}

async function hasName(
  store: ObjectStore,
  task: string,
  digest: string,
  part: "agent" | "hidden",
  file: string,
): Promise<boolean> {
  const wanted = packageFile(task, digest, part, file);
  for await (const object of store.list(packagePrefix(task, digest, part))) {
    if (object.key === wanted.key) return true;
  }
  return false;
}
