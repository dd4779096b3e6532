/** What every score table does, whatever it stands on. An adapter's test calls this with a way to open it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Lease, ScoreTable } from "../../../lib/platform/ports.ts";
import type { ScoreRow } from "../../../lib/results/score-row.ts";

export interface OpenedScoreTable {
  /** Another connection to the same table. */
  connect(): Promise<ScoreTable>;
  close(): Promise<void>;
}

export function exampleRow(change: Partial<ScoreRow> = {}): ScoreRow {
  const tokens = { input: 0, cached: 0, output: 0 };
  return {
    v: 1,
    sweep: "night",
    generation: 1,
    attempt: "a1",
    try: 1,
    task: "task_1",
    category: "102_exploration",
    capability: "exploration",
    language: "en",
    cluster: "task_1",
    agent: "null",
    agent_version: "1",
    model: "m",
    epoch: 1,
    status: "running",
    verdict: null,
    attempt_state: null,
    stop_reason: null,
    passed: false,
    valid: false,
    score: null,
    score_source: null,
    threshold: 0.9,
    turns: 0,
    followups: 0,
    fallback_turns: 0,
    executor_seconds: 0,
    wall_seconds: 0,
    tokens: { executor: tokens, supervisor: tokens, simulator: tokens },
    usd: { executor: 0, supervisor: 0, simulator: 0 },
    isolation: null,
    lowered_limits: {},
    digests: { task: "d", prompts: null, rubric: null, image: null },
    started: "2026-01-01T00:00:00.000Z",
    ended: null,
    reason: "",
    ...change,
  };
}

export function exampleLease(change: Partial<Lease> = {}): Lease {
  return {
    sweep: "night",
    attempt: "a1",
    try: 1,
    generation: 1,
    round: 1,
    mailbox: "random",
    sealKey: "a2V5",
    turnSecret: "secret",
    turnToken: null,
    reservedUsd: 0,
    executor: null,
    expiresAt: "2026-01-01T01:00:00.000Z",
    ...change,
  };
}

export const exampleSweep: Parameters<ScoreTable["startGeneration"]>[1] = {
  sweep: "night",
  generation: 1,
  digest: "d",
  fixed: "f",
  capUsd: null,
  planned: 3,
  controller: null,
};

const usd = (executor: number): ScoreRow["usd"] => ({ executor, supervisor: 0, simulator: 0 });

