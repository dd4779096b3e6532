/** Preflight and compact. */
import { describe, expect, it } from "vitest";
import { compactHandler } from "../../lambdas/compact.ts";
import { preflightHandler } from "../../lambdas/preflight.ts";
import { closedWithoutResult, openRow } from "../../lib/attempt/attempt-row.ts";
import { compactionPrefix, manifestKey } from "../../lib/firewall/keys.ts";
import { guardScores } from "../../lib/platform/local/guarded-scores.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { publishForTest } from "../support/published.ts";

const line = aLine();

async function world(shard: string) {
  const objects = new MemoryObjects();
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
  publishForTest(objects, line);
  const name = manifestKey(line.sweep, 1, "model-a");
  objects.put(name, shard);
  const lane = { lane: "model-a", manifestKey: name.key, concurrency: 4 };
  const preflight = preflightHandler({
    store: objects.as({ role: "preflight" }),
    scores: guardScores(scores, "preflight"),
  });
  const compact = compactHandler({ store: objects.as({ role: "compact" }), scores: guardScores(scores, "compact") });
  return {
    objects,
    scores,
    compact: () => compact({ v: 1, sweep: line.sweep, generation: 1 }),
    preflight: (change: object = {}) => preflight({ v: 1, sweep: line.sweep, generation: 1, lanes: [lane], ...change }),
  };
}
const shardOf = (...lines: object[]): string => lines.map((one) => JSON.stringify(one)).join("\n");

describe("preflight", () => {
  it("counts the attempts of each lane", async () => {
    const other = aLine({ attempt: "bbbbbbbbbbbbbbbbbbbbbbbbbb" });
    const { preflight } = await world(`${shardOf(line, other)}\r\n\n`);
    expect(await preflight()).toMatchObject({ lanes: [{ lane: "model-a", concurrency: 4, attempts: 2 }] });
  });

  it("names everything that is wrong at once", async () => {
    const strange = aLine({ attempt: "bbbbbbbbbbbbbbbbbbbbbbbbbb", task: "task_x" });
    const stale = aLine({ attempt: "cccccccccccccccccccccccccc", generation: 2 });
    const { preflight } = await world(`${shardOf(line, line, strange, stale)}\n{"v":1}\nnot json`);
    const refusal = await preflight().catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: "Proctor.PreflightRefused" });
    const message = (refusal as Error).message;
    for (const part of ["line 2: has the attempt", "task_x", "line 4: is of", "line 5", "line 6: is not JSON"]) {
      expect(message).toContain(part);
    }
  });

  it("keeps its list short when thousands of lines are wrong", async () => {
    const { preflight } = await world("nonsense\n".repeat(5000));
    const refusal = await preflight().catch((error: unknown) => error);
    expect((refusal as Error).message).toContain("and 4980 more");
    expect((refusal as Error).message.length).toBeLessThan(5000);
  });

  it("refuses a sweep that has moved on, or is not there", async () => {
    const { preflight } = await world(shardOf(line));
    await expect(preflight({ generation: 2 })).rejects.toThrow(/is at generation 1, not 2/);
    await expect(preflight({ sweep: "other" })).rejects.toThrow(/there is no sweep other/);
  });
});

describe("compact", () => {
  it("writes every closed row, then says that it is whole", async () => {
    const { compact, scores, objects } = await world("");
    const opening = { now: 0, isolation: null, image: null, loweredLimits: {} };
    for (const number of [1, 2])
      await scores.closeTry(closedWithoutResult(openRow(line, number, opening), "infra_error", "x", 1));
    await scores.openTry(openRow(line, 3, opening), {
      sweep: line.sweep,
      attempt: line.attempt,
      try: 3,
      generation: 1,
      round: 3,
      mailbox: "m",
      sealKey: "k",
      turnSecret: "s",
      turnToken: null,
      reservedUsd: 0,
      executor: null,
      expiresAt: "2026-01-02T00:00:00Z",
    });
    expect(await compact()).toEqual({ v: 1, compaction: 1, rows: 2 });
    const { bucket, key } = compactionPrefix(line.sweep, 1);
    const rows = (objects.text({ bucket, key: `${key}rows.jsonl` }) ?? "").trim().split("\n");
    expect(rows.map((row) => JSON.parse(row).try)).toEqual([1, 2]);
    expect(JSON.parse(objects.text({ bucket, key: `${key}_done` }) ?? "")).toMatchObject({ rows: 2, compaction: 1 });
  });

  it("gives each compaction a number of its own, also two at once", async () => {
    const { compact } = await world("");
    const made = await Promise.all([compact(), compact(), compact()]);
    expect(made.map((one) => one.compaction).sort()).toEqual([1, 2, 3]);
  });

  it("refuses a sweep that is not there", async () => {
    const { objects, scores } = await world("");
    const compact = compactHandler({ store: objects.as({ role: "compact" }), scores });
    await expect(compact({ v: 1, sweep: "other", generation: 1 })).rejects.toMatchObject({
      name: "Proctor.NoSuchSweep",
    });
  });
});
