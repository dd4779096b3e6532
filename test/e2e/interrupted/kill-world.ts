/** Kills runs of a small closed loop, and holds what stands afterwards against what stood before. */
import { expect } from "vitest";
import { isValidStatus } from "../../../lib/attempt/vocabulary.ts";
import type { ScoreRow } from "../../../lib/results/score-row.ts";
import { alive, type Proctor, processesNaming, until } from "./processes.ts";
import { answering, judging, lookAgain, SweepWorld } from "./sweep-world.ts";

interface Finished {
  rows: Map<string, ScoreRow>;
  objects: Map<string, string>;
}

const tasks = ["t1", "t2", "t3"];
/** A turn that is wrong, a follow-up, a turn that is right; a judge and a person who take their time. */
const closedLoop = {
  models: ["worker"],
  fields: {
    limits: { concurrency: 2 },
    supervisor: { model: { name: "judge", provider: "scripted" } },
    userSimulator: { model: { name: "person", provider: "scripted" } },
  },
};

export function closedLoopWorld(isolation: "bwrap" | "none"): SweepWorld {
  const made = new SweepWorld(isolation);
  for (const id of tasks) made.addTask(id, true);
  made.script("worker", "executor", 1, answering("wrong", 0.1));
  made.script("worker", "executor", 2, answering("right", 0.1));
  made.script("judge", "supervisor", 1, [judging(0, 1, 150)]);
  made.script("judge", "supervisor", 2, [judging(1, 2, 150)]);
  made.script("person", "simulator", 1, [lookAgain(150)]);
  return made;
}

/** What must not change any more once it stands: closed rows, and every object of their tries. */
async function finished(world: SweepWorld): Promise<Finished> {
  const rows = new Map<string, ScoreRow>();
  if ((await world.record()) !== null) {
    for (const row of await world.rows()) {
      // What is unjudged is still to be judged.
      if (row.status !== "running" && row.status !== "unjudged") rows.set(`${row.attempt}/0${row.try}`, row);
    }
  }
  const objects = [...world.objects()].filter(([path]) => [...rows.keys()].some((own) => path.includes(own)));
  return { rows, objects: new Map(objects) };
}

async function expectUntouched(world: SweepWorld, before: Finished): Promise<void> {
  const now = await finished(world);
  for (const [name, row] of before.rows) expect(now.rows.get(name), name).toEqual(row);
  for (const [path, hash] of before.objects) expect(now.objects.get(path), path).toBe(hash);
}

/** Kills a run and sees that nothing of it stays but one session's folder and its sockets. */
async function killRun(world: SweepWorld, run: Proctor): Promise<void> {
  const below = await run.kill();
  await until(() => alive(below).length === 0, "the killed run's children to end");
  await until(() => processesNaming(world.folder).length === 0, "daemons of the killed run's agents to end");
  expect(world.leftovers().length, world.leftovers().join()).toBeLessThanOrEqual(2);
  expect(world.sockets().length).toBeLessThanOrEqual(2);
}

async function expectComplete(world: SweepWorld, planned: number, generations: number): Promise<void> {
  const rows = await world.rows();
  const valid = rows.filter((row) => row.valid);
  expect(valid).toHaveLength(planned);
  expect(new Set(valid.map((row) => row.attempt)).size).toBe(planned);
  expect(valid.every((row) => row.status === "pass" && row.score === 1 && row.turns === 2)).toBe(true);
  // What was cut off is said to be, and ran once in each generation that took it up. What was cut off while it was judged
  // was judged again, and run again where that asked for another turn.
  const cut = rows.filter((row) => !row.valid);
  expect(cut.filter((row) => row.status !== "infra_error" || !/^(interrupted|judged again)/.test(row.reason))).toEqual(
    [],
  );
  // A turn that was whole stays paid for.
  expect(cut.filter((row) => row.turns > 0 && row.usd.executor === 0)).toEqual([]);
  const once = new Set(rows.map((row) => `${row.attempt} g${row.generation}`));
  expect(once.size).toBe(rows.length);
  expect(rows.every((row) => isValidStatus(row.status) || row.generation < generations)).toBe(true);
  expect(await world.leases()).toEqual([]);
  expect((await world.record())?.reservedUsd).toBe(0);
  expect(world.leftovers()).toEqual([]);
  expect(world.sockets()).toEqual([]);
  expect(processesNaming(world.folder)).toEqual([]);
}

/** Kills a run at each moment in turn, with the same command after each, and lets the last one end. */
export async function killAtEach(
  world: SweepWorld,
  moments: readonly ((run: Proctor) => Promise<void>)[],
): Promise<void> {
  const file = world.sweep(closedLoop);
  for (const moment of moments) {
    const before = await finished(world);
    const run = world.proctor("run", file);
    await moment(run);
    await killRun(world, run);
    await expectUntouched(world, before);
  }
  const before = await finished(world);
  const last = await world.proctor("run", file, "--json").ended;
  expect(last.code, last.err).toBe(0);
  expect(JSON.parse(last.out)).toMatchObject({ planned: 3, valid: 3, statuses: { pass: 3 }, stopped: null });
  await expectUntouched(world, before);
  const { generation } = (await world.record()) as { generation: number };
  await expectComplete(world, tasks.length, generation + 1);

  // Once more: nothing is left to do, and nothing is done.
  const whole = await finished(world);
  const again = await world.proctor("run", file, "--json").ended;
  expect(again.code).toBe(0);
  expect(again.err).toContain("0 to run, 3 with a valid row");
  await expectUntouched(world, whole);
  expect(await world.rows()).toHaveLength(whole.rows.size);
}

/** A path that was not there when the moment began to be waited for. */
export function newObject(world: SweepWorld, path: RegExp): (run: Proctor) => Promise<void> {
  return async (run) => {
    const there = new Set(world.paths());
    await run.until(() => world.paths().some((name) => path.test(name) && !there.has(name)), `an object like ${path}`);
  };
}
