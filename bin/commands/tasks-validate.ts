/** `proctor tasks validate <folder>`: everything that is wrong with the packages of a folder, at once. */
import { problemLine } from "../../lib/tasks/problem.ts";
import type { CommandResult } from "../command.ts";
import { folderJson, loadFolder, plural } from "./tasks-folder.ts";

/** Exit code 1 when a package has errors; warnings alone are fine. */
export default async function tasksValidate(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const folder = loadFolder(args[0]);
  const { loaded, elapsedMs } = folder;
  const errors = loaded.problems.filter((problem) => problem.severity === "error").length;
  const exitCode = errors > 0 ? 1 : 0;
  if (options.json === true) return { exitCode, text: JSON.stringify(folderJson(folder)) };
  const warnings = loaded.problems.length - errors;
  const summary = [
    `${plural(loaded.found, "package")}, ${loaded.ok} ok`,
    plural(errors, "error"),
    plural(warnings, "warning"),
    `${elapsedMs} ms`,
  ].join(", ");
  return { exitCode, text: [...loaded.problems.map(problemLine), summary].join("\n") };
}
