/** Where the bundles stand that processes of an executor run. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Root of this installation: the nearest folder above with our package.json. */
export function installationRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const above = dirname(folder);
    if (above === folder) throw new Error(`no package.json above ${fileURLToPath(import.meta.url)}`);
    folder = above;
  }
  return folder;
}

export const bundlesFolder = (): string => join(installationRoot(), "dist");

/** What enters a sandbox. */
export const sandboxBundles = ["turn-server-main.js", "mini-main.js", "null-main.js"] as const;
export const runnerBundle = "runner-main.js";
