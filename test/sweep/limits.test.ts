import { describe, expect, it } from "vitest";
import { expandSweep } from "../../lib/sweep/expand.ts";
import { limitsInForce, loweredLimits, raisedLimits } from "../../lib/sweep/limits.ts";
import { plannedTask, sweepPlan } from "../support/sweep-plan.ts";

const own = { turnSeconds: 1200, totalSeconds: 1800, maxFollowups: 2 };
const limits = (stated: Record<string, unknown>) => sweepPlan({ fields: { limits: stated } }).sweep.limits;

describe("limits in force", () => {
  it("are the package's and the watchdog's where the sweep says nothing", () => {
    expect(limitsInForce(own, limits({}))).toEqual({
      turnSeconds: 1200,
      totalSeconds: 1800,
      noStartSeconds: 180,
      stallSeconds: 600,
      maxFollowups: 2,
      usdPerAttempt: null,
      usdJudging: null,
      tokensPerAttempt: null,
    });
  });

  it("are lowered by the sweep, and named", () => {
    const inForce = limitsInForce(own, limits({ turnSeconds: 5, stallSeconds: 3, totalSeconds: 1800 }));
    expect(inForce).toMatchObject({ turnSeconds: 5, totalSeconds: 1800, stallSeconds: 3 });
    expect(loweredLimits(own, inForce)).toEqual({ turnSeconds: 5, stallSeconds: 3 });
    const { lowered } = expandSweep(
      sweepPlan({ tasks: [plannedTask("a")], fields: { limits: { turnSeconds: 5 } } }),
      1,
    );
    expect(lowered).toEqual([{ task: "a", limits: { turnSeconds: 5 } }]);
  });

  it("have a worst case in dollars under a cap", () => {
    expect(limitsInForce(own, limits({ usd: 50 }))).toMatchObject({ usdPerAttempt: 5, usdJudging: 1 });
    expect(limitsInForce(own, limits({ usd: 50, usdPerAttempt: 2, usdJudging: null }))).toMatchObject({
      usdPerAttempt: 2,
      usdJudging: null,
    });
  });

  it("are never raised: one problem a limit, with the least of the packages", () => {
    const tasks = [
      { id: "a", limits: own },
      { id: "b", limits: { ...own, turnSeconds: 900 } },
    ];
    expect(
      raisedLimits("s.yaml", tasks, limits({ turnSeconds: 1800, totalSeconds: 1800, stallSeconds: 601 })),
    ).toMatchObject([
      {
        field: "limits.turnSeconds",
        found: "1800, which raises the limit of a and 1 more",
        expected: expect.stringContaining("at most 900"),
      },
      { field: "limits.stallSeconds", expected: expect.stringContaining("at most 600") },
    ]);
    expect(raisedLimits("s.yaml", tasks, limits({ turnSeconds: 1000 }))).toMatchObject([
      { found: expect.stringContaining("of b") },
    ]);
    expect(raisedLimits("s.yaml", tasks, limits({ turnSeconds: 900 }))).toEqual([]);
  });
});
