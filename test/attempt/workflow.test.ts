/** The attempt machine as both engines run it: its file, its functions, and what executors and roles may do. */
import { describe, expect, it } from "vitest";
import { attemptExecutionName } from "../../lib/attempt/machines.ts";
import { type AttemptWorld, attemptWorld, type Turn } from "../support/attempt-world.ts";
import { aLine } from "../support/manifest-line.ts";
import { requestText } from "../support/published.ts";

const passes: Turn = { executor: { does: "reports" }, verdict: "pass" };
const goesOn: Turn = { executor: { does: "reports" }, verdict: "continue" };
const fails: Turn = { executor: { does: "reports" }, verdict: "fail" };

/** Nothing is left of an attempt but its rows. */
async function expectClosed(world: AttemptWorld): Promise<void> {
  expect(world.executors.running).toEqual([]);
  expect(await world.scores.leases(world.line.sweep)).toEqual([]);
  expect((await world.rows()).filter((row) => row.status === "running")).toEqual([]);
  expect((await world.scores.sweep(world.line.sweep))?.reservedUsd).toBe(0);
}

describe("the way through the attempt machine", () => {
  it("passes at once in ten states", async () => {
    const world = await attemptWorld({ tries: [[passes]] });
    const result = await world.run();
    expect(result).toMatchObject({ status: "SUCCEEDED", output: { v: 1, try: 1, status: "pass" } });
    expect(world.entered()).toEqual([
      "Prepare",
      "Launch",
      "CheckLaunch",
      "Turn",
      "Supervise",
      "NextStep",
      "Record",
      "StopExecutor",
      "AfterStop",
      "Done",
    ]);
    expect(await world.rows()).toMatchObject([
      { try: 1, status: "pass", passed: true, score: 1, turns: 1, followups: 0 },
    ]);
    await expectClosed(world);
  });

  it("enters eighteen states for three turns", async () => {
    const world = await attemptWorld({ tries: [[goesOn, goesOn, passes]] });
    const result = await world.run();
    expect(result).toMatchObject({ status: "SUCCEEDED", statesEntered: 18, retries: 0 });
    expect(await world.rows()).toMatchObject([{ status: "pass", turns: 3, followups: 2, executor_seconds: 30 }]);
    expect(world.executors.messages.map(({ turn, request }) => [turn, request.kind, request.text])).toEqual([
      [1, "task", requestText],
      [2, "followup", "Please look at it again (1)."],
      [3, "followup", "Please look at it again (2)."],
    ]);
    expect(world.executors.launched).toHaveLength(1);
    await expectClosed(world);
  });

  it("hands each turn what the earlier ones left of the limits", async () => {
    const slow: Turn = { executor: { does: "reports", seconds: 50 }, verdict: "continue" };
    const line = aLine({ limits: { ...aLine().limits, totalSeconds: 90, tokensPerAttempt: 1000 } });
    const world = await attemptWorld({ line, tries: [[slow, passes]] });
    await world.run();
    expect(world.executors.messages.map(({ limits, secondsUsed }) => ({ ...limits, secondsUsed }))).toMatchObject([
      { turnSeconds: 60, totalBinds: false, usd: 1, tokens: 1000, secondsUsed: 0 },
      { turnSeconds: 40, totalBinds: true, usd: 0.99, tokens: 890, secondsUsed: 50 },
    ]);
  });

  it("ends with the agent's fail", async () => {
    const world = await attemptWorld({ tries: [[fails]] });
    await world.run();
    expect(await world.rows()).toMatchObject([{ status: "fail", verdict: "fail", score: 0.25, valid: true }]);
    await expectClosed(world);
  });

  it("ends with its follow-ups used up", async () => {
    const world = await attemptWorld({ tries: [[goesOn]] });
    const result = await world.run();
    expect(result.status).toBe("SUCCEEDED");
    const lasting = await attemptWorld({ tries: [[goesOn, goesOn, goesOn]] });
    await lasting.run();
    expect(await lasting.rows()).toMatchObject([{ status: "budget_exhausted", turns: 3, score: 0.25 }]);
    await expectClosed(lasting);
  });

  it("ends with a timeout of the agent's, supervised like any turn", async () => {
    const timedOut: Turn = {
      executor: { does: "reports", seconds: 60, stopReason: "global_timeout", code: null, complete: false },
      verdict: "continue",
    };
    const world = await attemptWorld({
      line: aLine({ limits: { ...aLine().limits, maxFollowups: 0 } }),
      tries: [[timedOut]],
    });
    await world.run();
    expect(await world.rows()).toMatchObject([{ status: "global_timeout", stop_reason: "global_timeout", score: 0 }]);
  });

  it("passes ids, keys and counts, never content", async () => {
    const world = await attemptWorld({ tries: [[goesOn, goesOn, passes]] });
    await world.run();
    const told = JSON.stringify(world.history);
    for (const content of [requestText, "Please look at it again", "as the script says", "# rubric"]) {
      expect(told).not.toContain(content);
      expect(JSON.stringify(world.calls)).not.toContain(content);
    }
    expect(Math.max(...world.history.map((event) => JSON.stringify(event).length))).toBeLessThan(4096);
  });

  it("hands secrets to the runner's container alone", async () => {
    const world = await attemptWorld({ tries: [[passes]] });
    await world.run();
    const launch = world.calls.find((call) => call.service === "runTask")?.request as {
      Overrides: { ContainerOverrides: { Name: string; Environment: { Name: string }[] }[] };
      StartedBy: string;
      ClientToken: string;
      TaskDefinition: string;
    };
    const names = Object.fromEntries(
      launch.Overrides.ContainerOverrides.map((one) => [one.Name, one.Environment.map((variable) => variable.Name)]),
    );
    expect(names).toEqual({
      runner: ["PROCTOR_TRY", "PROCTOR_MAILBOX", "PROCTOR_SEAL_KEY", "PROCTOR_TURN_SECRET", "PROCTOR_KEY_NAME"],
      agent: ["PROCTOR_TURN_SECRET"],
    });
    expect(launch).toMatchObject({ StartedBy: `${world.line.attempt}/01`, TaskDefinition: "null:1" });
    expect(launch.ClientToken).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(launch).length).toBeLessThan(8192);
  });
});

