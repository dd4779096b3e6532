/** How long the command line takes to say what there is. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { bundlesFolder } from "../lib/platform/local/launcher/bundles.ts";
import { type Measure, median } from "./measure.ts";

export async function measure(): Promise<Measure[]> {
  const times = Array.from({ length: 11 }, () => {
    const start = performance.now();
    execFileSync(process.execPath, [join(bundlesFolder(), "proctor.js"), "--help"], { stdio: "ignore" });
    return performance.now() - start;
  });
  return [{ name: "proctor --help", value: median(times), unit: "ms", target: "under 300" }];
}
