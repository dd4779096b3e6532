import { afterEach, describe, expect, it } from "vitest";
import { closedLoop, closedLoopWorld, expectUntouched, finished, killAtEach, killRun } from "./kill-world.ts";
import { until } from "./processes.ts";
import type { SweepWorld } from "./sweep-world.ts";

let world: SweepWorld;
afterEach(() => world.remove());

describe("kill -9 of a run without a sandbox", () => {
  it("loses and doubles nothing, after any time", { timeout: 120_000 }, async () => {
    world = closedLoopWorld("none");
    await killAtEach(
      world,
      [120, 500, 1000, 1700, 2600].map((ms) => async (run) => {
        const moment = Date.now() + ms;
        await until(() => run.hasEnded || Date.now() >= moment, "the moment to come");
      }),
    );
  });

  it("goes on after a kill in the middle of compaction", { timeout: 60_000 }, async () => {
    world = closedLoopWorld("none");
    const file = world.sweep(closedLoop);
    const run = world.proctor("run", file);
    await until(() => run.hasEnded || world.has(/compaction=01\/_started/), "compaction");
    await killRun(world, run);
    const before = await finished(world);
    expect([...before.rows.values()].map((row) => row.status)).toEqual(["pass", "pass", "pass"]);
    const again = await world.proctor("run", file, "--json").ended;
    expect(again.code, again.err).toBe(0);
    await expectUntouched(world, before);
    expect(await world.rows()).toHaveLength(3);
    expect(world.has(/compaction=02\/_done/)).toBe(true);
  });
});
