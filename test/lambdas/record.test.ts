import { describe, expect, it } from "vitest";
import { recordHandler } from "../../lambdas/record.ts";
import { decisionFileKey, evidenceFileKey, followUpUsageKey, judgingUsageKey } from "../../lib/firewall/keys.ts";
import { promptsDigest } from "../../lib/roles/prompts/digest.ts";
import type { Turn } from "../support/attempt-world.ts";
import { attemptWorld } from "../support/attempt-world.ts";

const goesOn: Turn = { executor: { does: "reports" }, verdict: "continue" };
const passes: Turn = { executor: { does: "reports" }, verdict: "pass" };
const of = { attempt: "abcdefghijklmnopqrstuvwxyz", try: 1 };

/** A try of two turns with all its evidence, whose row is still open. */
async function openTry() {
  const struck = { state: "Record", call: null, when: "before", error: "States.Runtime" } as const;
  const world = await attemptWorld({ tries: [[goesOn, passes]], faults: [struck] });
  const name = `${of.attempt}-g01`;
  // Stopped short of its end by hand: what execution-ended would close stays open here.
  const handle = await world.machine.start("attempt", name, world.line);
  const rows = world.scores.closeTry.bind(world.scores);
  world.scores.closeTry = async () => false;
  await handle.result;
  await world.settled();
  world.scores.closeTry = rows;
  const record = (change: object = {}) =>
    recordHandler({
      store: world.objects.as({ role: "record" }),
      scores: world.scoresOf("record"),
      clock: world.clock,
    })({
      v: 1,
      line: world.line,
      try: 1,
      turns: 2,
      fault: null,
      executorGone: false,
      ...change,
    });
  return { world, record };
}

const usageOf = (role: string, turn: number, usd: number): string =>
  `${JSON.stringify({ v: 1, role, turn, model: "m", ms: 1, status: "ok", tokens: { input: 5, cached: 1, output: 2 }, usd })}\n`;

