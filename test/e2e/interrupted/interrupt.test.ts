import { describe, type ExpectStatic, it } from "vitest";
import { alive, descendants, processesNaming, until } from "./processes.ts";
import { answering, SweepWorld } from "./sweep-world.ts";

/** Four attempts, two at a time; the first two take as long as the test lets them. */
function heldWorld(): { world: SweepWorld; file: string; release(): void } {
  const world = new SweepWorld("none");
  for (const id of ["t1", "t2", "t3", "t4"]) world.addTask(id);
  // Without a sandbox an agent sees this machine's files, so it can wait for one.
  const gate = `${world.folder}/gate`;
  const wait = { command: `(setsid sleep 300 >/dev/null 2>&1 &); while [ ! -e ${gate} ]; do sleep 0.2; done` };
  world.script("worker", "executor", 1, [{ tools: [{ name: "bash", arguments: wait }] }, ...answering("right")]);
  const file = world.sweep({ models: ["worker"], fields: { limits: { concurrency: 2 } } });
  return { world, file, release: () => world.write("gate", "") };
}

const openTries = async (world: SweepWorld): Promise<number> =>
  (await world.leases()).filter(({ executor }) => executor !== null).length;

async function expectNothingLeft(expect: ExpectStatic, world: SweepWorld, below: readonly number[]): Promise<void> {
  await until(() => alive(below).length === 0, "executors to end");
  await until(() => processesNaming(world.folder).length === 0, "all processes to end");
  expect(world.leftovers()).toEqual([]);
  expect(world.sockets()).toEqual([]);
}

async function expectCompleted(expect: ExpectStatic, world: SweepWorld, file: string): Promise<void> {
  const before = (await world.rows()).filter((row) => row.valid);
  const again = await world.proctor("run", file, "--json").ended;
  expect(again.code, again.err).toBe(0);
  expect(JSON.parse(again.out)).toMatchObject({ planned: 4, valid: 4, statuses: { pass: 4 }, stopped: null });
  const rows = await world.rows();
  expect(rows.filter((row) => row.valid)).toHaveLength(4);
  for (const row of before) expect(rows).toContainEqual(row);
}

describe("an interrupted run", () => {
  it.concurrent("lets running attempts end on Ctrl-C, starts no other, and goes on when it is called again", {
    timeout: 60_000,
  }, async ({ expect, onTestFinished }) => {
    const { world, file, release } = heldWorld();
    onTestFinished(() => world.remove());
    const run = world.proctor("run", file);
    await run.until(async () => (await openTries(world)) === 2, "two attempts to run");
    run.interrupt();
    await run.says(/^draining: 2 attempts run to their end/m);
    release();
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 1, signal: null });
    expect(ended.out).toContain("2 of 4 attempts valid");
    expect(ended.out).toContain("It was drained; the same command goes on");
    expect((await world.rows()).map((row) => row.status)).toEqual(["pass", "pass"]);
    await expectNothingLeft(expect, world, []);
    await expectCompleted(expect, world, file);
  });

  it.concurrent("stops on the second Ctrl-C: rows are cancelled, executors gone", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const { world, file, release } = heldWorld();
    onTestFinished(() => world.remove());
    const run = world.proctor("run", file);
    await run.until(async () => (await openTries(world)) === 2, "two attempts to run");
    const below = descendants(run.pid);
    expect(below.length).toBeGreaterThanOrEqual(4);
    run.interrupt();
    await run.says(/^draining/m);
    run.interrupt();
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 1, signal: null });
    expect(ended.err).toContain("stopping: interrupted");
    expect(ended.out).toContain("It was cancelled; the same command goes on");
    const rows = await world.rows();
    expect(rows.map((row) => row.status)).toEqual(["cancelled", "cancelled"]);
    expect(rows[0]?.reason).toContain("interrupted");
    expect(await world.leases()).toEqual([]);
    await expectNothingLeft(expect, world, below);
    release();
    await expectCompleted(expect, world, file);
  });

  it.concurrent("stops on SIGTERM", { timeout: 60_000 }, async ({ expect, onTestFinished }) => {
    const { world, file, release } = heldWorld();
    onTestFinished(() => world.remove());
    const run = world.proctor("run", file, "--json");
    await run.until(async () => (await openTries(world)) === 2, "two attempts to run");
    const below = descendants(run.pid);
    run.signal("SIGTERM");
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 1, signal: null });
    const outcome = JSON.parse(ended.out);
    expect(outcome).toMatchObject({ stopped: "cancelled", statuses: { cancelled: 2, missing: 2 } });
    await expectNothingLeft(expect, world, below);
    release();
    await expectCompleted(expect, world, file);
  });

  it.concurrent("stops an executor that was launched and has no turn yet", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const { world, file } = heldWorld();
    onTestFinished(() => world.remove());
    const run = world.proctor("run", file);
    // The moment in which the try is open and its lease names no executor.
    await run.until(async () => (await world.leases()).length > 0, "a try to open");
    run.signal("SIGTERM");
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    await expectNothingLeft(expect, world, []);
    expect((await world.rows()).filter((row) => row.status !== "cancelled")).toEqual([]);
  });
});
