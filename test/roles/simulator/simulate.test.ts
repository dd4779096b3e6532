import { describe, expect, it } from "vitest";
import { simulateHandler } from "../../../lambdas/simulate.ts";
import type { SimulateEvent } from "../../../lib/attempt/functions.ts";
import { usageLine } from "../../../lib/attempt/usage.ts";
import { followUpFileKey, followUpUsageKey } from "../../../lib/firewall/keys.ts";
import { fixedSentence } from "../../../lib/roles/feedback.ts";
import { type FollowUp, followUp } from "../../../lib/roles/follow-up.ts";
import {
  aJudgedLine,
  putTurn,
  type RoleWorld,
  roleWorld,
  type ScriptedAnswer,
  scriptedModel,
  sentTo,
} from "../../support/role-world.ts";

const nudge = {
  mode: "nudge",
  tone: "firm",
  candidate_feedback: "- Please check column eight again.\n- Done",
  public_feedback_points: ["column"],
};

function eventOf(world: RoleWorld, change: Partial<SimulateEvent> = {}): SimulateEvent {
  return {
    v: 1,
    line: world.line,
    try: 1,
    turn: 1,
    verdict: "continue",
    attempt_state: "complete_but_failed",
    recoverable: true,
    score: 0.45,
    waitedSeconds: 0,
    ...change,
  };
}

async function simulate(answers: ScriptedAnswer[], world = roleWorld(), change: Partial<SimulateEvent> = {}) {
  putTurn(world.objects, world.of, 1, {
    results: { "best_move.json": '{"row":1}' },
    says: "I saved the move to the file.",
  });
  const models = scriptedModel(world.clock, answers);
  const handler = simulateHandler({ store: world.as("user-simulator"), models, clock: world.clock });
  const result = await handler(eventOf(world, change));
  return { world, models, handler, result };
}

const stored = (world: RoleWorld, turn = 2): FollowUp =>
  followUp.parse(world.json(followUpFileKey(world.of, `turn-0${turn}.json`)));

