/** What the commands on task packages share: a folder loaded and timed, and their answer as JSON. */
import { existsSync } from "node:fs";
import { parseChecks } from "../../lib/roles/checks/schema.ts";
import { type LoadedFolder, loadPackages } from "../../lib/tasks/load.ts";
import { problemJson } from "../../lib/tasks/problem.ts";
import { CommandError } from "../command.ts";

export interface TimedFolder {
  loaded: LoadedFolder;
  elapsedMs: number;
}

/** @throws CommandError when the folder is missing or holds no packages */
export function loadFolder(folder: string | undefined): TimedFolder {
  if (folder === undefined) throw new CommandError(2, "which folder? Name one with tasks/ and injection/ in it.");
  const started = performance.now();
  const loaded = loadPackages(folder, { env: process.env, parseChecks });
  const elapsedMs = Math.round(performance.now() - started);
  if (loaded === null || loaded.found === 0) {
    const found = existsSync(folder) ? "no task packages in it" : "no such folder";
    const expected = "a folder with tasks/<category>/<file>.yaml and injection/<category>/<task id>/ in it";
    throw new CommandError(2, `${folder}: found ${found}, expected ${expected}`);
  }
  return { loaded, elapsedMs };
}

/** The object that `--json` prints: `packages` and `ok` are counts, in all and for each category. */
export function folderJson({ loaded, elapsedMs }: TimedFolder): Record<string, unknown> {
  return {
    packages: loaded.found,
    ok: loaded.ok,
    byCategory: Object.fromEntries(
      Object.entries(loaded.byCategory).map(([category, counts]) => [category, counts.packages]),
    ),
    problems: loaded.problems.map(problemJson),
    elapsedMs,
  };
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;
