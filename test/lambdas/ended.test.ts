/** The functions that look after executors and executions that ended. */

import { describe, expect, it } from "vitest";
import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import { executionEndedHandler } from "../../lambdas/execution-ended.ts";
import { taskStopped, taskStoppedHandler } from "../../lambdas/task-stopped.ts";
import { openRow } from "../../lib/attempt/attempt-row.ts";
import { executorEnd } from "../../lib/attempt/executor-end.ts";
import { judgingUsageKey } from "../../lib/firewall/keys.ts";
import { guardScores } from "../../lib/platform/local/guarded-scores.ts";
import type { StoppedExecutor } from "../../lib/platform/ports.ts";
import { aLease } from "../support/lease.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { putTurn } from "../support/role-world.ts";

const line = aLine();
const now = Date.UTC(2026, 0, 1);

async function openTry(turnToken: string | null, executor: string | null = "executor-1") {
  const scores = new MemoryScores();
  await scores.startGeneration(0, {
    sweep: line.sweep,
    generation: 1,
    digest: "s",
    fixed: "",
    capUsd: null,
    planned: 1,
    controller: null,
  });
  await scores.openTry(
    openRow(line, 1, { now, isolation: null, image: null, loweredLimits: {} }),
    aLease(line, { turnToken, executor }),
  );
  const failed: string[][] = [];
  const open = new Set(turnToken === null ? [] : [turnToken]);
  const tokens = {
    fail: async (token: string, error: string, cause: string) => {
      failed.push([token, error, cause]);
      return open.delete(token) ? ("accepted" as const) : ("closed" as const);
    },
    succeed: async () => "closed" as const,
    heartbeat: async () => "closed" as const,
  };
  return { scores, tokens, failed };
}

describe("task stopped", () => {
  const died: StoppedExecutor = {
    id: "executor-1",
    startedBy: `${line.attempt}/01`,
    code: 1,
    signal: null,
    reason: "",
  };

  it("fails the open turn at once, once", async () => {
    const { scores, tokens, failed } = await openTry("token-1");
    const handler = taskStoppedHandler({ scores: guardScores(scores, "reaper"), tokens });
    expect(await handler(taskStopped(died))).toEqual({ v: 1, answered: "failed" });
    expect(await handler(taskStopped(died))).toEqual({ v: 1, answered: "closed" });
    expect(failed[0]).toEqual(["token-1", "Proctor.ExecutorExited", expect.stringContaining("exit code 1")]);
  });

  it("leaves alone a try between turns, another executor's, a closed one and what is not ours", async () => {
    const between = await openTry(null);
    const relaunched = await openTry("token-1", "executor-2");
    for (const { scores, tokens, failed } of [between, relaunched]) {
      const handler = taskStoppedHandler({ scores, tokens });
      for (const startedBy of [died.startedBy, `${line.attempt}/02`, "ecs-svc/123", ""]) {
        expect(await handler(taskStopped({ ...died, startedBy }))).toEqual({ v: 1, answered: "no_open_turn" });
      }
      expect(failed).toEqual([]);
    }
  });
});

describe("the end of an executor", () => {
  const end = { code: null, signal: null, stopCode: null, reason: "" };
  const table = [
    [
      { ...end, code: 1, stopCode: "EssentialContainerExited", reason: "OutOfMemoryError: container killed" },
      "Proctor.ExecutorOutOfMemory",
    ],
    [{ ...end, code: 1, reason: "the agent's side ended: out of memory" }, "Proctor.ExecutorExited"],
    [{ ...end, code: 137 }, "Proctor.ExecutorOutOfMemory"],
    [{ ...end, signal: "SIGKILL" }, "Proctor.ExecutorOutOfMemory"],
    [{ ...end, code: 137, stopCode: "SpotInterruption" }, "Proctor.ExecutorInterrupted"],
    [{ ...end, code: 143, stopCode: "SpotInterruption" }, "Proctor.ExecutorInterrupted"],
    [{ ...end, stopCode: "InfrastructureHealth" }, "Proctor.ExecutorInterrupted"],
    [{ ...end, signal: "SIGTERM" }, "Proctor.ExecutorInterrupted"],
    [{ ...end, stopCode: "TaskFailedToStart", reason: "CannotPullContainerError" }, "Proctor.ExecutorNotStarted"],
    [{ ...end, stopCode: "UserInitiated" }, "Proctor.ExecutorStopped"],
    [{ ...end, code: 1, stopCode: "EssentialContainerExited" }, "Proctor.ExecutorExited"],
    [{ ...end, code: 0 }, "Proctor.ExecutorExited"],
  ] as const;

  it("is told apart by stop code, exit code, signal and reason", () => {
    for (const [stopped, error] of table) {
      expect(executorEnd(stopped), JSON.stringify(stopped)).toMatchObject({ error });
    }
  });
});

