import { afterEach, describe, it } from "vitest";
import { closedLoopWorld, killAtEach } from "./kill-world.ts";
import { until } from "./processes.ts";
import type { SweepWorld } from "./sweep-world.ts";

let world: SweepWorld;
afterEach(() => world.remove());

describe("kill -9 of a run without a sandbox", () => {
  it("loses and doubles nothing, after any time", { timeout: 120_000 }, async () => {
    world = closedLoopWorld("none");
    await killAtEach(
      world,
      [150, 700, 1500, 2600].map((ms) => async (run) => {
        const moment = Date.now() + ms;
        await until(() => run.hasEnded || Date.now() >= moment, "the moment to come");
      }),
    );
  });
});