describe("record", () => {
  it("writes the row of all that the try stored, every role's dollars included", async () => {
    const { world, record } = await openTry();
    world.objects.put(judgingUsageKey(of, 1, 1), usageOf("supervisor", 1, 0.1));
    world.objects.put(judgingUsageKey(of, 2, 1), usageOf("supervisor", 2, 0.15));
    world.objects.put(judgingUsageKey(of, 2, 2), usageOf("supervisor", 2, 0.05));
    world.objects.put(followUpUsageKey(of, 2, 1), usageOf("simulator", 1, 0.05));
    expect(await record()).toEqual({ v: 1, status: "pass", next: "done", delaySeconds: 0 });
    expect(await world.rows()).toMatchObject([
      {
        status: "pass",
        turns: 2,
        followups: 1,
        usd: { executor: 0.02, supervisor: 0.3, simulator: 0.05 },
        tokens: { executor: { input: 200 }, supervisor: { input: 15, cached: 3, output: 6 }, simulator: { input: 5 } },
        digests: { prompts: promptsDigest({ supervisor: "p", simulator: ["p"] }), rubric: "r" },
      },
    ]);
    expect(await world.scores.sweep(world.line.sweep)).toMatchObject({ reservedUsd: 0, spentUsd: 0.37 });
  });

  it("answers a second delivery alike and leaves the row as it is", async () => {
    const { world, record } = await openTry();
    const first = await record();
    const rows = await world.rows();
    await world.clock.sleep(60_000);
    expect(await record()).toEqual(first);
    expect(await record({ fault: { error: "Proctor.SimulatorSilent", cause: "" } })).toEqual(first);
    expect(await world.rows()).toEqual(rows);
  });

  it("answers two deliveries at once alike", async () => {
    const { world, record } = await openTry();
    const [first, second] = await Promise.all([record(), record()]);
    expect(second).toEqual(first);
    expect(await world.rows()).toHaveLength(1);
    expect((await world.scores.sweep(world.line.sweep))?.spentUsd).toBe(0.02);
  });

  it("counts what judging cost that came to nothing, each time it is done", async () => {
    const { world, record } = await openTry();
    world.objects.remove(decisionFileKey(of, 2, "decision.json"));
    const unjudged = { fault: { error: "Proctor.Unjudged", cause: "waited 1200 s" } };
    world.objects.put(judgingUsageKey(of, 2, 1), usageOf("supervisor", 2, 0.1));
    expect(await record(unjudged)).toMatchObject({ status: "unjudged" });
    expect((await world.scores.sweep(world.line.sweep))?.spentUsd).toBe(0.12);
    world.objects.put(judgingUsageKey(of, 2, 2), usageOf("supervisor", 2, 0.3));
    for (let delivery = 0; delivery < 2; delivery++) {
      expect(await record({ ...unjudged, executorGone: true })).toMatchObject({ status: "unjudged", next: "done" });
    }
    expect(await world.rows()).toMatchObject([{ status: "unjudged", usd: { supervisor: 0.4 } }]);
    expect((await world.scores.sweep(world.line.sweep))?.spentUsd).toBe(0.42);
  });

  it("gives the same delay to a retry however often it is asked", async () => {
    const { record } = await openTry();
    const lost = { fault: { error: "States.HeartbeatTimeout", cause: "" } };
    const first = await record(lost);
    expect(first).toMatchObject({ status: "infra_error", next: "retry" });
    expect(first.delaySeconds).toBeGreaterThan(0);
    expect(await record(lost)).toEqual(first);
  });

  it("counts a turn without its manifest as lost", async () => {
    const { world, record } = await openTry();
    world.objects.remove(evidenceFileKey(of, 2, "manifest.json"));
    expect(await record()).toMatchObject({ status: "infra_error" });
    expect(await world.rows()).toMatchObject([{ reason: expect.stringContaining("turn 2") }]);
  });

  it("reads what is damaged as missing, never as a result", async () => {
    for (const text of ["", "<html>", "null", '{"v":1}', '{"v":1,"turn":2,"score":1e309}']) {
      const { world, record } = await openTry();
      world.objects.put(decisionFileKey(of, 2, "decision.json"), text);
      expect(await record(), text).toMatchObject({ status: "unjudged", next: "done" });
      expect(await world.rows(), text).toMatchObject([{ score: null, valid: false }]);
    }
  });

  it("takes a report for the turn that it is of", async () => {
    const { world, record } = await openTry();
    world.objects.put(
      evidenceFileKey(of, 2, "report.json"),
      world.objects.text(evidenceFileKey(of, 1, "report.json")) ?? "",
    );
    expect(await record()).toMatchObject({ status: "infra_error" });
  });

  it("skips damaged lines of usage", async () => {
    const { world, record } = await openTry();
    world.objects.put(judgingUsageKey(of, 1, 1), `{"v":1\n\n${usageOf("supervisor", 1, 0.1)}{"usd":-1}\n`);
    await record();
    expect((await world.rows())[0]?.usd.supervisor).toBe(0.1);
  });

  it("shows a function's error for people, not as the JSON that it came in", async () => {
    const { world, record } = await openTry();
    world.objects.remove(evidenceFileKey(of, 2, "manifest.json"));
    const cause = JSON.stringify({ errorType: "StoreError", errorMessage: 'the disk is "full"', trace: ["at x"] });
    await record({ fault: { error: "StoreError", cause: cause.slice(0, 2000) } });
    const reason = (await world.rows())[0]?.reason ?? "";
    expect(reason).toContain('the disk is "full"');
    expect(reason).not.toContain("errorMessage");
  });

  it("takes the longest cause that a machine hands on, whatever its letters", async () => {
    const { world, record } = await openTry();
    world.objects.remove(evidenceFileKey(of, 2, "manifest.json"));
    await record({ fault: { error: "States.TaskFailed", cause: "\u{1F600}".repeat(2000) } });
    expect((await world.rows())[0]?.status).toBe("infra_error");
  });

  it("says when there is no such try", async () => {
    const { record } = await openTry();
    await expect(record({ try: 7 })).rejects.toMatchObject({ name: "Proctor.NoSuchTry" });
  });
});
