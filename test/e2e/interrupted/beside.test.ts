import { describe, it } from "vitest";
import { alive, descendants, processesNaming, until } from "./processes.ts";
import { answering, judging, SweepWorld } from "./sweep-world.ts";

function worldOf(seconds: number): SweepWorld {
  const made = new SweepWorld("none");
  for (const id of ["t1", "t2"]) made.addTask(id);
  made.script("worker", "executor", 1, answering("right", seconds));
  return made;
}

const running = async (world: SweepWorld): Promise<boolean> =>
  (await world.leases()).some(({ turnToken }) => turnToken !== null);

describe("beside a running sweep", () => {
  it.concurrent("status tells how far it is, a second run and a retry are refused, abort stops it all", {
    timeout: 60_000,
  }, async ({ expect, onTestFinished }) => {
    const world = worldOf(60);
    onTestFinished(() => world.remove());
    const file = world.sweep({ models: ["worker"] });
    const run = world.proctor("run", file);
    await run.until(() => running(world), "a turn to open");
    const below = descendants(run.pid);

    const [text, json, second, retry] = await Promise.all([
      world.proctor("status", file).ended,
      world.proctor("status", "s", "--json").ended,
      world.proctor("run", file).ended,
      world.proctor("retry", "s").ended,
    ]);
    expect(text.code).toBe(0);
    expect(text.out).toContain(`process ${run.pid} on `);
    expect(JSON.parse(json.out)).toMatchObject({
      sweep: "s",
      generation: 1,
      planned: 2,
      statuses: { pending: 2 },
      controller: { pid: run.pid },
      abortRequested: false,
    });
    for (const refused of [second, retry]) {
      expect(refused.code).toBe(2);
      expect(refused.err).toContain(`the sweep s is being run by process ${run.pid}`);
    }
    expect(run.hasEnded).toBe(false);
    expect((await world.record())?.generation).toBe(1);

    const abort = await world.proctor("abort", "s").ended;
    expect(abort).toMatchObject({ code: 0, out: "s is stopped\n" });
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    expect(ended.err).toContain("stopping: the sweep was aborted");
    expect((await world.rows()).map((row) => row.status)).toEqual(["cancelled", "cancelled"]);
    await until(() => alive(below).length === 0, "executors to end");
    await until(() => processesNaming(world.folder).length === 0, "all processes to end");

    // What was aborted is not taken up by itself, and can be.
    world.script("worker", "executor", 1, answering("right"));
    const again = await world.proctor("retry", "s", "--status", "cancelled", "--json").ended;
    expect(again.code, again.err).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({ valid: 2, statuses: { pass: 2 } });
  });

  it.concurrent("abort after a kill closes what was left open, and the sweep can be run again", {
    timeout: 60_000,
  }, async ({ expect, onTestFinished }) => {
    const world = worldOf(60);
    onTestFinished(() => world.remove());
    const file = world.sweep({ models: ["worker"] });
    const run = world.proctor("run", file);
    await run.until(async () => (await world.leases()).length === 2, "both tries to open");
    await run.kill();
    const status = await world.proctor("status", "s").ended;
    expect(status.out).toContain("no process runs it");
    expect(status.out).toMatch(/missing +2/);
    const abort = await world.proctor("abort", "s", "--json").ended;
    expect(JSON.parse(abort.out)).toEqual({ sweep: "s", stoppedProcess: false, closedTries: 2 });
    expect((await world.rows()).map((row) => row.status)).toEqual(["cancelled", "cancelled"]);
    expect(await world.leases()).toEqual([]);
    world.script("worker", "executor", 1, answering("right"));
    const again = await world.proctor("run", file, "--json").ended;
    expect(again.code, again.err).toBe(0);
    expect((await world.rows()).map((row) => row.status)).toEqual(["cancelled", "pass", "cancelled", "pass"]);
  });

  it.concurrent("another sweep runs in the same folder, and each keeps its own rows", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(0.5);
    onTestFinished(() => world.remove());
    const files = ["a", "b"].map((name) => world.sweep({ name, models: ["worker"] }));
    const runs = await Promise.all(files.map((file) => world.proctor("run", file, "--json").ended));
    for (const run of runs) {
      expect(run.code, run.err).toBe(0);
      expect(JSON.parse(run.out)).toMatchObject({ valid: 2, statuses: { pass: 2 } });
    }
    const [a, b] = [await world.rows("a"), await world.rows("b")];
    expect(a).toHaveLength(2);
    expect(b).toHaveLength(2);
    expect(new Set([...a, ...b].map((row) => row.attempt)).size).toBe(4);
    expect(world.leftovers()).toEqual([]);
  });

  it.concurrent("of two that start the same sweep at once, one runs it", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(0.5);
    onTestFinished(() => world.remove());
    const file = world.sweep({ models: ["worker"] });
    const ends = await Promise.all([world.proctor("run", file).ended, world.proctor("run", file).ended]);
    // The second is refused, or came when the first had ended and found nothing to do.
    expect(ends.some((end) => end.code === 0)).toBe(true);
    for (const end of ends.filter(({ code }) => code !== 0)) {
      expect(end.code).toBe(2);
      expect(end.err).toMatch(/being run by process|another process has just started/);
    }
    const rows = await world.rows();
    expect(rows.map((row) => [row.status, row.try])).toEqual([
      ["pass", 1],
      ["pass", 1],
    ]);
  });

  it.concurrent("status and abort of what is not there say so", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(0);
    onTestFinished(() => world.remove());
    const nowhere = await world.proctor("status", "s").ended;
    expect(nowhere.code).toBe(2);
    expect(nowhere.err).toContain("no sweep has run here");
    world.sweep({ models: ["worker"] });
    expect((await world.proctor("run", `${world.folder}/s.yaml`).ended).code).toBe(0);
    const other = await world.proctor("abort", "t").ended;
    expect(other.code).toBe(2);
    expect(other.err).toContain("there is no sweep t");
  });
});

