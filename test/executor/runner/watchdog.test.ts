import { describe, expect, it } from "vitest";
import { lastMoment, type WatchdogLimits, type WatchdogState, watch } from "../../../lib/executor/runner/watchdog.ts";

const limits: WatchdogLimits = { noStartSeconds: 10, stallSeconds: 30, turnSeconds: 100, totalBinds: false };
const state: WatchdogState = { now: 0, startedAt: 0, lastOutputAt: null, lastModelAt: null, mustEndAt: 1_000_000 };
const at = (seconds: number, change: Partial<WatchdogState> = {}, other: Partial<WatchdogLimits> = {}) =>
  watch({ ...state, now: seconds * 1000, ...change }, { ...limits, ...other });

describe("the watchdog", () => {
  it.each([
    ["waits for a start", 9.999, {}, {}, null],
    ["sees that nothing started", 10, {}, {}, "no_start"],
    ["takes output as a start", 10, { lastOutputAt: 9000 }, {}, null],
    ["takes a model call as a start", 10, { lastModelAt: 9000 }, {}, null],
    ["sees a stall after output", 39, { lastOutputAt: 9000 }, {}, "stalled"],
    ["takes a model call as life", 39, { lastOutputAt: 9000, lastModelAt: 20_000 }, {}, null],
    ["sees a stall after a call that hangs", 50, { lastOutputAt: 9000, lastModelAt: 20_000 }, {}, "stalled"],
    ["ends a turn at its limit", 100, { lastOutputAt: 99_999 }, {}, "turn_timeout"],
    ["names the total when that is what binds", 100, { lastOutputAt: 99_999 }, { totalBinds: true }, "global_timeout"],
    [
      "names the limit of the turn before a stall of the same instant",
      100,
      { lastOutputAt: 70_000 },
      {},
      "turn_timeout",
    ],
    ["ends before the runner's own deadline", 50, { lastOutputAt: 49_000, mustEndAt: 50_000 }, {}, "deadline"],
    ["takes output at the start as life", 29, { lastOutputAt: 0 }, {}, null],
  ] as const)("%s", (_, seconds, change, other, stop) => {
    expect(at(seconds, change, other).stop).toBe(stop);
  });

  it("says when to look again", () => {
    expect(at(0)).toEqual({ stop: null, checkAt: 10_000 });
    expect(at(5, { lastOutputAt: 4000 })).toEqual({ stop: null, checkAt: 34_000 });
    expect(at(80, { lastModelAt: 79_000 })).toEqual({ stop: null, checkAt: 100_000 });
  });
});

describe("the last moment of a turn", () => {
  it.each([
    ["never comes before the turn's own limit", 0, 130_000, 100, 115_000],
    ["keeps a minute where there is much", 0, 7_200_000, 100, 7_140_000],
    ["keeps a quarter of what is left when the message came late", 60_000, 100_000, 100, 90_000],
    ["is now when the deadline has passed", 5000, 4000, 100, 4000],
  ])("%s", (_, now, deadline, turnSeconds, expected) => {
    expect(lastMoment(now, deadline, turnSeconds)).toBe(expected);
  });
});