export function scoreTableContract(adapter: string, open: () => Promise<OpenedScoreTable>): void {
  describe(`score table: ${adapter}`, () => {
    let opened: OpenedScoreTable;
    let table: ScoreTable;
    beforeEach(async () => {
      opened = await open();
      table = await opened.connect();
    });
    afterEach(() => opened.close());

    it("starts the generations of a sweep, each once", async () => {
      expect(await table.sweep("night")).toBeNull();
      expect(await table.startGeneration(1, { ...exampleSweep, generation: 2 })).toBe(false);
      const controller = { pid: 7, host: "h", startedAt: "s", heartbeatAt: "b" };
      expect(await table.startGeneration(0, { ...exampleSweep, capUsd: 12.5, controller })).toBe(true);
      expect(await table.startGeneration(0, exampleSweep)).toBe(false);
      expect(await table.sweep("night")).toEqual({
        ...exampleSweep,
        capUsd: 12.5,
        reservedUsd: 0,
        spentUsd: 0,
        controller,
        abortRequested: false,
      });
      const starts = await Promise.all(
        [0, 1, 2, 3].map(async () => (await opened.connect()).startGeneration(1, { ...exampleSweep, generation: 2 })),
      );
      expect(starts.filter(Boolean)).toHaveLength(1);
      await table.startGeneration(0, { ...exampleSweep, sweep: "day" });
      expect((await table.sweeps()).map(({ sweep, generation }) => [sweep, generation])).toEqual([
        ["day", 1],
        ["night", 2],
      ]);
    });

    it("takes heartbeats and aborts, and forgets an abort with the next generation", async () => {
      expect(await table.requestAbort("night")).toBe(false);
      await expect(table.heartbeat("night", null, 1)).rejects.toMatchObject({ code: "not_found" });
      await table.startGeneration(0, exampleSweep);
      const controller = { pid: 7, host: "h", startedAt: "s", heartbeatAt: "later" };
      expect(await table.heartbeat("night", controller, 1)).toBe(true);
      expect(await table.requestAbort("night")).toBe(true);
      expect(await (await opened.connect()).sweep("night")).toMatchObject({ controller, abortRequested: true });
      await table.startGeneration(1, { ...exampleSweep, generation: 2 });
      expect((await table.sweep("night"))?.abortRequested).toBe(false);
    });

    it("lets a process that another has followed say nothing any more", async () => {
      const holder = (pid: number) => ({ pid, host: "h", startedAt: "s", heartbeatAt: "s" });
      await table.startGeneration(0, { ...exampleSweep, controller: holder(7) });
      await table.startGeneration(1, { ...exampleSweep, generation: 2, controller: holder(8) });
      expect(await table.heartbeat("night", holder(7), 1)).toBe(false);
      expect(await table.heartbeat("night", null, 1)).toBe(false);
      expect((await table.sweep("night"))?.controller?.pid).toBe(8);
    });

    it("opens a try with its lease, both or neither", async () => {
      await table.startGeneration(0, exampleSweep);
      expect(await table.openTry(exampleRow(), exampleLease())).toBe(true);
      expect(await table.openTry(exampleRow({ task: "x" }), exampleLease({ mailbox: "x" }))).toBe(false);
      expect(await table.tries("night", "a1")).toEqual([exampleRow()]);
      expect(await table.lease("a1", 1)).toEqual(exampleLease());
      expect(await table.openTry(exampleRow({ try: 2 }), exampleLease({ try: 2 }))).toBe(true);
      expect((await table.leases("night")).map((lease) => lease.try)).toEqual([1, 2]);
      await expect(table.openTry(exampleRow({ try: 3 }), exampleLease({ try: 4 }))).rejects.toThrow(TypeError);
      expect(await table.lease("a1", 3)).toBeNull();
    });

    it("changes the named fields of a lease", async () => {
      await table.openTry(exampleRow(), exampleLease());
      expect(await table.updateLease("a1", 1, { turnToken: "token", executor: "task-7" })).toBe(true);
      expect(await table.lease("a1", 1)).toEqual(exampleLease({ turnToken: "token", executor: "task-7" }));
      expect(await table.updateLease("a1", 1, { turnToken: null, expiresAt: "later" })).toBe(true);
      expect(await table.lease("a1", 1)).toEqual(exampleLease({ executor: "task-7", expiresAt: "later" }));
      expect(await table.updateLease("a1", 1, {})).toBe(true);
      expect(await table.updateLease("a1", 2, { turnToken: "x" })).toBe(false);
      expect(await table.updateLease("a1", 2, {})).toBe(false);
    });

    it("never lets a status go back", async () => {
      await table.openTry(exampleRow(), exampleLease());
      const steps: [ScoreRow["status"], boolean][] = [
        ["running", false],
        ["unjudged", true],
        ["unjudged", false],
        ["infra_error", true],
        ["cancelled", false],
        ["pass", true],
        ["fail", false],
        ["infra_error", false],
        ["running", false],
      ];
      for (const [status, written] of steps) {
        expect([status, await table.closeTry(exampleRow({ status, reason: status }))]).toEqual([status, written]);
      }
      expect(await table.tries("night", "a1")).toEqual([exampleRow({ status: "pass", reason: "pass" })]);
      expect(await table.openTry(exampleRow(), exampleLease())).toBe(false);
      expect(await table.lease("a1", 1)).toBeNull();
    });

    it("records a try that was refused before it opened", async () => {
      expect(await table.closeTry(exampleRow({ status: "cost_stopped" }))).toBe(true);
      expect(await table.tries("night", "a1")).toEqual([exampleRow({ status: "cost_stopped" })]);
    });

    it("settles the dollars of a try once", async () => {
      await table.startGeneration(0, { ...exampleSweep, capUsd: 1 });
      expect(await table.reserve("night", 0.7)).toBe(true);
      await table.openTry(exampleRow(), exampleLease({ reservedUsd: 0.7 }));
      expect(await table.closeTry(exampleRow({ status: "unjudged", usd: usd(0.3) }))).toBe(true);
      expect(await table.sweep("night")).toMatchObject({ reservedUsd: 0, spentUsd: 0.3 });
      // Judged again in vain: only what that cost is added, and no judging takes dollars back.
      expect(await table.closeTry(exampleRow({ status: "unjudged", usd: usd(0.35) }))).toBe(true);
      expect(await table.closeTry(exampleRow({ status: "unjudged", usd: usd(0.35) }))).toBe(false);
      expect(await table.closeTry(exampleRow({ status: "unjudged", usd: usd(0.3) }))).toBe(false);
      expect(await table.sweep("night")).toMatchObject({ reservedUsd: 0, spentUsd: 0.35 });
      const judged = { executor: 0.3, supervisor: 0.1, simulator: 0 };
      expect(await table.closeTry(exampleRow({ status: "pass", usd: judged }))).toBe(true);
      expect(await table.sweep("night")).toMatchObject({ reservedUsd: 0, spentUsd: 0.4 });
    });

    it("holds the cap, to the last of many tenths", async () => {
      await expect(table.reserve("night", 1)).rejects.toMatchObject({ code: "not_found" });
      await table.startGeneration(0, { ...exampleSweep, capUsd: 1 });
      const connections = await Promise.all([0, 1, 2].map(() => opened.connect()));
      const results = await Promise.all(
        Array.from({ length: 30 }, (_, at) => connections[at % 3]!.reserve("night", 0.1)),
      );
      expect(results.filter(Boolean)).toHaveLength(10);
      expect((await table.sweep("night"))?.reservedUsd).toBe(1);
      expect(await table.reserve("night", 0)).toBe(true);
      expect(await table.reserve("night", -0.1)).toBe(true);
      expect(await table.reserve("night", 0.1)).toBe(true);
      expect(await table.reserve("night", 0.000001)).toBe(false);
      await table.startGeneration(1, { ...exampleSweep, generation: 2, capUsd: null });
      expect(await table.reserve("night", 1e6)).toBe(true);
    });

    it("frees with a new generation what was reserved and never opened", async () => {
      await table.startGeneration(0, { ...exampleSweep, capUsd: 1 });
      await table.reserve("night", 0.25);
      await table.openTry(exampleRow(), exampleLease({ reservedUsd: 0.25 }));
      await table.reserve("night", 0.5);
      await table.startGeneration(1, { ...exampleSweep, generation: 2, capUsd: 1 });
      expect((await table.sweep("night"))?.reservedUsd).toBe(0.25);
    });

    it("gives the rows of one sweep by attempt and try, while others write", async () => {
      for (let at = 0; at < 1203; at++) {
        const attempt = `a${String(at % 600).padStart(4, "0")}`;
        await table.closeTry(exampleRow({ attempt, try: 1 + Math.floor(at / 600), status: "pass" }));
      }
      await table.closeTry(exampleRow({ sweep: "day", status: "pass" }));
      const seen: string[] = [];
      for await (const row of table.rows("night")) {
        if (seen.length === 0) await (await opened.connect()).closeTry(exampleRow({ attempt: "z", status: "fail" }));
        seen.push(`${row.attempt}/${row.try}`);
      }
      expect(seen).toHaveLength(1204);
      expect(seen.slice(0, 4)).toEqual(["a0000/1", "a0000/2", "a0000/3", "a0001/1"]);
      expect(seen.at(-1)).toBe("z/1");
    });

    it("keeps hostile text as it is", async () => {
      const reason = "NUL \0, quote ' \" ; DROP TABLE tries; é 数 \u{1f600}";
      const attempt = "it's; --";
      await table.closeTry(exampleRow({ attempt, status: "fail", reason, lowered_limits: { __proto: 1 } }));
      expect(await table.tries("night", attempt)).toMatchObject([{ reason, lowered_limits: { __proto: 1 } }]);
    });
  });
}