describe("supervision and simulation that take long", () => {
  it("calls the supervisor again until it has decided", async () => {
    const world = await attemptWorld({ tries: [[{ ...passes, supervisorWaits: [60, 60, 0, 60] }]] });
    await world.run();
    expect(world.entered().filter((state) => state === "Supervise")).toHaveLength(5);
    expect(await world.rows()).toMatchObject([{ status: "pass" }]);
  });

  it("leaves the attempt unjudged after 20 minutes of waiting, without running it again", async () => {
    const world = await attemptWorld({ tries: [[{ ...passes, supervisorWaits: "for ever" }]] });
    await world.run();
    expect(world.entered().filter((state) => state === "Supervise")).toHaveLength(20);
    expect(await world.rows()).toMatchObject([{ try: 1, status: "unjudged", score: null, valid: false }]);
    await expectClosed(world);
  });

  it("counts the waiting of each turn anew", async () => {
    const slow: Turn = { ...goesOn, supervisorWaits: Array(15).fill(60) };
    const world = await attemptWorld({ tries: [[slow, slow, { ...passes, supervisorWaits: Array(15).fill(60) }]] });
    await world.run();
    expect(await world.rows()).toMatchObject([{ status: "pass", turns: 3 }]);
  });

  it("asks the simulator again until its message is there", async () => {
    const world = await attemptWorld({ tries: [[{ ...goesOn, simulatorWaits: [60, 60] }, passes]] });
    await world.run();
    expect(world.entered().filter((state) => state === "Simulate")).toHaveLength(3);
    expect(world.entered().filter((state) => state === "AskSimulatorAgain")).toHaveLength(2);
    expect(await world.rows()).toMatchObject([{ status: "pass", turns: 2, followups: 1 }]);
  });

  it("gives a simulator that stays silent for 20 minutes a new try", async () => {
    const silent: Turn = { ...goesOn, simulatorWaits: "for ever" };
    const world = await attemptWorld({ tries: [[silent], [goesOn, passes]] });
    const result = await world.run();
    expect(result).toMatchObject({ status: "SUCCEEDED", output: { try: 2, status: "pass" } });
    expect(await world.rows()).toMatchObject([
      { try: 1, status: "infra_error", turns: 1, reason: expect.stringContaining("user simulator") },
      { try: 2, status: "pass" },
    ]);
    await expectClosed(world);
  });

  it("tells a simulator's call that took too long as the simulator's", async () => {
    const late = { state: "Simulate", call: null, when: "before", error: "States.Timeout" } as const;
    const world = await attemptWorld({ tries: [[goesOn, passes]], faults: [late] });
    await world.run();
    const [row] = await world.rows();
    expect(row).toMatchObject({ status: "infra_error", reason: expect.stringContaining("user simulator") });
    expect(row?.reason).not.toContain("runner");
  });

  it("stops asking a supervisor that never waits and never decides", async () => {
    const world = await attemptWorld({ tries: [[{ ...passes, supervisorWaits: Array(1000).fill(0) }]] });
    await world.run();
    expect(world.entered().filter((state) => state === "Supervise")).toHaveLength(400);
    expect(await world.rows()).toMatchObject([{ status: "unjudged" }]);
  });
});

