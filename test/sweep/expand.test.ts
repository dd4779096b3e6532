import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attemptId, type Expansion, expandSweep, laneName } from "../../lib/sweep/expand.ts";
import { manifestLine } from "../../lib/sweep/manifest-line.ts";
import { base32 } from "../../lib/tasks/canonical.ts";
import { plannedTask, scripted, sweepPlan } from "../support/sweep-plan.ts";

const ids = (expansion: Expansion): string[] =>
  expansion.lanes.flatMap((lane) => lane.lines.map((line) => line.attempt));
const order = (expansion: Expansion, lane = 0): string[] =>
  expansion.lanes[lane]?.lines.map((line) => `${line.task} ${line.agent.name} ${line.epoch}`) ?? [];

/** Any small sweep. */
const shapes = fc.record({
  tasks: fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,8}$/), { minLength: 1, maxLength: 8 }),
  agents: fc.uniqueArray(fc.constantFrom("mini", "null", "nanobot"), { minLength: 1, maxLength: 3 }),
  models: fc.uniqueArray(fc.stringMatching(/^[a-z0-9/:]{1,8}$/), { minLength: 1, maxLength: 4 }),
  epochs: fc.integer({ min: 1, max: 4 }),
  seed: fc.nat(),
  order: fc.constantFrom("shuffled", "as-listed"),
});
type Shape = typeof shapes extends fc.Arbitrary<infer S> ? S : never;
const plan = ({ tasks, agents, models, ...fields }: Shape, more: Record<string, unknown> = {}) =>
  sweepPlan({
    tasks: tasks.map((id) => plannedTask(id)),
    agents,
    models: models.map((name) => scripted(name)),
    fields: { ...fields, ...more },
  });

