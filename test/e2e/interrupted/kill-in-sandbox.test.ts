import { afterEach, expect, it } from "vitest";
import { describeWithBubblewrap } from "../../bubblewrap.ts";
import { closedLoopWorld, killAtEach, newObject } from "./kill-world.ts";
import type { SweepWorld } from "./sweep-world.ts";

let world: SweepWorld;
afterEach(() => world.remove());

describeWithBubblewrap("kill -9 of a run in the sandbox", () => {
  it("loses and doubles nothing, whatever the run is at", { timeout: 120_000 }, async () => {
    world = closedLoopWorld("bwrap");
    await killAtEach(world, [
      // While it publishes.
      newObject(world, /^tasks\//),
      // Before the first attempt.
      (run) => run.says(/to run/),
      // In the middle of a turn.
      newObject(world, /mailbox\//),
      // While it supervises.
      newObject(world, /turn-01\/manifest\.json$/),
      // Between two turns.
      newObject(world, /followups\//),
      // While it records.
      newObject(world, /decisions\/.*turn-02\/decision\.json$/),
      // When an attempt is finished.
      (run) => run.says(/^\[1\/\d\] pass/m),
      // In the middle of compaction.
      newObject(world, /compaction=\d+\/_started/),
    ]);
    const rows = await world.rows();
    expect(rows.filter((row) => row.valid).map((row) => row.isolation)).toEqual(["bwrap", "bwrap", "bwrap"]);
    // The kills after a first turn left what it cost.
    expect(rows.some((row) => !row.valid && row.turns > 0 && row.usd.executor > 0)).toBe(true);
  });
});
