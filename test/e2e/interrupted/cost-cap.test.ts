import { describe, it } from "vitest";
import { answering, SweepWorld } from "./sweep-world.ts";

/** An attempt may cost $0.30 and does cost $0.20: two calls of 100,000 tokens at a dollar a million. */
function worldOf(tasks: string[], seconds = 0): SweepWorld {
  const made = new SweepWorld("none");
  for (const id of tasks) made.addTask(id);
  const tokens = { input: 100_000, output: 0 };
  const answers = answering("right", seconds).map((answer) => ({ ...(answer as object), tokens }));
  made.script("worker", "executor", 1, answers);
  return made;
}

const capped = (usd: number, more: { only?: string[]; concurrency?: number } = {}) => ({
  models: ["worker"],
  ...(more.only ? { only: more.only } : {}),
  fields: { limits: { usd, usdPerAttempt: 0.3, concurrency: more.concurrency ?? 1 } },
});

describe("a sweep's cap in dollars", () => {
  it.concurrent("stops the rest, which a higher cap completes", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(["t1", "t2", "t3", "t4"]);
    onTestFinished(() => world.remove());
    const file = world.sweep(capped(0.6));
    const run = await world.proctor("run", file, "--json").ended;
    expect(run.code, run.err).toBe(1);
    expect(JSON.parse(run.out)).toMatchObject({ valid: 2, statuses: { pass: 2, cost_stopped: 2 } });
    expect(await world.record()).toMatchObject({ spentUsd: 0.4, reservedUsd: 0, capUsd: 0.6 });
    const stopped = (await world.rows()).find((row) => row.status === "cost_stopped");
    expect(stopped?.reason).toContain("raise limits.usd");

    const before = await world.rows();
    world.sweep(capped(1));
    const again = await world.proctor("run", file, "--json").ended;
    expect(again.code, again.err).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({ valid: 4, statuses: { pass: 4 } });
    expect(await world.record()).toMatchObject({ spentUsd: 0.8, reservedUsd: 0, capUsd: 1 });
    const rows = await world.rows();
    for (const row of before) expect(rows).toContainEqual(row);
    expect(rows).toHaveLength(6);
  });

  it.concurrent("is not held by tries that a kill left open, even of tasks that are no longer in the sweep", {
    timeout: 60_000,
  }, async ({ expect, onTestFinished }) => {
    const world = worldOf(["t1", "t2", "t3", "t4"], 60);
    onTestFinished(() => world.remove());
    const file = world.sweep(capped(0.6, { only: ["t1", "t2"], concurrency: 2 }));
    const run = world.proctor("run", file);
    await run.until(async () => (await world.leases()).length === 2, "both tries to open");
    await run.kill();
    expect(await world.record()).toMatchObject({ spentUsd: 0, reservedUsd: 0.6 });

    const tokens = { input: 100_000, output: 0 };
    const quick = answering("right").map((answer) => ({ ...(answer as object), tokens }));
    world.script("worker", "executor", 1, quick);
    world.sweep(capped(0.6, { only: ["t3", "t4"] }));
    const again = await world.proctor("run", file, "--json").ended;
    expect(again.code, again.err).toBe(0);
    expect(await world.record()).toMatchObject({ spentUsd: 0.4, reservedUsd: 0 });
    expect((await world.rows()).map((row) => `${row.task} ${row.status}`).sort()).toEqual([
      "t1 infra_error",
      "t2 infra_error",
      "t3 pass",
      "t4 pass",
    ]);
  });
});
