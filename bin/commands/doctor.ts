/** `proctor doctor`: what is there on this machine, what is missing, and what to do about it. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { access, constants, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { environmentSecrets } from "../../lib/platform/local/environment-secrets.ts";
import { bundlesFolder, runnerBundle, sandboxBundles } from "../../lib/platform/local/launcher/bundles.ts";
import { detectIsolation, type IsolationFound } from "../../lib/platform/local/launcher/isolation.ts";
import type { Secrets } from "../../lib/platform/ports.ts";
import { readModelsFile } from "../../lib/sweep/models-file.ts";
import { problemLine } from "../../lib/tasks/problem.ts";
import type { CommandResult } from "../command.ts";

export interface Check {
  name: string;
  /** error: Proctor cannot run here. warning: it can, with less. */
  status: "ok" | "warning" | "error";
  found: string;
  /** What to do; null where nothing is. */
  remedy: string | null;
}

/** What doctor looks at; all of it is handed in, so that a test can show a machine that lacks something. */
export interface Machine {
  nodeVersion: string;
  bundles: string;
  isolation: () => Promise<IsolationFound>;
  /** Folder of this machine's sweeps. */
  runs: string;
  /** Folder where models.yaml is looked for. */
  folder: string;
  secrets: Secrets;
  temporary: string;
  /** Files that a process may have open; null where it cannot be asked. */
  openFiles: () => Promise<number | null>;
  /** Runs one statement in SQLite. @throws when it does not work here. */
  trySqlite: () => Promise<void>;
}

export default async function doctor(_args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const checks = await examine(thisMachine(resolve(String(options.runs ?? "runs"))));
  const ok = checks.every((check) => check.status !== "error");
  const text = options.json === true ? JSON.stringify({ checks, ok }) : textOf(checks, ok);
  return { exitCode: ok ? 0 : 1, text };
}

export async function examine(machine: Machine): Promise<Check[]> {
  return [
    nodeCheck(machine.nodeVersion),
    bundlesCheck(machine.bundles),
    sandboxCheck(await machine.isolation()),
    await runsCheck(machine.runs),
    await sqliteCheck(machine.trySqlite),
    socketsCheck(machine.temporary),
    openFilesCheck(await machine.openFiles()),
    ...(await modelsChecks(machine.folder, machine.secrets)),
  ];
}

const ok = (name: string, found: string): Check => ({ name, status: "ok", found, remedy: null });
const warning = (name: string, found: string, remedy: string): Check => ({ name, status: "warning", found, remedy });
const failure = (name: string, found: string, remedy: string): Check => ({ name, status: "error", found, remedy });

function nodeCheck(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 24;
  if (fits) return ok("node", version);
  return failure("node", version, "install Node 20.19, 22.12, 24 or a later one");
}

function bundlesCheck(folder: string): Check {
  const missing = [runnerBundle, ...sandboxBundles, "checks-worker.js"].filter(
    (name) => !existsSync(join(folder, name)),
  );
  if (missing.length === 0) return ok("bundles", folder);
  return failure("bundles", `${missing.join(", ")} not in ${folder}`, "run: npm run build");
}

function sandboxCheck(found: IsolationFound): Check {
  if (found.bwrap) return ok("sandbox", `${found.version} at ${found.path}`);
  return warning(
    "sandbox",
    `none, so only scripted models run, or others with --unisolated: ${found.reason}`,
    found.remedy,
  );
}

const fewBytes = 200e6;
const someBytes = 2e9;

async function runsCheck(runs: string): Promise<Check> {
  // A folder that is not there yet is made by `run`: what counts is where it would stand.
  let place = runs;
  while (!existsSync(place)) place = dirname(place);
  try {
    await access(place, constants.W_OK);
    const tried = await mkdtemp(join(place, ".doctor-"));
    try {
      await writeFile(join(tried, "a"), "a");
    } finally {
      await rm(tried, { recursive: true, force: true });
    }
  } catch (error) {
    return failure("runs folder", `${runs}: ${messageOf(error)}`, "name a folder that you can write: --runs <folder>");
  }
  const { bavail, bsize } = await statfs(place);
  const found = `${runs}, ${((Number(bavail) * Number(bsize)) / 1e9).toFixed(1)} GB free`;
  const remedy = "free some space, or name a folder on another disk: --runs <folder>";
  if (bavail * bsize < fewBytes) return failure("runs folder", found, remedy);
  return bavail * bsize < someBytes ? warning("runs folder", found, remedy) : ok("runs folder", found);
}

