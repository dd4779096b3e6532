/**
 * The content of a package: its files as they are published in four parts, and the digest over all of them. Whatever can
 * change a result is published, so the digest covers it by construction.
 */
import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PackagePart } from "../firewall/keys.ts";
import { canonicalJson, sha256Hex } from "./canonical.ts";
import { filesBelow, injectedSources, type PackageFile, referenceFiles, type TaskPackage } from "./package.ts";
import { type Problem, ProblemsError } from "./problem.ts";
import { publishedFiles, type RunnerPart, type SimulatorPart, type SupervisorPart } from "./published.ts";
import { renderRequest } from "./request.ts";

/** One published file. */
export interface ContentEntry {
  part: PackagePart;
  /** Below the part: `sources/puzzle.txt`. */
  path: string;
  bytes: number;
  sha256: string;
  /** Its text, or the file on this machine that holds it. */
  from: { text: string } | { file: string };
}

export interface PackageContent {
  task: string;
  /** sha256, 64 hexadecimal digits. The same on every machine. */
  digest: string;
  /** In the order of parts and paths, runner/package.json last: it says the digest, and that the rest is there. */
  entries: ContentEntry[];
}

const screen = { width: 1440, height: 900 };
/** Files of one package that are read at the same time. */
const parallel = 8;

/**
 * Hashes what a package publishes. Files are streamed; line endings, modes and times play no part, except that the
 * executable bit is recorded in the runner's part.
 * @throws ProblemsError when the package has errors, or a file of it went away.
 */
export async function readContent(pkg: TaskPackage): Promise<PackageContent> {
  const errors = pkg.problems.filter((problem) => problem.severity === "error");
  if (errors.length > 0) throw new ProblemsError(errors);
  const copied = copiedFiles(pkg);
  const entries: ContentEntry[] = await inParallel(copied, async ({ part, path, source }) => {
    const file = join(pkg.folder, source.path);
    return { part, path, ...(await hashFile(file, source.bytes)), from: { file } };
  });
  const add = (part: PackagePart, path: string, text: string): void => {
    entries.push({ part, path, bytes: Buffer.byteLength(text), sha256: sha256Hex(text), from: { text } });
  };
  const { supervisor, user_simulator: simulator } = pkg.task.codex;
  const rubric = entries.find((entry) => entry.part === "hidden" && entry.path === publishedFiles.evalRule);
  add("agent", publishedFiles.request, renderRequest(pkg));
  add(
    "simulator",
    publishedFiles.simulator,
    canonicalJson({
      v: 1,
      language: pkg.language,
      effort: simulator.reasoning_effort,
      policy: simulator.policy ?? null,
    } satisfies SimulatorPart),
  );
  add(
    "hidden",
    publishedFiles.supervisor,
    canonicalJson({
      v: 1,
      language: pkg.language,
      effort: supervisor.reasoning_effort,
      instructions: supervisor.instructions ?? null,
      threshold: pkg.task.success_threshold,
      rubricDigest: sha256Hex(canonicalJson([rubric?.sha256 ?? null, pkg.checks?.value ?? null])),
    } satisfies SupervisorPart),
  );
  if (pkg.checks) add("hidden", publishedFiles.checks, canonicalJson(pkg.checks.value));

  const runner = runnerPart(pkg, copied);
  const order = (entry: ContentEntry): string => `${entry.part}/${entry.path}`;
  entries.sort((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
  const digest = sha256Hex(
    canonicalJson({ v: 1, runner, files: entries.map((entry) => [order(entry), entry.sha256]) }),
  );
  add("runner", publishedFiles.runner, canonicalJson({ ...runner, digest } satisfies RunnerPart));
  return { task: pkg.id, digest, entries };
}

interface CopiedFile {
  part: PackagePart;
  path: string;
  source: PackageFile;
}

/** Files that are published as they are. Skills and services go in when they are listed, scripts with the folder they stand in. */
function copiedFiles(pkg: TaskPackage): CopiedFile[] {
  const { task } = pkg;
  const copy = (part: PackagePart, files: readonly PackageFile[], prefix = ""): CopiedFile[] =>
    files.map((source) => ({ part, path: prefix + source.path, source }));
  const folders = (kind: string, names: readonly string[]): PackageFile[] =>
    names.flatMap((name) => filesBelow(pkg, `${kind}/${name}/`));
  const scripts = task.pre_exec.flatMap((path) => {
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    return folder === "" ? pkg.files.filter((file) => file.path === path) : filesBelow(pkg, folder);
  });
  const all = [
    ...copy("agent", injectedSources(pkg)),
    ...copy("agent", folders("skills", task.skills)),
    ...copy(
      "runner",
      folders(
        "services",
        task.services.map((service) => service.path),
      ),
    ),
    ...copy("runner", scripts, publishedFiles.preExec),
    ...copy("hidden", referenceFiles(pkg)),
  ];
  return [...new Map(all.map((file) => [`${file.part}/${file.path}`, file])).values()];
}

function runnerPart(pkg: TaskPackage, copied: readonly CopiedFile[]): Omit<RunnerPart, "digest"> {
  const { task } = pkg;
  return {
    v: 1,
    task: pkg.id,
    category: pkg.category,
    language: pkg.language,
    network: task.network,
    type: task.type,
    timeoutSeconds: task.timeout_seconds,
    maxTotalSeconds: task.max_total_seconds,
    maxFollowups: task.codex.max_user_followups,
    recording: task.recording,
    headed: task.headed === "auto" ? task.recording === "high" : task.headed,
    screen,
    services: task.services,
    preExec: task.pre_exec,
    executable: copied
      .filter((file) => file.source.executable && file.part !== "hidden")
      .map((file) => `${file.part}/${file.path}`)
      .sort(),
    privacy: [...pkg.privacy].sort(),
  };
}

/** Files up to this size are read in one piece: a stream for each of thousands of notes would cost more than the hashing. */
const smallBytes = 256 * 1024;

/**
 * @param expectedBytes its size, where it is known already
 * @throws ProblemsError when the file cannot be read
 */
export async function hashFile(
  file: string,
  expectedBytes = Number.POSITIVE_INFINITY,
): Promise<{ bytes: number; sha256: string }> {
  try {
    if (expectedBytes <= smallBytes) {
      const data = readFileSync(file);
      return { bytes: data.length, sha256: sha256Hex(data) };
    }
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of createReadStream(file, { highWaterMark: smallBytes })) {
      const data = chunk as Buffer;
      hash.update(data);
      bytes += data.length;
    }
    return { bytes, sha256: hash.digest("hex") };
  } catch (error) {
    const problem: Problem = {
      file,
      field: "",
      severity: "error",
      found: `a file that cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
      expected: "the file that was there when the package was loaded",
    };
    throw new ProblemsError([problem]);
  }
}

/**
 * `work` for each item, at most `parallel` at a time, results in the order of the items. After a failure nothing new is
 * begun, and what runs is waited for: nothing goes on behind the caller's back.
 */
export async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  const todo = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of todo) {
      if (failures.length > 0) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