describe("a sweep file that was edited between two runs", () => {
  it.concurrent("keeps the attempts that are still in it and adds the new", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(0);
    onTestFinished(() => world.remove());
    world.addTask("t3");
    const file = world.sweep({ models: ["worker"], only: ["t1", "t2"] });
    expect((await world.proctor("run", file).ended).code).toBe(0);
    const before = await world.rows();
    world.sweep({ models: ["worker"], only: ["t2", "t3"], fields: { limits: { concurrency: 1 }, order: "shuffled" } });
    const run = await world.proctor("run", file, "--json").ended;
    expect(run.code, run.err).toBe(0);
    expect(JSON.parse(run.out)).toMatchObject({ generation: 2, planned: 2, valid: 2 });
    const rows = await world.rows();
    expect(rows.map((row) => row.task).sort()).toEqual(["t1", "t2", "t3"]);
    for (const row of before) expect(rows).toContainEqual(row);
  });

  it.concurrent("is refused, naming each field, where results would be mixed", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = worldOf(0);
    onTestFinished(() => world.remove());
    const file = world.sweep({ models: ["worker"], only: ["t1"] });
    expect((await world.proctor("run", file).ended).code).toBe(0);
    const supervisor = { model: { name: "judge", provider: "scripted" } };
    world.script("judge", "supervisor", 1, [judging(1, 1)]);
    world.sweep({ models: ["worker"], only: ["t1"], fields: { supervisor, limits: { turnSeconds: 10 } } });
    const refused = await world.proctor("run", file).ended;
    expect(refused.code).toBe(2);
    expect(refused.err).toContain("s.yaml");
    expect(refused.err).toContain("limits.turnSeconds");
    expect(refused.err).toContain("supervisor");
    expect(refused.err).toContain("a new name");
    expect((await world.record())?.generation).toBe(1);
  });
});
