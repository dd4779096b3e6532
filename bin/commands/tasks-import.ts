/** `proctor tasks import uniclawbench <checkout> [--only <glob>] --out <folder>`. */

import { importUniclawbench } from "../../lib/tasks/import-uniclawbench.ts";
import { problemJson, problemLine } from "../../lib/tasks/problem.ts";
import { CommandError, type CommandResult } from "../command.ts";
import { harmless } from "../terminal-text.ts";
import { loadFolder, plural } from "./tasks-folder.ts";

/** Exit code 1 when a package was refused; the others are copied all the same. */
export default async function tasksImport(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const json = options.json === true;
  const { out, only } = options;
  if (typeof out !== "string" || out === "") throw new CommandError(2, "where to? Name a folder with --out.");
  const { loaded } = loadFolder(args[0]);
  const live = !json && process.stderr.isTTY === true;
  const result = await importUniclawbench(loaded, {
    out,
    only: typeof only === "string" ? only : null,
    onProgress: (done, total, task) => {
      if (live) process.stderr.write(`\r\u001b[K${done}/${total} ${harmless(task)}`);
    },
  });
  if (live) process.stderr.write("\r\u001b[K");
  const exitCode = result.refused > 0 ? 1 : 0;
  if (json) return { exitCode, text: JSON.stringify({ ...result, problems: result.problems.map(problemJson) }) };
  const megabytes = (result.bytes / 1_000_000).toFixed(1);
  const summary =
    `${plural(result.chosen, "package")}: ${result.copied} copied (${plural(result.files, "file")}, ${megabytes} MB), ` +
    `${result.unchanged} there already, ${result.refused} refused`;
  return { exitCode, text: [...result.problems.map(problemLine), summary].join("\n") };
}
