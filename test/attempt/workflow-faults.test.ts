/** Faults at every state of the attempt machine: whatever is thrown where, each attempt ends closed. */
import { describe, expect, it } from "vitest";
import { machineDefinitions } from "../../lib/attempt/machines.ts";
import { isValidStatus } from "../../lib/attempt/vocabulary.ts";
import { type AttemptWorld, attemptWorld, type Fault, type Turn } from "../support/attempt-world.ts";

const tries: Turn[][] = [
  [
    { executor: { does: "reports" }, verdict: "continue" },
    { executor: { does: "reports" }, verdict: "pass" },
  ],
];

const errors = [
  "States.Timeout",
  "States.HeartbeatTimeout",
  "States.TaskFailed",
  "States.Runtime",
  "States.DataLimitExceeded",
  "States.QueryEvaluationError",
  "Lambda.TooManyRequestsException",
  "Lambda.ServiceException",
  "Ecs.ServerException",
  "Ecs.ThrottlingException",
  "Ecs.ClientException",
  "Ecs.InvalidParameterException",
  "StoreError",
  "Proctor.TurnExists",
  "Proctor.FollowUpNotReady",
];

const attempt = machineDefinitions.attempt as { States: Record<string, { Type: string }> };
const tasks = Object.entries(attempt.States).flatMap(([name, state]) => (state.Type === "Task" ? [name] : []));

/** Answers that lie: the service says that nothing runs, and it does. Only the runner's own deadline ends such an executor. */
function lies(fault: Fault): boolean {
  const saysNothingStarted = fault.state === "Launch" && fault.when === "after" && /Thrott|TooMany/.test(fault.error);
  const saysGone =
    fault.state === "StopExecutor" && fault.when === "before" && fault.error === "Ecs.InvalidParameterException";
  return saysNothingStarted || saysGone;
}

async function expectClosed(world: AttemptWorld, what: string): Promise<void> {
  const rows = await world.rows();
  expect(rows.length, `${what}: rows`).toBeGreaterThan(0);
  expect(rows.length, `${what}: rows`).toBeLessThanOrEqual(1 + world.line.retries.infra);
  expect(
    rows.filter((row) => row.status === "running"),
    `${what}: open rows`,
  ).toEqual([]);
  expect(
    rows.slice(0, -1).filter((row) => isValidStatus(row.status)),
    `${what}: tries after a valid one`,
  ).toEqual([]);
  expect(
    rows.map((row) => row.try),
    `${what}: tries`,
  ).toEqual(rows.map((_, index) => index + 1));
  expect(await world.scores.leases(world.line.sweep), `${what}: leases`).toEqual([]);
  expect((await world.scores.sweep(world.line.sweep))?.reservedUsd, `${what}: reserved dollars`).toBe(0);
  expect(world.executors.running, `${what}: executors`).toEqual([]);
}

describe("faults at every state of the attempt machine", () => {
  it("knows every task state", () => {
    expect(tasks).toEqual(["Prepare", "Launch", "Turn", "Supervise", "Simulate", "Record", "StopExecutor"]);
  });

  for (const state of tasks) {
    for (const when of ["before", "after"] as const) {
      it(`${state}, ${when} it did its work: once and always`, async () => {
        for (const error of errors) {
          for (const call of state === "Turn" ? [1, 2, null] : [1, null]) {
            const fault: Fault = { state, when, error, call };
            const world = await attemptWorld({ tries, faults: [fault] });
            const result = await world.run();
            if (lies(fault)) await world.clock.sleep(9 * 3_600_000);
            const what = `${state} ${when} ${error} call ${call ?? "all"}`;
            await expectClosed(world, what);
            const last = (await world.rows()).at(-1);
            if (result.status === "SUCCEEDED") expect(result.output, what).toMatchObject({ status: last?.status });
            else expect(last?.status, what).toMatch(/infra_error|unjudged|pass/);
          }
        }
      });
    }
  }

  it("one fault of the platform costs no attempt its result", async () => {
    for (const state of tasks) {
      const ecs = ["Ecs.ServerException", "Ecs.ThrottlingException", "States.Timeout"];
      const lambda = ["Lambda.TooManyRequestsException", "States.TaskFailed", "States.Timeout"];
      for (const error of state === "Launch" || state === "StopExecutor" ? ecs : lambda) {
        const world = await attemptWorld({ tries, faults: [{ state, error, call: 1, when: "before" }] });
        await world.run();
        expect((await world.rows()).at(-1)?.status, `${state} ${error}`).toBe("pass");
      }
    }
  });

  it("answers that are garbage close the attempt like any fault", async () => {
    const garbage = [
      {},
      null,
      "<html>",
      { v: 1, next: "launch" },
      { v: 1, next: "whatever", waitedSeconds: 0 },
      "x".repeat(300_000),
    ];
    for (const state of ["Prepare", "Supervise", "Simulate", "Record"]) {
      for (const [index, bad] of garbage.entries()) {
        const world = await attemptWorld({ tries, answer: (from, answer) => (from === state ? bad : answer) });
        await world.run();
        await expectClosed(world, `${state} answers garbage ${index}`);
      }
    }
  });

  it("two faults at once leave nothing behind either", async () => {
    for (const first of tasks) {
      const faults: Fault[] = [
        { state: first, when: "after", error: "States.TaskFailed", call: null },
        { state: "Record", when: "before", error: "StoreError", call: null },
        { state: "StopExecutor", when: "before", error: "Ecs.ServerException", call: null },
      ];
      const world = await attemptWorld({ tries, faults });
      await world.run();
      await expectClosed(world, `${first}, Record and StopExecutor`);
    }
  });

  it("a second word of the same end changes nothing", async () => {
    const world = await attemptWorld({
      tries,
      faults: [{ state: "Record", when: "before", error: "StoreError", call: null }],
    });
    const result = await world.run();
    const rows = await world.rows();
    if (result.status === "SUCCEEDED") throw new Error("expected a failed execution");
    await world.executionEnded(null, `${world.line.attempt}-g01`, result);
    await world.executionEnded(world.line, `${world.line.attempt}-g01`, result);
    expect(await world.rows()).toEqual(rows);
  });
});
