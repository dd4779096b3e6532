import { describe, expect, it } from "vitest";
import { readableCause } from "../../lib/attempt/fault-cause.ts";
import { launchFailure, launchSpecOf, tryOfStartedBy } from "../../lib/attempt/launch-request.ts";
import { attemptExecutionName, attemptOfExecutionName } from "../../lib/attempt/machines.ts";
import { worstCaseUsd } from "../../lib/attempt/reservation.ts";
import { LaunchError } from "../../lib/platform/ports.ts";
import { attemptWorld } from "../support/attempt-world.ts";
import { aLine } from "../support/manifest-line.ts";

describe("the request that starts an executor", () => {
  it("says to a launcher all that it needs", async () => {
    const line = aLine({
      task: `t${"x".repeat(119)}`,
      network: "web",
      model: {
        name: "m",
        provider: "p",
        price: { input: 0, output: 0 },
        api: "chat",
        baseUrl: "https://example.org/v1",
        keyName: "P_KEY",
      },
    });
    const world = await attemptWorld({ line, tries: [[{ executor: { does: "reports" } }]] });
    await world.run();
    const request = world.calls.find((call) => call.service === "runTask")?.request;
    const lease = world.executors.launched[0];
    expect(launchSpecOf(request)).toEqual({
      startedBy: `${line.attempt}/01`,
      clientToken: lease?.clientToken,
      task: { task: line.task, digest: line.digest },
      agent: { name: "null", version: "1.0.0" },
      network: "web",
      mailbox: lease?.mailbox,
      sealKey: lease?.sealKey,
      turnSecret: lease?.turnSecret,
      keyName: "P_KEY",
    });
  });

  it("is refused when it lacks a part", async () => {
    const world = await attemptWorld({ tries: [[{ executor: { does: "reports" } }]] });
    await world.run();
    const request = world.calls.find((call) => call.service === "runTask")?.request as Record<string, unknown>;
    for (const part of ["ClientToken", "StartedBy", "Overrides", "Tags"]) {
      expect(() => launchSpecOf({ ...request, [part]: undefined }), part).toThrow();
    }
    expect(() => launchSpecOf({ ...request, Tags: [] })).toThrow(/proctor:task/);
    expect(() => launchSpecOf({ ...request, Overrides: { ContainerOverrides: [] } })).toThrow(/PROCTOR_MAILBOX/);
  });

  it("names failures as Fargate does", () => {
    expect(launchFailure(new LaunchError("capacity", "no memory"))).toEqual({
      answer: { Tasks: [], Failures: [{ Reason: "RESOURCE: no memory" }] },
    });
    expect(launchFailure(new LaunchError("throttle", "slowly"))).toMatchObject({ error: "Ecs.ThrottlingException" });
    expect(launchFailure(new LaunchError("configuration", "no image"))).toMatchObject({ error: "Ecs.ClientException" });
  });
});

describe("names", () => {
  it("of tries and executions are read back as they were made", () => {
    const attempt = aLine().attempt;
    expect(tryOfStartedBy(`${attempt}/07`)).toEqual({ attempt, try: 7 });
    expect(tryOfStartedBy(`${attempt}/123`)).toEqual({ attempt, try: 123 });
    for (const other of ["", "ecs-svc/1", `${attempt}/7`, `${attempt}/07/x`]) expect(tryOfStartedBy(other)).toBeNull();
    expect(attemptOfExecutionName(attemptExecutionName(attempt, 100))).toEqual({ attempt, generation: 100 });
    expect(attemptOfExecutionName("lane-g01")).toBeNull();
  });
});

describe("the worst case in dollars", () => {
  const limits = { ...aLine().limits, usdPerAttempt: 3, usdJudging: 0.5, tokensPerAttempt: null };
  const paid = {
    name: "j",
    provider: "p",
    price: { input: 1, output: 4 },
    api: "chat",
    baseUrl: "https://example.org",
    keyName: null,
  } as const;

  it("is the executor's cap and the judging's, where models cost anything", () => {
    expect(worstCaseUsd(aLine({ limits }))).toBe(3);
    expect(worstCaseUsd(aLine({ limits, supervisor: { kind: "model", model: paid, effort: "low" } }))).toBe(3.5);
    expect(worstCaseUsd(aLine({ limits, userSimulator: { kind: "model", model: paid } }))).toBe(3.5);
    expect(worstCaseUsd(aLine({ limits: { ...limits, usdPerAttempt: null } }))).toBe(0);
  });

  it("is bounded by the token cap too, at the dearest price", () => {
    expect(worstCaseUsd(aLine({ model: paid, limits: { ...limits, tokensPerAttempt: 100_000 } }))).toBeCloseTo(0.4, 9);
    expect(
      worstCaseUsd(aLine({ model: paid, limits: { ...limits, usdPerAttempt: null, tokensPerAttempt: 1_000_000 } })),
    ).toBe(4);
  });
});

describe("the cause of a fault", () => {
  it("is the message of the error that it holds", () => {
    expect(readableCause('{"errorType":"E","errorMessage":"a \\"b\\"\\nc","trace":[]}')).toBe('a "b"\nc');
    expect(readableCause('Lambda.Unknown: {"errorMessage":"out of time"}')).toBe("Lambda.Unknown: out of time");
    expect(readableCause('{"errorMessage":"cut off he')).toBe("cut off he");
    expect(readableCause('{"errorMessage":"cut off \\u00')).toBe("cut off ");
    expect(readableCause("no JSON { at all")).toBe("no JSON { at all");
    expect(readableCause("")).toBe("");
  });
});