describe("the user simulator", () => {
  it("writes the message that opens the next turn, rewritten, with its cost", async () => {
    const { world, result } = await simulate([{ json: nudge }]);
    expect(result).toEqual({
      v: 1,
      next: "turn",
      followUpKey: followUpFileKey(world.of, "turn-02.json").key,
      fallback: false,
      waitedSeconds: 0.1,
    });
    expect(stored(world)).toMatchObject({
      turn: 2,
      message: "Please check column eight again.",
      lines: ["Please check column eight again."],
      mode: "nudge",
      tone: "firm",
      language: "en",
      fallback: false,
      usage: { usd: 0.002 },
    });
    const usage = world.objects.text(followUpUsageKey(world.of, 2, 1))!;
    expect(usageLine.parse(JSON.parse(usage))).toMatchObject({ role: "simulator", turn: 1, usd: 0.002 });
  });

  it("is told the request, the last message, the files and four facts", async () => {
    const { models } = await simulate([{ json: nudge }]);
    const sent = sentTo(models);
    expect(sent).toContain("Find the best move");
    expect(sent).toContain("I saved the move to the file.");
    expect(sent).toContain("turn-01/results/best_move.json");
    expect(sent).toContain("verdict continue, state complete_but_failed, recoverable true, score 0.45");
  });

  it("opens what a person could see, with the same tools", async () => {
    const { models } = await simulate([
      { tools: [{ name: "read", arguments: { path: "turn-01/results/best_move.json" } }] },
      { json: nudge },
    ]);
    expect(models.requests[1]!.messages.at(-1)!.content).toContain('{"row":1}');
  });

  it("finds nothing hidden, whatever it asks for", async () => {
    const canary = "CANARY-77aa";
    const world = roleWorld(aJudgedLine(), {
      rubric: canary,
      references: { "truth.json": canary },
      instructions: canary,
    });
    const paths = [
      "references/truth.json",
      "references/eval_rule.md",
      "../hidden/references/truth.json",
      "supervisor.json",
    ];
    const { models } = await simulate(
      [
        {
          tools: [
            { name: "list", arguments: {} },
            ...paths.map((path) => ({ name: "read", arguments: { path } })),
            { name: "search", arguments: { text: "CANARY" } },
          ],
        },
        { json: nudge },
      ],
      world,
    );
    expect(sentTo(models)).not.toContain(canary);
    for (const name of world.objects.names().filter((one) => one.startsWith("evidence/"))) {
      expect(world.objects.text({ bucket: "evidence", key: name.slice("evidence/".length) })).not.toContain(canary);
    }
  });

  it("follows a package's policy instead of the default one, and speaks Chinese where the task does", async () => {
    const english = await simulate([{ json: nudge }], roleWorld(aJudgedLine(), { policy: "Only ask about colours." }));
    const system = english.models.requests[0]!.messages[0]!.content!;
    expect(system).toContain("Only ask about colours.");
    expect(system).not.toContain("one to three things that matter most");
    const chinese = await simulate([{ json: nudge }], roleWorld(aJudgedLine(), { language: "zh" }));
    expect(chinese.models.requests[0]!.messages[0]!.content).toContain("第一人称");
    expect(stored(chinese.world).language).toBe("zh");
    expect(stored(chinese.world).digests.prompts).not.toBe(stored(english.world).digests.prompts);
  });

  it("sends the fixed sentence in silence, and does not call that a fallback", async () => {
    const { world, result } = await simulate([{ json: { ...nudge, mode: "silent" } }]);
    expect(result.fallback).toBe(false);
    expect(stored(world)).toMatchObject({ mode: "silent", message: fixedSentence("complete_but_failed", "en") });
  });

  it("falls back where nothing usable is left of its words", async () => {
    const { world, result } = await simulate([{ json: { ...nudge, candidate_feedback: "Done." } }]);
    expect(result.fallback).toBe(true);
    expect(stored(world)).toMatchObject({ fallback: true, message: fixedSentence("complete_but_failed", "en") });
  });

  it("asks again for an answer that cannot be used, then falls back", async () => {
    const once = await simulate([{ text: "hello" }, { json: nudge }]);
    expect(once.models.requests).toHaveLength(2);
    expect(once.result.fallback).toBe(false);
    const never = await simulate([{ text: "" }]);
    expect(never.models.requests).toHaveLength(3);
    expect(stored(never.world)).toMatchObject({ fallback: true, usage: { usd: 0.006 } });
  });

  it("without a simulator the fixed sentence is sent and nobody is asked", async () => {
    const world = roleWorld(aJudgedLine({ userSimulator: { kind: "none" }, language: "zh" }));
    const { models, result } = await simulate([{ json: nudge }], world, { attempt_state: "incomplete" });
    expect(models.requests).toHaveLength(0);
    expect(result).toMatchObject({ next: "turn", fallback: false });
    expect(stored(world).message).toBe(fixedSentence("incomplete", "zh"));
  });

  it("asks for 300 s a call, says so, and goes on from there", async () => {
    const looks = { tools: [{ name: "list", arguments: {} }], ms: 200_000 };
    const { result, handler, world } = await simulate([looks, looks, { json: nudge, ms: 30_000 }]);
    expect(result).toEqual({ v: 1, next: "more", followUpKey: null, fallback: false, waitedSeconds: 400 });
    expect(await handler(eventOf(world, { waitedSeconds: 400 }))).toMatchObject({ next: "turn", waitedSeconds: 430 });
  });

  it("an event that is delivered twice gives the same message and asks nobody", async () => {
    const { result, handler, world, models } = await simulate([{ json: nudge }]);
    expect(await handler(eventOf(world))).toEqual({ ...result, waitedSeconds: 0 });
    expect(models.requests).toHaveLength(1);
  });

  it("a provider that refuses for good is an infra fault, with its reason", async () => {
    await expect(simulate([{ fault: "quota_exhausted" }])).rejects.toMatchObject({
      name: "Proctor.SimulatorSilent",
      message: expect.stringContaining("quota_exhausted"),
    });
  });

  it("shows later turns what was written before", async () => {
    const { world } = await simulate([{ json: nudge }]);
    putTurn(world.objects, world.of, 2, { results: { "best_move.json": '{"row":7}' } });
    const models = scriptedModel(world.clock, [{ json: { ...nudge, candidate_feedback: "And the reason?" } }]);
    const handler = simulateHandler({ store: world.as("user-simulator"), models, clock: world.clock });
    await handler(eventOf(world, { turn: 2 }));
    expect(sentTo(models)).toContain("Please check column eight again.");
    expect(stored(world, 3).message).toBe("And the reason?");
  });
});