describe("executors that fail", () => {
  const noRetry = aLine({ retries: { infra: 0, rateLimit: 0 } });

  it("a runner that falls silent is a lost heartbeat", async () => {
    const world = await attemptWorld({ line: noRetry, tries: [[{ executor: { does: "nothing" } }]] });
    const start = world.clock.now();
    await world.run();
    expect((world.clock.now() - start) / 1000).toBeCloseTo(300, 0);
    expect(await world.rows()).toMatchObject([
      { status: "infra_error", reason: expect.stringContaining("fell silent") },
    ]);
    await expectClosed(world);
  });

  it("a runner that never answers is ended by the Turn state's timeout", async () => {
    const world = await attemptWorld({ line: noRetry, tries: [[{ executor: { does: "hangs" } }]] });
    const start = world.clock.now();
    await world.run();
    expect((world.clock.now() - start) / 1000).toBeCloseTo(660, 0);
    expect(await world.rows()).toMatchObject([{ status: "infra_error", reason: expect.stringContaining("in time") }]);
    await expectClosed(world);
  });

  it("an executor that dies fails its turn at once, with the reason", async () => {
    const dies: Turn = { executor: { does: "dies", seconds: 7, code: 137, reason: "OutOfMemoryError" } };
    const world = await attemptWorld({ line: noRetry, tries: [[dies]] });
    const start = world.clock.now();
    await world.run();
    expect((world.clock.now() - start) / 1000).toBeLessThan(10);
    expect(await world.rows()).toMatchObject([{ status: "infra_error", reason: expect.stringContaining("memory") }]);
    await expectClosed(world);
  });

  it("infra faults run again in new tries, each with secrets of its own, until one works", async () => {
    const dies: Turn = { executor: { does: "dies", seconds: 1, code: 1 } };
    const world = await attemptWorld({ tries: [[dies], [goesOn, dies], [goesOn, passes]] });
    const result = await world.run();
    expect(result).toMatchObject({ status: "SUCCEEDED", output: { try: 3, status: "pass" } });
    const rows = await world.rows();
    expect(rows.map(({ try: number, status, turns }) => [number, status, turns])).toEqual([
      [1, "infra_error", 1],
      [2, "infra_error", 2],
      [3, "pass", 2],
    ]);
    for (const secret of ["mailbox", "sealKey", "turnSecret", "clientToken", "startedBy"] as const) {
      expect(new Set(world.executors.launched.map((spec) => spec[secret])).size).toBe(3);
    }
    await expectClosed(world);
  });

  it("infra faults end when their tries are used up", async () => {
    const world = await attemptWorld({ tries: [[{ executor: { does: "dies", seconds: 1, code: 1 } }]] });
    await world.run();
    expect((await world.rows()).map((row) => row.status)).toEqual(["infra_error", "infra_error", "infra_error"]);
    await expectClosed(world);
  });

  it("a rate limit runs again after its longer wait, and has a count of its own", async () => {
    const limited: Turn = { executor: { does: "reports", stopReason: "rate_limited", code: null, complete: false } };
    const world = await attemptWorld({ tries: [[limited], [passes]] });
    const start = world.clock.now();
    await world.run();
    expect(await world.rows()).toMatchObject([{ status: "rate_limit" }, { status: "pass" }]);
    expect(world.clock.now() - start).toBeGreaterThan(15_000);
    const hopeless = await attemptWorld({ line: aLine({ retries: { infra: 5, rateLimit: 1 } }), tries: [[limited]] });
    await hopeless.run();
    expect((await hopeless.rows()).map((row) => row.status)).toEqual(["rate_limit", "rate_limit"]);
  });

  it("an answer that is no report leaves no result", async () => {
    for (const answer of [{}, null, "<html>", { executorSeconds: "NaN" }]) {
      const world = await attemptWorld({ line: noRetry, tries: [[{ executor: { does: "babbles", answer } }]] });
      await world.run();
      expect(await world.rows()).toMatchObject([{ status: "infra_error", valid: false }]);
      await expectClosed(world);
    }
  });
});