describe("execution ended", () => {
  const name = `${line.attempt}-g01`;
  function handlerOf({ scores, tokens }: Awaited<ReturnType<typeof openTry>>, objects = new MemoryObjects()) {
    const stops: [string, string | null][] = [];
    const handler = executionEndedHandler({
      closeLeftOpen: closeLeftOpen({
        store: objects.as({ role: "record" }),
        scores: guardScores(scores, "record"),
        clock: { now: () => now + 5000 },
      }),
      scores: guardScores(scores, "reaper"),
      clock: { now: () => now + 5000, sleep: async () => {} },
      tokens,
      stopExecutors: async (startedBy, executor) => stops.push([startedBy, executor]),
    });
    return { stops, handler };
  }
  const ended = { v: 1, name, status: "ABORTED", error: "Proctor.Cancelled", cause: "by the operator", line };

  it("closes the row of a cancelled execution, stops its executor and fails its turn", async () => {
    const world = await openTry("token-1");
    const { handler, stops } = handlerOf(world);
    expect(await handler(ended)).toEqual({ v: 1, closed: 1, stopped: 1 });
    expect(await world.scores.tries(line.sweep, line.attempt)).toMatchObject([
      { status: "cancelled", ended: "2026-01-01T00:00:05.000Z", reason: expect.stringContaining("by the operator") },
    ]);
    expect(stops).toEqual([[`${line.attempt}/01`, "executor-1"]]);
    expect(world.failed).toMatchObject([["token-1", "Proctor.ExecutionEnded", expect.anything()]]);
    expect(await world.scores.lease(line.attempt, 1)).toBeNull();
  });

  it("closes the row of a failed or timed-out one as an infra fault", async () => {
    for (const status of ["FAILED", "TIMED_OUT"]) {
      const world = await openTry(null, null);
      await handlerOf(world).handler({ ...ended, status });
      expect(await world.scores.tries(line.sweep, line.attempt)).toMatchObject([{ status: "infra_error" }]);
    }
  });

  it("keeps what its whole turns and their judging cost", async () => {
    for (const [status, becomes] of [
      ["ABORTED", "cancelled"],
      ["FAILED", "unjudged"],
    ] as const) {
      const world = await openTry(null);
      const objects = new MemoryObjects();
      const of = { attempt: line.attempt, try: 1 };
      putTurn(objects, of, 1);
      const call = { v: 1, role: "supervisor", turn: 1, model: "j", ms: 1, status: "timeout", usd: 0.4 };
      const tokens = { input: 9, cached: 0, output: 0 };
      objects.put(judgingUsageKey(of, 1, 1), `${JSON.stringify({ ...call, tokens })}\n`);
      await handlerOf(world, objects).handler({ ...ended, status });
      expect(await world.scores.tries(line.sweep, line.attempt)).toMatchObject([
        { status: becomes, turns: 1, usd: { executor: 0.001, supervisor: 0.4 } },
      ]);
      expect((await world.scores.sweep(line.sweep))?.spentUsd).toBe(0.401);
    }
  });

  it("finds the row without the execution's input", async () => {
    const world = await openTry(null);
    expect(await handlerOf(world).handler({ ...ended, line: null })).toMatchObject({ closed: 1 });
  });

  it("changes nothing when it is told again", async () => {
    const world = await openTry("token-1");
    const { handler } = handlerOf(world);
    await handler(ended);
    const rows = await world.scores.tries(line.sweep, line.attempt);
    expect(await handler({ ...ended, status: "FAILED" })).toMatchObject({ closed: 0 });
    expect(await world.scores.tries(line.sweep, line.attempt)).toEqual(rows);
  });

  it("leaves a valid row and other generations alone", async () => {
    const world = await openTry(null);
    const [row] = await world.scores.tries(line.sweep, line.attempt);
    if (!row) throw new Error("no row");
    expect(
      await handlerOf(world).handler({ ...ended, name: `${line.attempt}-g02`, line: { ...line, generation: 2 } }),
    ).toMatchObject({ closed: 1 });
    expect((await world.scores.tries(line.sweep, line.attempt)).map((one) => one.status)).toEqual([
      "running",
      "cancelled",
    ]);
    await world.scores.closeTry({ ...row, status: "pass", score: 1, valid: true, passed: true });
    expect(await handlerOf(world).handler(ended)).toMatchObject({ closed: 0 });
  });

  it("writes a row for an execution that opened none, once", async () => {
    const world = await openTry(null);
    const other = aLine({ attempt: "bbbbbbbbbbbbbbbbbbbbbbbbbb" });
    const { handler } = handlerOf(world);
    const event = { ...ended, name: `${other.attempt}-g01`, status: "FAILED", line: other };
    expect(await handler(event)).toMatchObject({ closed: 1 });
    expect(await handler(event)).toMatchObject({ closed: 0 });
    expect(await world.scores.tries(line.sweep, other.attempt)).toMatchObject([{ try: 1, status: "infra_error" }]);
  });

  it("takes no notice of executions of other machines", async () => {
    const world = await openTry(null);
    expect(await handlerOf(world).handler({ ...ended, name: "some-lane" })).toEqual({ v: 1, closed: 0, stopped: 0 });
  });
});
