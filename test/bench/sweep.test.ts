/** The benchmark's own sweeps: a measure of attempts that do not pass, or not all, would be worth nothing. */
import { describe, expect, it } from "vitest";
import { type BenchSweep, runBenchSweep } from "../../bench/sweep.ts";
import { openInProcessLauncher } from "../../lib/platform/local/launcher/in-process.ts";
import { localRunner } from "../../lib/platform/local/runner.ts";

const sweep: BenchSweep = {
  attempts: 3,
  concurrency: 2,
  launcher: { open: (at) => openInProcessLauncher({ ...at, runner: localRunner() }), warning: null },
  agent: "null",
  decides: "results/a.txt",
};

describe("a sweep of the benchmark", () => {
  it("runs every attempt under a name of its own, and tells of each end and of each state", async () => {
    const supervised = new Set<string>();
    let ended = 0;
    const seconds = await runBenchSweep({
      ...sweep,
      onEnded: () => {
        ended += 1;
      },
      onEvent: (event) => {
        if (event.type === "StateEntered" && event.state === "Supervise") supervised.add(event.execution);
      },
    });
    expect(seconds).toBeGreaterThan(0);
    expect({ ended, supervised: supervised.size }).toEqual({ ended: 3, supervised: 3 });
  });

  it("gives no figure when attempts fail", async () => {
    const launcher: BenchSweep["launcher"] = {
      open: (at) => openInProcessLauncher({ ...at, runner: localRunner(), agents: { null: async () => 0 } }),
      warning: null,
    };
    await expect(runBenchSweep({ ...sweep, launcher })).rejects.toThrow("3 attempts were to pass, 0 did");
  });
});