describe("launches", () => {
  it("waits and tries again, on demand and on Spot in turn, for want of capacity", async () => {
    const world = await attemptWorld({ tries: [[passes]], launches: ["capacity", "throttle", "nothing"] });
    await world.run();
    const launches = world.calls.filter((call) => call.service === "runTask").map((call) => call.request) as {
      ClientToken: string;
      CapacityProviderStrategy: { CapacityProvider: string }[];
    }[];
    expect(launches.map((launch) => launch.CapacityProviderStrategy[0]?.CapacityProvider)).toEqual([
      "FARGATE_SPOT",
      "FARGATE",
      "FARGATE_SPOT",
      "FARGATE",
    ]);
    expect(new Set(launches.map((launch) => launch.ClientToken)).size).toBe(4);
    expect(await world.rows()).toMatchObject([{ status: "pass" }]);
    await expectClosed(world);
  });

  it("knows want of capacity by the text of any error", async () => {
    const launches = [
      { error: "Ecs.InvalidParameterException", message: "Capacity is unavailable at this time" },
      {
        error: "Ecs.EcsException",
        message: "You've reached the limit on the number of vCPUs you can run concurrently",
      },
      { error: "Ecs.ThrottlingException", message: "Rate exceeded" },
    ];
    const world = await attemptWorld({ tries: [[passes]], launches });
    await world.run();
    expect(world.entered().filter((state) => state === "WaitToLaunch")).toHaveLength(3);
    expect(await world.rows()).toMatchObject([{ status: "pass" }]);
  });

  it("gives up after 24 launches within 4.5 hours", async () => {
    const line = aLine({ retries: { infra: 0, rateLimit: 0 } });
    const world = await attemptWorld({ line, tries: [[passes]], launches: Array(100).fill("capacity") });
    const start = world.clock.now();
    await world.run();
    expect(world.calls.filter((call) => call.service === "runTask")).toHaveLength(24);
    const hours = (world.clock.now() - start) / 3_600_000;
    expect(hours).toBeGreaterThan(0.5);
    expect(hours).toBeLessThan(4.5);
    expect(await world.rows()).toMatchObject([
      { status: "infra_error", turns: 0, reason: expect.stringContaining("no executor could be started") },
    ]);
    await expectClosed(world);
  });

  it("does not wait for what will not change", async () => {
    const line = aLine({ retries: { infra: 0, rateLimit: 0 } });
    const world = await attemptWorld({ line, tries: [[passes]], launches: ["configuration"] });
    await world.run();
    expect(world.calls.filter((call) => call.service === "runTask")).toHaveLength(1);
    expect(await world.rows()).toMatchObject([
      { status: "infra_error", reason: expect.stringContaining("configuration") },
    ]);
    await expectClosed(world);
  });

  it("asks again with the same token where the first may have started one", async () => {
    const fault = { state: "Launch", call: 1, when: "after", error: "Ecs.ServerException" } as const;
    const world = await attemptWorld({ tries: [[passes]], faults: [fault] });
    await world.run();
    expect(world.calls.filter((call) => call.service === "runTask")).toHaveLength(2);
    expect(world.executors.launched).toHaveLength(1);
    expect(await world.rows()).toMatchObject([{ status: "pass" }]);
    await expectClosed(world);
  });
});

