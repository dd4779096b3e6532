/** Tries of killed processes, as the next generation and `abort` find them. */

import { describe, expect, it } from "vitest";
import { closeAbandoned } from "../../bin/sweeps/abandoned.ts";
import { storePlan } from "../../bin/sweeps/stored.ts";
import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import { prepareHandler } from "../../lambdas/prepare.ts";
import { openRow } from "../../lib/attempt/attempt-row.ts";
import { decisionFileKey, evidenceFileKey, judgingUsageKey } from "../../lib/firewall/keys.ts";
import { remaining } from "../../lib/sweep/resume.ts";
import { someDecision } from "../attempt/facts.ts";
import { aLease } from "../support/lease.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { countingRandom } from "../support/random.ts";
import { putTurn } from "../support/role-world.ts";

const clock = { now: () => Date.UTC(2026, 0, 2), sleep: async () => {} };
const line = aLine();
const of = { attempt: line.attempt, try: 1 };

/** A try of generation 1 that is open, with its lease; its process is gone. */
async function killed() {
  const objects = new MemoryObjects();
  const scores = new MemoryScores();
  const store = objects.as({ role: "operator" });
  const { sweep } = line;
  const sweepRow = { sweep, digest: "d", fixed: "{}", capUsd: 10, planned: 1 };
  await scores.startGeneration(0, { ...sweepRow, generation: 1, controller: null });
  await storePlan(store, { v: 1, ...sweepRow, generation: 1, concurrency: 1, lanes: [], seed: 0, preamble: "p" }, [
    line,
  ]);
  await scores.reserve(sweep, 2);
  const opened = { now: Date.UTC(2026, 0, 1), isolation: null, image: "i", loweredLimits: {} };
  await scores.openTry(openRow(line, 1, opened), aLease(line, { reservedUsd: 2 }));
  await scores.startGeneration(1, { ...sweepRow, generation: 2, controller: null });
  return {
    objects,
    scores,
    close: () => closeAbandoned({ objects: store, scores }, sweep, 2, clock),
    abort: () =>
      closeAbandoned({ objects: store, scores }, sweep, 3, clock, { status: "cancelled", reason: "aborted" }),
    prepare: () =>
      prepareHandler({
        store: objects.as({ role: "prepare" }),
        scores,
        clock,
        random: countingRandom(),
        closeLeftOpen: closeLeftOpen({ store: objects.as({ role: "record" }), scores, clock }),
        imageOf: () => "image",
        turnMarginSeconds: 600,
        heartbeatSeconds: 300,
        leaseSeconds: 3600,
      })({ v: 1, line: { ...line, generation: 2 }, round: 1 }),
    row: async () => (await scores.tries(sweep, line.attempt))[0],
    todo: async () => remaining([line], await scores.tries(sweep, line.attempt), 2),
  };
}

const passed = JSON.stringify(someDecision(1, { usage: { input: 5, cached: 0, output: 5, usd: 0.5 } }));

describe("a try whose process was killed", () => {
  it("between its last decision and its row: closed once as the result that it is, and not run again", async () => {
    const world = await killed();
    putTurn(world.objects, of, 1);
    world.objects.put(decisionFileKey(of, 1, "decision.json"), passed);
    expect(await Promise.all([world.close(), world.close()])).toContain(1);
    expect(await world.close()).toBe(0);
    expect(await world.row()).toMatchObject({ generation: 1, status: "pass", valid: true, usd: { supervisor: 0.5 } });
    expect(await world.scores.sweep(line.sweep)).toMatchObject({ reservedUsd: 0, spentUsd: 0.501 });
    expect(await world.todo()).toMatchObject({ run: [], judge: [], settled: 1 });
  });

  it("while its turn was judged: judged again, not run again", async () => {
    const world = await killed();
    putTurn(world.objects, of, 1);
    const call = { v: 1, role: "supervisor", turn: 1, model: "j", ms: 1, status: "ok", usd: 0.1 };
    const tokens = { input: 10, cached: 0, output: 1 };
    world.objects.put(judgingUsageKey(of, 1, 1), `${JSON.stringify({ ...call, tokens })}\n`);
    expect(await world.close()).toBe(1);
    expect(await world.row()).toMatchObject({ status: "unjudged", turns: 1, usd: { supervisor: 0.1 } });
    expect(await world.todo()).toMatchObject({ run: [], judge: [{ try: 1 }] });
  });

  it("in a turn, or with a manifest that is cut: run again", async () => {
    for (const cut of ["none", "{", "{}"]) {
      const world = await killed();
      if (cut !== "none") {
        putTurn(world.objects, of, 1);
        world.objects.put(evidenceFileKey(of, 1, "manifest.json"), cut);
        world.objects.put(decisionFileKey(of, 1, "decision.json"), passed);
      }
      expect(await world.close()).toBe(1);
      expect(await world.row(), cut).toMatchObject({ status: "infra_error", reason: /^interrupted/ });
      expect(await world.todo(), cut).toMatchObject({ run: [{ generation: 2 }], judge: [] });
    }
  });

  it("is cancelled by an abort, unless its result is there", async () => {
    const undecided = await killed();
    putTurn(undecided.objects, of, 1);
    expect(await undecided.abort()).toBe(1);
    expect(await undecided.row()).toMatchObject({ status: "cancelled", usd: { executor: 0.001 } });
    const decided = await killed();
    putTurn(decided.objects, of, 1);
    decided.objects.put(decisionFileKey(of, 1, "decision.json"), passed);
    await decided.abort();
    expect(await decided.row()).toMatchObject({ status: "pass" });
  });

  it("gets the same row from Prepare, which then launches nothing", async () => {
    const decided = await killed();
    putTurn(decided.objects, of, 1);
    decided.objects.put(decisionFileKey(of, 1, "decision.json"), passed);
    await expect(decided.prepare()).rejects.toMatchObject({ name: "Proctor.AlreadyDone" });
    const row = await decided.row();
    const other = await killed();
    putTurn(other.objects, of, 1);
    other.objects.put(decisionFileKey(of, 1, "decision.json"), passed);
    await other.close();
    expect(await other.row()).toEqual(row);

    const undecided = await killed();
    putTurn(undecided.objects, of, 1);
    await expect(undecided.prepare()).rejects.toMatchObject({ name: "Proctor.Refused" });
    expect(await undecided.row()).toMatchObject({ status: "unjudged" });
  });
});
