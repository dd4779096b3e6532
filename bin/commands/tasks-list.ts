/** `proctor tasks list <folder>`: one line a package. */
import type { CommandResult } from "../command.ts";
import { folderJson, loadFolder, plural } from "./tasks-folder.ts";

export default async function tasksList(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const folder = loadFolder(args[0]);
  const { loaded } = folder;
  if (options.json === true) {
    const tasks = loaded.packages.map((pkg) => ({
      id: pkg.id,
      category: pkg.category,
      capability: pkg.capability,
      language: pkg.language,
      cluster: pkg.cluster,
      network: pkg.network,
      type: pkg.task.type,
      ok: pkg.ok,
    }));
    return { exitCode: 0, text: JSON.stringify({ ...folderJson(folder), tasks }) };
  }
  const widest = Math.max(...loaded.packages.map((pkg) => pkg.id.length), 0);
  const capability = Math.max(...loaded.packages.map((pkg) => pkg.capability.length), 0);
  const lines = loaded.packages.map((pkg) => {
    const state = pkg.ok ? "ok" : "not ok";
    return `${pkg.id.padEnd(widest)}  ${pkg.capability.padEnd(capability)}  ${pkg.language}  ${pkg.network.padEnd(7)}  ${state}`;
  });
  const broken = loaded.broken.map((task) => `${task.file}: not readable`);
  const rest = loaded.found - loaded.ok;
  const hint = rest > 0 ? `; \`proctor tasks validate ${args[0]}\` says what is wrong with the other ${rest}` : "";
  const summary = `${plural(loaded.found, "package")}, ${loaded.ok} ok${hint}`;
  return { exitCode: 0, text: [...lines, ...broken, summary].join("\n") };
}