describe("what is never launched", () => {
  it("an attempt with a valid row", async () => {
    const world = await attemptWorld({ tries: [[passes]] });
    await world.run();
    const again = aLine({ generation: 2 });
    expect(await world.run(again)).toMatchObject({ status: "SUCCEEDED", output: { status: "Proctor.AlreadyDone" } });
    expect(world.executors.launched).toHaveLength(1);
    expect(await world.rows()).toHaveLength(1);
  });

  it("an attempt that the sweep's cap has no dollars for", async () => {
    const line = aLine({ limits: { ...aLine().limits, usdPerAttempt: 2 } });
    const world = await attemptWorld({ line, tries: [[passes]], capUsd: 1.5 });
    expect(await world.run()).toMatchObject({ status: "SUCCEEDED", output: { status: "Proctor.Refused" } });
    expect(world.executors.launched).toEqual([]);
    expect(await world.rows()).toMatchObject([
      { try: 1, status: "cost_stopped", reason: expect.stringContaining("cap") },
    ]);
    await expectClosed(world);
  });

  it("an attempt whose package is not published", async () => {
    const world = await attemptWorld({ tries: [[passes]] });
    const elsewhere = aLine({ digest: "e".repeat(64) });
    expect(await world.run(elsewhere)).toMatchObject({ output: { status: "Proctor.Refused" } });
    expect(await world.rows()).toMatchObject([
      { status: "infra_error", reason: expect.stringContaining("not published") },
    ]);
    await expectClosed(world);
  });
});

describe("cancellation", () => {
  it("at any moment leaves one closed row and nothing running", async () => {
    const tries = [[goesOn, { ...goesOn, simulatorWaits: [60] }, passes]];
    const whole = await attemptWorld({ tries });
    await whole.run();
    const moments = whole.entered().length;
    expect(moments).toBeGreaterThan(18);
    for (let moment = 1; moment <= moments; moment++) {
      let entered = 0;
      const world = await attemptWorld({
        tries,
        onEvent: (event, { machine, line }) => {
          if (event.type !== "StateEntered" || ++entered !== moment) return;
          const name = attemptExecutionName(line.attempt, line.generation);
          queueMicrotask(
            () => void machine.stop("attempt", name, "Proctor.Cancelled", "the operator stopped the sweep"),
          );
        },
      });
      const result = await world.run();
      expect(result.status, `moment ${moment}`).toMatch(/ABORTED|SUCCEEDED/);
      const rows = await world.rows();
      expect(rows, `moment ${moment}`).toHaveLength(1);
      expect(rows[0]?.status, `moment ${moment}`).toMatch(/cancelled|pass/);
      await expectClosed(world);
    }
  });

  it("a sweep that is aborted starts no further tries", async () => {
    const world = await attemptWorld({ tries: [[{ executor: { does: "dies", seconds: 1, code: 1 } }]] });
    await world.scores.requestAbort(world.line.sweep);
    await world.run();
    expect(await world.rows()).toHaveLength(1);
    await expectClosed(world);
  });
});