describe("the expansion of a sweep", () => {
  it("is every combination once, each a valid manifest line with an id of its own", () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const expansion = expandSweep(plan(shape), 1);
        const { tasks, agents, models, epochs } = shape;
        expect(expansion.planned).toBe(tasks.length * agents.length * models.length * epochs);
        const lines = expansion.lanes.flatMap((lane) => lane.lines);
        for (const line of lines) manifestLine.parse(line);
        const cells = lines.map((line) => JSON.stringify([line.task, line.agent.name, line.model.name, line.epoch]));
        expect(new Set(cells).size).toBe(expansion.planned);
        expect(new Set(ids(expansion)).size).toBe(expansion.planned);
        expect(new Set(expansion.lanes.map((lane) => lane.lane)).size).toBe(models.length);
        for (const lane of expansion.lanes)
          expect(lane.lines.every((line) => line.model.name === lane.model)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("does not depend on the order in which things are listed, once it is shuffled", () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const turned = { ...shape, tasks: [...shape.tasks].reverse(), agents: [...shape.agents].reverse() };
        const shuffled = { order: "shuffled" };
        expect(order(expandSweep(plan(turned, shuffled), 1))).toEqual(order(expandSweep(plan(shape, shuffled), 1)));
      }),
      { numRuns: 30 },
    );
  });

  it("runs the same tasks in the same order for every model", () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const expansion = expandSweep(plan(shape), 1);
        for (const index of expansion.lanes.keys()) expect(order(expansion, index)).toEqual(order(expansion));
      }),
      { numRuns: 30 },
    );
  });

  it("keeps ids and relative order of what stays when the sweep is edited", () => {
    fc.assert(
      fc.property(shapes, fc.stringMatching(/^[A-Z]{1,4}$/), (shape, added) => {
        const before = expandSweep(plan(shape), 1);
        const after = expandSweep(plan({ ...shape, tasks: [added, ...shape.tasks], epochs: shape.epochs + 1 }), 2);
        expect(ids(after)).toEqual(expect.arrayContaining(ids(before)));
        const kept = new Set(order(before));
        expect(order(after).filter((cell) => kept.has(cell))).toEqual(order(before));
      }),
      { numRuns: 30 },
    );
  });

  it("names an attempt by sweep, task digest, agent, model and epoch, and nothing else", () => {
    const agent = { name: "mini", version: "1", options: {} };
    const text = '["s","d","mini+1","m",2]';
    const expected = base32(createHash("sha256").update(text).digest()).slice(0, 26);
    expect(attemptId("s", "d", agent, "m", 2)).toBe(expected);
    expect(expected).toMatch(/^[a-z2-7]{26}$/);
    const shape: Shape = { tasks: ["t"], agents: ["mini"], models: ["m"], epochs: 2, seed: 1, order: "shuffled" };
    const base = new Set(ids(expandSweep(plan(shape), 1)));
    const same = [
      plan({ ...shape, seed: 2 }),
      plan(shape, { limits: { turnSeconds: 5, usd: 10 } }),
      plan(shape, { retries: { infra: 0 } }),
    ];
    for (const other of same) expect(new Set(ids(expandSweep(other, 7)))).toEqual(base);
    for (const other of [
      plan(shape, { name: "other" }),
      plan({ ...shape, models: ["n"] }),
      plan({ ...shape, agents: ["null"] }),
    ]) {
      expect(ids(expandSweep(other, 1)).some((id) => base.has(id))).toBe(false);
    }
  });

  it("is shuffled by its seed", () => {
    const shape: Shape = {
      tasks: [..."abcdefgh"],
      agents: ["mini"],
      models: ["m"],
      epochs: 1,
      seed: 1,
      order: "shuffled",
    };
    const [one, again, other] = [plan(shape), plan(shape), plan({ ...shape, seed: 2 })].map((made) =>
      order(expandSweep(made, 1)),
    );
    expect(again).toEqual(one);
    expect(other).not.toEqual(one);
    expect(other?.toSorted()).toEqual(one?.toSorted());
  });

  it("goes as listed, an epoch after the other, when it is told to", () => {
    const shape: Shape = {
      tasks: ["b", "a"],
      agents: ["null", "mini"],
      models: ["m"],
      epochs: 2,
      seed: 1,
      order: "as-listed",
    };
    expect(order(expandSweep(plan(shape), 1))).toEqual([
      "b null 1",
      "b mini 1",
      "a null 1",
      "a mini 1",
      "b null 2",
      "b mini 2",
      "a null 2",
      "a mini 2",
    ]);
  });

  it("has a digest and a fixed text that do not depend on generation, socket or machine", () => {
    const at = (socket: string, base: string) => sweepPlan({ models: [scripted("a", socket, base)] });
    const one = expandSweep(at("/tmp/1.sock", "/home/x"), 1);
    const other = expandSweep(at("/tmp/2.sock", "/home/y"), 9);
    expect([other.digest, other.fixed]).toEqual([one.digest, one.fixed]);
    expect(expandSweep(sweepPlan({ models: [scripted("a")], fields: { epochs: 2 } }), 1).digest).not.toBe(one.digest);
  });

  it("gives each attempt a seed of its own", () => {
    const lines = expandSweep(sweepPlan({ fields: { epochs: 4 } }), 1).lanes.flatMap((lane) => lane.lines);
    expect(new Set(lines.map((line) => line.seed)).size).toBe(lines.length);
  });

  it("puts agent and runner apart where the network is closed", () => {
    const tasks = [
      plannedTask("a"),
      plannedTask("b", { network: "offline" }),
      plannedTask("c", { network: "guarded" }),
    ];
    const lines = expandSweep(sweepPlan({ tasks, fields: { order: "as-listed" } }), 1).lanes[0]?.lines ?? [];
    expect(lines.map((line) => line.placement)).toEqual(["one", "two", "two"]);
  });

  it("takes the supervisor's effort from the sweep, else from the package", () => {
    const tasks = [plannedTask("a", { supervisorEffort: "low" })];
    const model = { name: "judge", provider: "rehearsed" };
    const effort = (supervisor: unknown) => {
      const made = {
        ...sweepPlan({ tasks, fields: { supervisor } }),
        supervisor: { kind: "model" as const, model: scripted("judge") },
      };
      const choice = expandSweep(made, 1).lanes[0]?.lines[0]?.supervisor;
      return choice?.kind === "model" ? choice.effort : null;
    };
    expect(effort({ model })).toBe("low");
    expect(effort({ model, effort: "medium" })).toBe("medium");
  });
});

describe("lanes", () => {
  it("have names that are safe in keys, different for different models", () => {
    expect(laneName("gpt-5.4")).toBe("gpt-5.4");
    for (const name of ["a/b", "a:b", "..", "ü", "x".repeat(200)])
      expect(laneName(name)).toMatch(/^[A-Za-z0-9._-]{3,69}$/);
    expect(laneName("a/b")).not.toBe(laneName("a:b"));
    expect(laneName("..")).not.toBe("..");
  });

  it("run at most as much at once as the sweep, or as their own model allows", () => {
    const concurrency = (limits: unknown) =>
      expandSweep(sweepPlan({ fields: { limits } }), 1).lanes.map((lane) => lane.concurrency);
    expect(concurrency({})).toEqual([4, 4]);
    expect(concurrency({ concurrency: 8, perModel: 2 })).toEqual([2, 2]);
    expect(concurrency({ concurrency: 8, perModel: { b: 3 } })).toEqual([8, 3]);
    expect(concurrency({ concurrency: 2, perModel: 9 })).toEqual([2, 2]);
  });
});
