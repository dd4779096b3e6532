import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Bundles the sources under test, so that child processes run what the tests see. */
export default function setup(): void {
  if (process.env.PROCTOR_SKIP_BUILD === "1") return;
  execFileSync(process.execPath, ["build.mjs"], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: "inherit",
  });
}