async function sqliteCheck(trySqlite: () => Promise<void>): Promise<Check> {
  try {
    await trySqlite();
    return ok("sqlite", "works");
  } catch (error) {
    return failure("sqlite", messageOf(error), "run: npm ci, on this machine (its binary is for one platform)");
  }
}

function socketsCheck(temporary: string): Check {
  // A Unix socket's path has about 100 bytes; ours take up to 32 below the folder of temporary files.
  const bytes = Buffer.byteLength(temporary);
  if (bytes <= 68) return ok("temporary files", temporary);
  return failure("temporary files", `${temporary}: ${bytes} bytes, at most 68`, "set TMPDIR to a shorter path");
}

function openFilesCheck(limit: number | null): Check {
  if (limit === null) return ok("open files", "the limit cannot be asked for here");
  if (limit >= 1024) return ok("open files", `${limit} at once`);
  return warning(
    "open files",
    `${limit} at once`,
    "raise the limit: ulimit -n 4096; or keep a sweep's concurrency low",
  );
}

/** One check for each provider key that models.yaml names; a key itself is never shown. */
async function modelsChecks(folder: string, secrets: Secrets): Promise<Check[]> {
  const file = join(folder, "models.yaml");
  if (!existsSync(file)) return [ok("models", "no models.yaml in this folder; scripted models need no key")];
  let document: unknown;
  try {
    document = parse(readFileSync(file, "utf8"));
  } catch (error) {
    return [failure("models", `${file}: ${messageOf(error)}`, "correct its YAML")];
  }
  const { models, problems } = readModelsFile(document, file);
  if (models === null) return problems.map((problem) => failure("models", problemLine(problem), "correct that field"));
  const checks: Check[] = [];
  for (const [name, provider] of Object.entries(models.providers)) {
    if (provider.api === "scripted") checks.push(ok(`provider ${name}`, "scripted"));
    else if (provider.keyName === undefined) checks.push(ok(`provider ${name}`, "asks for no key"));
    else if ((await secrets.get(provider.keyName)) !== null) {
      checks.push(ok(`provider ${name}`, `${provider.keyName} is set`));
    } else {
      const remedy = `set ${provider.keyName} before you run a sweep with this provider`;
      checks.push(warning(`provider ${name}`, `${provider.keyName} is not set`, remedy));
    }
  }
  return checks;
}

function textOf(checks: Check[], allWell: boolean): string {
  const width = Math.max(...checks.map((check) => check.name.length));
  const lines = checks.flatMap(({ name, status, found, remedy }) => [
    `${status.padEnd(7)}  ${name.padEnd(width)}  ${found}`,
    ...(remedy === null ? [] : [`${"".padEnd(7)}  ${"".padEnd(width)}  -> ${remedy}`]),
  ]);
  return [...lines, allWell ? "Proctor can run here." : "Proctor cannot run here yet."].join("\n");
}

function thisMachine(runs: string): Machine {
  return {
    nodeVersion: process.version,
    bundles: bundlesFolder(),
    isolation: () => detectIsolation(),
    runs,
    folder: process.cwd(),
    secrets: environmentSecrets(),
    temporary: tmpdir(),
    openFiles,
    trySqlite,
  };
}

/** The limit that a child of ours has, which is ours. */
function openFiles(): Promise<number | null> {
  return new Promise((done) => {
    execFile("/bin/sh", ["-c", "ulimit -n"], (_error, text) => {
      const limit = text.trim() === "unlimited" ? Number.MAX_SAFE_INTEGER : Number.parseInt(text, 10);
      done(Number.isFinite(limit) ? limit : null);
    });
  });
}

async function trySqlite(): Promise<void> {
  const { default: Database } = await import("libsql");
  const database = new Database(":memory:");
  try {
    database.prepare("SELECT 1").get();
  } finally {
    database.close();
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
