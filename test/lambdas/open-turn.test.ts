import { describe, expect, it } from "vitest";
import { openTurnHandler } from "../../lambdas/open-turn.ts";
import { openRow } from "../../lib/attempt/attempt-row.ts";
import { unseal } from "../../lib/executor/seal.ts";
import { followUpFileKey, mailboxKey } from "../../lib/firewall/keys.ts";
import { guardScores } from "../../lib/platform/local/guarded-scores.ts";
import type { RunnerPart } from "../../lib/tasks/published.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { publishForTest, requestText } from "../support/published.ts";
import { countingRandom } from "../support/random.ts";

const line = aLine();
const of = { attempt: line.attempt, try: 1 };
const sealKey = Buffer.alloc(32, 5).toString("base64");
const mailbox = "boxboxboxboxboxboxboxboxbo";

async function world(runner: Partial<RunnerPart> = {}, values: Record<string, string> = {}) {
  const objects = new MemoryObjects();
  const scores = new MemoryScores();
  publishForTest(objects, line, runner);
  const now = Date.UTC(2026, 0, 1);
  await scores.openTry(openRow(line, 1, { now, isolation: null, image: null, loweredLimits: {} }), {
    ...of,
    sweep: line.sweep,
    generation: 1,
    round: 1,
    mailbox,
    sealKey,
    turnSecret: "secret",
    turnToken: null,
    reservedUsd: 0,
    executor: null,
    expiresAt: "2026-01-02T00:00:00Z",
  });
  const granted: unknown[] = [];
  const handler = openTurnHandler({
    store: objects.as({ role: "open-turn" }),
    scores: guardScores(scores, "open-turn"),
    clock: { now: () => now, sleep: async () => {} },
    random: countingRandom(),
    secrets: { get: async (name) => values[name] ?? null },
    grantFor: async (...asked) => {
      granted.push(asked);
      return { kind: "local", objects: "/objects", tokens: "/tokens.sock" };
    },
    turnMarginSeconds: 600,
  });
  const open = (turn = 1, taskToken = "token-1", change: object = {}) =>
    handler({
      v: 1,
      line,
      try: 1,
      turn,
      taskToken,
      secondsUsed: 0,
      usdUsed: 0,
      tokensUsed: 0,
      executor: "executor-1",
      ...change,
    });
  const message = async (turn = 1) =>
    unseal(sealKey, await objects.as({ role: "executor-task" }).get(mailboxKey(mailbox, turn)));
  return { objects, scores, open, message, granted };
}

function followUp(turn: number, message: string): string {
  const usage = { input: 0, cached: 0, output: 0, usd: 0 };
  const how = { language: "en", mode: "nudge", tone: "neutral", lines: [], fallback: false };
  return JSON.stringify({ v: 1, turn, message, ...how, digests: { prompts: "p" }, usage });
}

describe("open turn", () => {
  it("posts the request, sealed, with all that the turn needs", async () => {
    const { open, message, granted, scores } = await world(
      { privacy: ["SITE_TOKEN"] },
      { SITE_TOKEN: "private-value" },
    );
    expect(await open()).toEqual({ v: 1, turn: 1 });
    expect(await message()).toMatchObject({
      attempt: line.attempt,
      try: 1,
      turn: 1,
      deadline: "2026-01-01T00:11:00.000Z",
      request: { kind: "task", text: requestText },
      agent: line.agent,
      model: line.model,
      package: { task: line.task, digest: line.digest },
      env: { SITE_TOKEN: "private-value" },
      credentials: { kind: "local" },
      taskToken: "token-1",
      limits: { turnSeconds: 60, totalBinds: false, noStartSeconds: 20, stallSeconds: 30, usd: 1, tokens: null },
    });
    expect(granted).toEqual([[of, { task: line.task, digest: line.digest }]]);
    expect(await scores.lease(of.attempt, 1)).toMatchObject({ turnToken: "token-1", executor: "executor-1" });
  });

  it("leaves only ciphertext in the store", async () => {
    const { open, objects } = await world({ privacy: ["SITE_TOKEN"] }, { SITE_TOKEN: "private-value" });
    await open();
    const sealed = objects.text(mailboxKey(mailbox, 1)) ?? "";
    for (const secret of [requestText, "private-value", "token-1", line.attempt]) expect(sealed).not.toContain(secret);
  });

  it("posts a follow-up with what is left of seconds, dollars and tokens", async () => {
    const { open, message, objects } = await world();
    objects.put(followUpFileKey(of, "turn-02.json"), followUp(2, "Look at row 3 again."));
    await open(2, "token-2", { secondsUsed: 150, usdUsed: 1.5, tokensUsed: 7 });
    expect(await message(2)).toMatchObject({
      request: { kind: "followup", text: "Look at row 3 again." },
      limits: { turnSeconds: 30, totalBinds: true, usd: 0 },
      secondsUsed: 150,
    });
  });

  it("says that the follow-up is not there yet, and posts nothing", async () => {
    const { open, objects, scores } = await world();
    await expect(open(2)).rejects.toMatchObject({ name: "Proctor.FollowUpNotReady" });
    expect(objects.names().filter((name) => name.includes("mailbox"))).toEqual([]);
    expect(await scores.lease(of.attempt, 1)).toMatchObject({ turnToken: null });
  });

  it("answers a second delivery of the same event as the first, and posts once", async () => {
    const { open, objects } = await world();
    await open();
    const posted = objects.text(mailboxKey(mailbox, 1));
    expect(await open()).toEqual({ v: 1, turn: 1 });
    expect(objects.text(mailboxKey(mailbox, 1))).toBe(posted);
  });

  it("refuses to open a turn for the second time with another token", async () => {
    const { open } = await world();
    await open();
    await expect(open(1, "token-2")).rejects.toMatchObject({ name: "Proctor.TurnExists" });
  });

  it("refuses a try that is closed", async () => {
    const { open, scores, objects } = await world();
    const [row] = await scores.tries(line.sweep, line.attempt);
    if (!row) throw new Error("no row");
    await scores.closeTry({ ...row, status: "cancelled" });
    await expect(open()).rejects.toMatchObject({ name: "Proctor.TryClosed" });
    expect(objects.names().filter((name) => name.includes("mailbox"))).toEqual([]);
  });

  it("names the privacy value that is missing, and posts nothing", async () => {
    const { open, objects } = await world({ privacy: ["SITE_TOKEN", "OTHER"] }, { OTHER: "x" });
    await expect(open()).rejects.toMatchObject({
      name: "Proctor.PrivacyValueMissing",
      message: expect.stringContaining("SITE_TOKEN"),
    });
    expect(objects.names().filter((name) => name.includes("mailbox"))).toEqual([]);
  });
});
