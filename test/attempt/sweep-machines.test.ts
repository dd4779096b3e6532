/** The lane, sweep and judge machines, with attempts that run in the attempt machine. */
import { describe, expect, it } from "vitest";
import { attemptExecutionName } from "../../lib/attempt/machines.ts";
import { compactionPrefix, manifestKey } from "../../lib/firewall/keys.ts";
import { scoreRow } from "../../lib/results/score-row.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { base32, sha256Hex } from "../../lib/tasks/canonical.ts";
import { type AttemptWorld, attemptWorld, type Turn, type WorldOptions } from "../support/attempt-world.ts";
import { aLine } from "../support/manifest-line.ts";

const passes: Turn = { executor: { does: "reports" }, verdict: "pass" };
const dies: Turn = { executor: { does: "dies", seconds: 1, code: 1 } };

function lines(count: number, change: Partial<ManifestLine> = {}): ManifestLine[] {
  return Array.from({ length: count }, (_, index) => {
    const attempt = base32(Buffer.from(sha256Hex(`${index} ${JSON.stringify(change.model ?? "")}`), "hex")).slice(
      0,
      26,
    );
    return aLine({ attempt, epoch: index + 1, retries: { infra: 0, rateLimit: 0 }, ...change });
  });
}

async function sweepWorld(
  lanes: Record<string, ManifestLine[]>,
  options: WorldOptions,
): Promise<{ world: AttemptWorld; input: { lanes: { lane: string; manifestKey: string; concurrency: number }[] } }> {
  const world = await attemptWorld({ machines: ["attempt", "lane", "sweep", "judge"], ...options });
  const shards = Object.entries(lanes).map(([lane, own]) => {
    const name = manifestKey(world.line.sweep, 1, lane);
    world.objects.put(name, own.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return { lane, manifestKey: name.key, concurrency: 3 };
  });
  return { world, input: { lanes: shards } };
}

async function runSweep(world: AttemptWorld, input: object) {
  const handle = await world.machine.start("sweep", "sweep-a-g01", {
    v: 1,
    sweep: world.line.sweep,
    generation: 1,
    ...input,
  });
  const result = await handle.result;
  await world.settled();
  return result;
}

async function allRows(world: AttemptWorld) {
  const rows = [];
  for await (const row of world.scores.rows(world.line.sweep)) rows.push(row);
  return rows;
}

describe("sweep and lane machines", () => {
  it("run every attempt of every lane and compact their rows", async () => {
    const { world, input } = await sweepWorld(
      {
        "model-a": lines(5),
        "model-b": lines(4, { epoch: 9, threshold: 0.9 }).map((line, index) => ({
          ...line,
          attempt: `${"b".repeat(25)}${"abcd"[index]}`,
        })),
      },
      { tries: [[passes]] },
    );
    const result = await runSweep(world, input);
    expect(result).toMatchObject({ status: "SUCCEEDED", output: { compaction: 1, rows: 9 } });
    const rows = await allRows(world);
    expect(rows).toHaveLength(9);
    expect(new Set(rows.map((row) => row.status))).toEqual(new Set(["pass"]));

    const prefix = compactionPrefix(world.line.sweep, 1);
    const written = world.objects.text({ bucket: prefix.bucket, key: `${prefix.key}rows.jsonl` }) ?? "";
    expect(
      written
        .trim()
        .split("\n")
        .map((line) => scoreRow.parse(JSON.parse(line))),
    ).toEqual(rows);
    expect(world.objects.text({ bucket: prefix.bucket, key: `${prefix.key}_done` })).toContain('"rows":9');
  });

  it("run no more attempts of a lane at once than its cap", async () => {
    let running = 0;
    let most = 0;
    const { world, input } = await sweepWorld(
      { "model-a": lines(10) },
      {
        tries: [[passes]],
        onEvent: (event) => {
          if (event.machine !== "attempt") return;
          if (event.type === "ExecutionStarted") most = Math.max(most, ++running);
          if (event.type === "ExecutionEnded") running -= 1;
        },
      },
    );
    await runSweep(world, input);
    expect(most).toBe(3);
  });

  it("take failed attempts, and executions that fail, as data", async () => {
    const { world, input } = await sweepWorld(
      { "model-a": lines(3) },
      { tries: [[dies]], faults: [{ state: "Record", call: null, when: "before", error: "StoreError" }] },
    );
    const result = await runSweep(world, input);
    expect(result).toMatchObject({ status: "SUCCEEDED" });
    expect((await allRows(world)).map((row) => row.status)).toEqual(["infra_error", "infra_error", "infra_error"]);
  });

  it("leave an attempt alone that has run under its name", async () => {
    const own = lines(2);
    const { world, input } = await sweepWorld({ "model-a": own }, { tries: [[passes]] });
    await world.run(own[0] as ManifestLine);
    const before = await world.scores.tries(world.line.sweep, own[0]?.attempt ?? "");
    expect(await runSweep(world, input)).toMatchObject({ status: "SUCCEEDED", output: { rows: 2 } });
    expect(await world.scores.tries(world.line.sweep, own[0]?.attempt ?? "")).toEqual(before);
    expect(world.executors.launched).toHaveLength(2);
  });

  it("start nothing when preflight refuses, and say all that is wrong", async () => {
    const strange = lines(1, { digest: "e".repeat(64) });
    const { world, input } = await sweepWorld({ "model-a": strange }, { tries: [[passes]] });
    const result = await runSweep(world, {
      lanes: [...input.lanes, { lane: "model-b", manifestKey: "sweeps/sweep-a/g01/manifest-b.jsonl", concurrency: 1 }],
    });
    expect(result).toMatchObject({ status: "FAILED", error: "Proctor.PreflightRefused" });
    if (result.status === "SUCCEEDED") throw new Error("expected a refusal");
    expect(result.cause).toContain("is not there");
    expect(result.cause).toContain("is not published");
    expect(world.executors.launched).toEqual([]);
  });

  it("compact though a lane fails", async () => {
    const { world, input } = await sweepWorld(
      { "model-a": lines(1) },
      { tries: [[passes]], faults: [{ state: "Attempts", call: null, when: "before", error: "StoreError" }] },
    );
    expect(await runSweep(world, input)).toMatchObject({
      status: "SUCCEEDED",
      output: { rows: 0, lanes: [{ lane: "model-a", outcome: "States.TaskFailed" }] },
    });
  });

  it("are aborted with all that they started", async () => {
    const { world, input } = await sweepWorld({ "model-a": lines(6) }, { tries: [[{ executor: { does: "hangs" } }]] });
    const handle = await world.machine.start("sweep", "s", { v: 1, sweep: world.line.sweep, generation: 1, ...input });
    await world.clock.sleep(30_000);
    expect(world.executors.running).toHaveLength(3);
    await world.machine.stop("sweep", "s", "Proctor.Cancelled", "the operator stopped the sweep");
    expect((await handle.result).status).toBe("ABORTED");
    await world.clock.sleep(1000);
    await world.settled();
    expect(world.executors.running).toEqual([]);
    expect((await allRows(world)).map((row) => row.status)).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(await world.scores.leases(world.line.sweep)).toEqual([]);
  });
});

describe("judge machine", () => {
  /** An attempt that ended unjudged, and a supervisor that has found its voice. */
  async function unjudged(later: Partial<Turn>, maxFollowups = 0) {
    const turn: Turn = { ...passes, ...later, supervisorWaits: "for ever" };
    const line = aLine({ limits: { ...aLine().limits, maxFollowups } });
    const world = await attemptWorld({ machines: ["attempt", "judge"], line, tries: [[turn]] });
    await world.run();
    expect(await world.rows()).toMatchObject([{ status: "unjudged" }]);
    turn.supervisorWaits = [60];
    return { world, line };
  }
  const judge = async (world: AttemptWorld, line: ManifestLine, name = "judge-1") =>
    (await world.machine.start("judge", name, { v: 1, line, try: 1, turns: 1 })).result;

  it("closes an unjudged row by the stored evidence, without an executor", async () => {
    const { world, line } = await unjudged({});
    const spent = (await world.rows())[0]?.wall_seconds;
    expect(await judge(world, line)).toMatchObject({ status: "SUCCEEDED", output: { status: "pass", next: "done" } });
    expect(await world.rows()).toMatchObject([{ try: 1, status: "pass", score: 1, wall_seconds: spent }]);
    expect(world.executors.launched).toHaveLength(1);
  });

  it("closes a continue with no follow-ups left", async () => {
    const { world, line } = await unjudged({ verdict: "continue", score: 0.5 });
    await judge(world, line);
    expect(await world.rows()).toMatchObject([{ status: "budget_exhausted", score: 0.5 }]);
  });

  it("closes a continue with follow-ups left as an infra fault that is to run again", async () => {
    const { world, line } = await unjudged({ verdict: "continue" }, 2);
    expect(await judge(world, line)).toMatchObject({ output: { status: "infra_error", next: "retry" } });
    expect(await world.rows()).toMatchObject([{ status: "infra_error", reason: expect.stringContaining("gone") }]);
  });

  it("leaves the row unjudged when the supervisor is silent again, and can be run once more", async () => {
    const { world, line } = await unjudged({});
    const turn = world.options.tries[0]?.[0] as Turn;
    turn.supervisorWaits = "for ever";
    expect(await judge(world, line)).toMatchObject({ status: "SUCCEEDED", output: { status: "unjudged" } });
    turn.supervisorWaits = [];
    expect(await judge(world, line, "judge-2")).toMatchObject({ output: { status: "pass" } });
    expect(await world.rows()).toHaveLength(1);
  });

  it("never lowers a row that is closed already", async () => {
    const world = await attemptWorld({ machines: ["attempt", "judge"], tries: [[passes]] });
    await world.run();
    const before = await world.rows();
    expect(await judge(world, world.line)).toMatchObject({ output: { status: "pass", next: "done" } });
    expect(await world.rows()).toEqual(before);
  });

  it("names executions so that a double start joins", () => {
    expect(attemptExecutionName("abcdefghijklmnopqrstuvwxyz", 3)).toBe("abcdefghijklmnopqrstuvwxyz-g03");
  });
});
