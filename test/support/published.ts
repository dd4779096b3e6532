/** A package as publishing leaves it, whole enough for the functions that look at it. */
import { packageFile } from "../../lib/firewall/keys.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { publishedFiles, type RunnerPart } from "../../lib/tasks/published.ts";
import type { MemoryObjects } from "./memory-objects.ts";

export const requestText = "Fill the grid and save it as results/grid.txt.";

export function aRunnerPart(line: Pick<ManifestLine, "task" | "digest">, change: Partial<RunnerPart> = {}): RunnerPart {
  return {
    v: 1,
    task: line.task,
    digest: line.digest,
    category: "102_exploration",
    language: "en",
    network: "offline",
    type: "closed_loop",
    timeoutSeconds: 1200,
    maxTotalSeconds: 1800,
    maxFollowups: 2,
    recording: "none",
    headed: false,
    screen: { width: 1440, height: 900 },
    services: [],
    preExec: [],
    privacy: [],
    executable: [],
    ...change,
  };
}

export function publishForTest(
  objects: MemoryObjects,
  line: Pick<ManifestLine, "task" | "digest">,
  runner: Partial<RunnerPart> = {},
): void {
  const { task, digest } = line;
  objects.put(packageFile(task, digest, "agent", publishedFiles.request), requestText);
  const part = JSON.stringify(aRunnerPart(line, runner));
  objects.put(packageFile(task, digest, "runner", publishedFiles.runner), part);
  objects.put(packageFile(task, digest, "hidden", publishedFiles.evalRule), "# rubric");
}
