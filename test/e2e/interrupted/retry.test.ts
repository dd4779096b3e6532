import { describe, it } from "vitest";
import { answering, judging, lookAgain, SweepWorld } from "./sweep-world.ts";

/** Objects whose path begins so, by path, with a hash of each. */
const objectsOf = (world: SweepWorld, folder: string): [string, string][] =>
  [...world.objects()].filter(([path]) => path.startsWith(folder)).sort();

describe("retry", () => {
  it.concurrent("runs faults of ours and of the provider again, in a new try", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = new SweepWorld("none");
    onTestFinished(() => world.remove());
    world.addTask("t1");
    world.script("down", "executor", 1, [{ fault: { kind: "server_error" } }]);
    world.script("busy", "executor", 1, [{ fault: { kind: "rate_limit" } }]);
    world.script("fine", "executor", 1, answering("right"));
    const file = world.sweep({
      models: ["down", "busy", "fine"],
      fields: { retries: { infra: 1, rateLimit: 0 }, limits: { turnSeconds: 10 } },
    });
    const run = await world.proctor("run", file, "--json").ended;
    expect(run.code, run.err).toBe(1);
    expect(JSON.parse(run.out)).toMatchObject({ valid: 1, statuses: { infra_error: 1, rate_limit: 1, pass: 1 } });
    const before = await world.rows();
    const ofModel = (rows: typeof before, model: string) =>
      rows.filter((row) => row.model === model).map((row) => `${row.try} ${row.status}`);
    // Its retry is used up.
    expect(ofModel(before, "down")).toEqual(["1 infra_error", "2 infra_error"]);
    expect(ofModel(before, "busy")).toEqual(["1 rate_limit"]);

    const evidence = objectsOf(world, "evidence/attempts");
    world.script("down", "executor", 1, answering("right"));
    world.script("busy", "executor", 1, answering("right"));
    const first = await world.proctor("retry", file, "--status", "infra_error").ended;
    expect(first.code).toBe(1);
    expect(ofModel(await world.rows(), "down")).toEqual(["1 infra_error", "2 infra_error", "3 pass"]);
    expect(ofModel(await world.rows(), "busy")).toEqual(["1 rate_limit"]);
    const second = await world.proctor("retry", "s", "--status", "rate_limit, infra_error").ended;
    expect(second.code, second.err).toBe(0);
    const rows = await world.rows();
    expect(ofModel(rows, "busy")).toEqual(["1 rate_limit", "2 pass"]);
    for (const row of before) expect(rows).toContainEqual(row);
    expect(objectsOf(world, "evidence/attempts")).toEqual(expect.arrayContaining(evidence));

    const nothing = await world.proctor("retry", "s").ended;
    expect(nothing.code).toBe(0);
    expect(nothing.out).toContain("nothing to retry: no attempt of s is infra_error or rate_limit");
    expect((await world.record())?.generation).toBe(3);
  });

  it.concurrent("judges again what is unjudged, from stored evidence, in the same try", { timeout: 60_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const world = new SweepWorld("none");
    onTestFinished(() => world.remove());
    world.addTask("t1", true);
    world.addTask("t2", true);
    world.script("worker", "executor", 1, answering("right"));
    world.script("worker", "executor", 2, answering("right"));
    world.script("judge", "supervisor", 1, [{ text: "It looks good to me." }]);
    world.script("person", "simulator", 1, [lookAgain()]);
    const supervisor = { model: { name: "judge", provider: "scripted" } };
    const userSimulator = { model: { name: "person", provider: "scripted" } };
    const file = world.sweep({ models: ["worker"], fields: { supervisor, userSimulator } });
    const run = await world.proctor("run", file, "--json").ended;
    expect(run.code, run.err).toBe(1);
    expect(JSON.parse(run.out)).toMatchObject({ valid: 0, statuses: { unjudged: 2 } });
    const before = await world.rows();
    const evidence = objectsOf(world, "evidence/");
    const task = (id: string, turn = 1) => `scripts/judge/supervisor/${id}/turn-0${turn}.yaml`;

    // t1 is judged right; of t2 the judge wants another turn, and its executor is gone.
    world.write(task("t1"), JSON.stringify([judging(1, 1)]));
    world.write(task("t2"), JSON.stringify([judging(0, 1)]));
    world.write(task("t2", 2), JSON.stringify([judging(1, 2)]));
    const retry = await world.proctor("retry", "s", "--status", "unjudged", "--json").ended;
    expect(retry.code, retry.err).toBe(0);
    expect(JSON.parse(retry.out)).toMatchObject({ valid: 2, statuses: { pass: 2 } });

    const rows = await world.rows();
    const of = (id: string) => rows.filter((row) => row.task === id);
    expect(of("t1")).toMatchObject([{ try: 1, generation: 1, status: "pass", score: 1, turns: 1 }]);
    const judgedBefore = before.find((row) => row.task === "t1")?.usd.supervisor ?? 0;
    expect(of("t1")[0]?.usd.supervisor).toBeGreaterThan(judgedBefore);
    expect(of("t2")).toMatchObject([
      { try: 1, status: "infra_error", reason: "judged again: turn 1 goes on, and its executor is gone" },
      { try: 2, status: "pass", score: 1, turns: 2 },
    ]);
    // No executor's evidence was touched, and only t2 has any more of it.
    const now = objectsOf(world, "evidence/");
    expect(now).toEqual(expect.arrayContaining(evidence));
    const attempt = of("t1")[0]?.attempt as string;
    expect(now.filter(([path]) => path.includes(attempt))).toEqual(evidence.filter(([path]) => path.includes(attempt)));
    const spent = rows.reduce((sum, row) => sum + row.usd.executor + row.usd.supervisor + row.usd.simulator, 0);
    expect((await world.record())?.spentUsd).toBeCloseTo(spent, 6);
  });

  it.concurrent("refuses names that are no errors", { timeout: 60_000 }, async ({ expect, onTestFinished }) => {
    const world = new SweepWorld("none");
    onTestFinished(() => world.remove());
    const wrong = await world.proctor("retry", "s", "--status", "infra_eror").ended;
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain("--status: infra_eror is no status; expected infra_error");
    const valid = await world.proctor("retry", "s", "--status", "unjudged,pass").ended;
    expect(valid.code).toBe(2);
    expect(valid.err).toContain("pass is not an error, so it is never run again");
  });
});
