/** How long the command line takes to say what there is: whole processes of their own, from spawn to exit. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { bundlesFolder, installationRoot } from "../lib/platform/local/launcher/bundles.ts";
import { type Measure, median } from "./measure.ts";

const rounds = 11;

export async function measure(): Promise<Measure[]> {
  const fixtures = join(installationRoot(), "test", "fixtures", "uniclawbench");
  return [
    { name: "node alone, doing nothing", value: time(["-e", "0"]), unit: "ms", target: null },
    { name: "proctor --help", value: time([proctor(), "--help"]), unit: "ms", target: "under 300" },
    {
      name: "proctor tasks list, the packages of the tests",
      value: time([proctor(), "tasks", "list", fixtures]),
      unit: "ms",
      target: null,
    },
  ];
}

export const proctor = (): string => join(bundlesFolder(), "proctor.js");

function time(args: string[]): number {
  const times = Array.from({ length: rounds }, () => {
    const start = performance.now();
    execFileSync(process.execPath, args, { stdio: "ignore" });
    return performance.now() - start;
  });
  return median(times);
}
