import { setMaxListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { RealClock } from "../../../lib/platform/local/real-clock.ts";
import { VirtualClock } from "../../../lib/platform/local/virtual-clock.ts";

describe("virtual time", () => {
  it("jumps from timer to timer, in order of time and then of setting", async () => {
    const clock = new VirtualClock(0);
    const seen: [string, number][] = [];
    const note = (name: string, ms: number) => clock.sleep(ms).then(() => seen.push([name, clock.now()]));
    await Promise.all([note("c", 20), note("a", 10), note("b", 10), note("zero", 0), note("negative", -5)]);
    expect(seen).toEqual([
      ["zero", 0],
      ["negative", 0],
      ["a", 10],
      ["b", 10],
      ["c", 20],
    ]);
  });

  it("waits until all that is ready has run", async () => {
    const clock = new VirtualClock(0);
    const seen: string[] = [];
    const late = clock.sleep(1000).then(() => seen.push("late"));
    const chain = (async () => {
      for (let step = 0; step < 500; step++) await Promise.resolve();
      seen.push(`chain at ${clock.now()}`);
      await clock.sleep(1);
      for (let step = 0; step < 500; step++) await Promise.resolve();
      seen.push(`chain at ${clock.now()}`);
    })();
    await Promise.all([late, chain]);
    expect(seen).toEqual(["chain at 0", "chain at 1", "late"]);
  });

  it("resolves a sleep that is aborted at once, without time passing, and forgets it", async () => {
    const clock = new VirtualClock(0);
    const abort = new AbortController();
    setMaxListeners(0, abort.signal);
    const sleeps = Array.from({ length: 1000 }, () => clock.sleep(1e9, abort.signal));
    expect(clock.pending).toBe(1000);
    abort.abort();
    await Promise.all(sleeps);
    await clock.sleep(1e9, abort.signal);
    expect([clock.now(), clock.pending]).toEqual([0, 0]);
    await clock.sleep(5);
    expect(clock.now()).toBe(5);
  });

  it("keeps the order of many timers, some of them cancelled", async () => {
    const clock = new VirtualClock(0);
    const seen: number[] = [];
    const expected: number[] = [];
    const sleeps: Promise<unknown>[] = [];
    for (let index = 0; index < 500; index++) {
      const ms = (index * 7919) % 1009;
      const abort = new AbortController();
      const keep = index % 3 === 0;
      sleeps.push(clock.sleep(ms, abort.signal).then(() => (keep ? seen.push(ms) : 0)));
      if (keep) expected.push(ms);
      else abort.abort();
    }
    await Promise.all(sleeps);
    expect(seen).toEqual(expected.sort((a, b) => a - b));
  });

  it("stands still by hand until it is advanced", async () => {
    const clock = new VirtualClock(0, "manual");
    const seen: number[] = [];
    void clock.sleep(10).then(async () => {
      seen.push(clock.now());
      await clock.sleep(10);
      seen.push(clock.now());
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([clock.now(), seen]).toEqual([0, []]);
    await clock.advance(15);
    expect([clock.now(), seen]).toEqual([15, [10]]);
    await clock.advance(5);
    expect(seen).toEqual([10, 20]);
  });
});

describe("real time", () => {
  it("sleeps no longer than it is allowed to", async () => {
    const clock = new RealClock();
    const before = clock.now();
    await clock.sleep(0);
    const abort = new AbortController();
    // Longer than a timer of Node can be.
    const long = clock.sleep(1e12, abort.signal);
    abort.abort();
    await long;
    await clock.sleep(1e12, abort.signal);
    expect(clock.now() - before).toBeLessThan(10_000);
  });
});
