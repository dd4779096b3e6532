/** The roles on their real path: a published package, checks, the model client and scripted models over a socket. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { simulateHandler } from "../../lambdas/simulate.ts";
import { superviseHandler } from "../../lambdas/supervise.ts";
import { decisionFileKey, followUpFileKey } from "../../lib/firewall/keys.ts";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { startScriptedModels } from "../../lib/platform/local/scripted-models.ts";
import { createModelClient } from "../../lib/platform/openai-client.ts";
import type { CheckRunner } from "../../lib/platform/ports.ts";
import { decideCheck } from "../../lib/roles/checks/decide.ts";
import { parseChecks } from "../../lib/roles/checks/schema.ts";
import { decision } from "../../lib/roles/decision.ts";
import { followUp } from "../../lib/roles/follow-up.ts";
import type { ManifestLine, ModelChoice } from "../../lib/sweep/manifest-line.ts";
import { readContent } from "../../lib/tasks/digest.ts";
import { loadPackages } from "../../lib/tasks/load.ts";
import { publish } from "../../lib/tasks/publish.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { putTurn } from "../support/role-world.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pj-"));
const socket = join(folder, "models.sock");
const clock = new RealClock();
const models = createModelClient({ secrets: { get: async () => null }, clock });
let server: { close(): Promise<void> };

const checks: CheckRunner = {
  evaluate: (job) => Promise.all(job.checks.map(({ id }) => decideCheck(job, id, () => []))),
};
const scripted = (name: string): ModelChoice => ({
  name: `scripted-${name}`,
  provider: "scripted",
  api: "scripted",
  socket,
  script: join(root, "sweeps/demo/scripts", name),
  price: { input: 1, output: 4 },
});

beforeAll(async () => {
  server = await startScriptedModels({ socket, clock });
});
afterAll(async () => {
  await models.close();
  await server.close();
  rmSync(folder, { recursive: true });
});

async function gomoku(language: "en" | "zh") {
  const task = language === "en" ? "task_102_38_gomoku_best_move" : "task_202_38_gomoku_best_move";
  const loaded = loadPackages(join(root, "test/fixtures/uniclawbench"), {
    checksFolder: join(root, "checks"),
    parseChecks,
    env: {},
  })!;
  const content = await readContent(loaded.packages.find(({ id }) => id === task)!);
  const objects = new MemoryObjects();
  await publish(content, objects.as({ role: "operator" }));
  const line: ManifestLine = aLine({
    task,
    digest: content.digest,
    language,
    threshold: 0.9,
    supervisor: { kind: "model", model: scripted("judge"), effort: "low" },
    userSimulator: { kind: "model", model: scripted("person") },
  });
  const of = { attempt: line.attempt, try: 1 };
  const supervise = superviseHandler({ store: objects.as({ role: "supervisor" }), models, clock, checks });
  const simulate = simulateHandler({ store: objects.as({ role: "user-simulator" }), models, clock });
  const judged = (turn: number) => supervise({ v: 1, line, try: 1, turn, waitedSeconds: 0 });
  const stored = (turn: number) =>
    decision.parse(JSON.parse(objects.text(decisionFileKey(of, turn, "decision.json"))!));
  return { objects, line, of, judged, simulate, stored };
}

const won = (language: "en" | "zh"): string =>
  JSON.stringify({
    row: 7,
    col: 8,
    reasoning:
      language === "en" ? "Five in a row at row 7. No other point does." : "第七行成五，其他点都不能立即取胜。",
  });

describe.each(["en", "zh"] as const)("gomoku in %s", (language) => {
  it("a right move with its reason passes, by two checks and a judge", async () => {
    const at = await gomoku(language);
    putTurn(at.objects, at.of, 1, { results: { "best_move.json": won(language) } });
    expect(await at.judged(1)).toMatchObject({ next: "stop", verdict: "pass", score: 1 });
    expect(at.stored(1)).toMatchObject({ scoreSource: "mixed", cap: null });
    expect(at.stored(1).usage.usd).toBeGreaterThan(0);
  });

  it("a wrong move is capped, answered by a follow-up, and repaired", async () => {
    const at = await gomoku(language);
    putTurn(at.objects, at.of, 1, { results: { "best_move.json": '{"row":1,"col":1,"reasoning":"it looks strong"}' } });
    const first = await at.judged(1);
    expect(first).toMatchObject({
      next: "continue",
      verdict: "continue",
      attempt_state: "complete_but_failed",
      score: 0.2,
    });
    const { verdict, attempt_state, recoverable, score } = first;
    const written = await at.simulate({
      v: 1,
      line: at.line,
      try: 1,
      turn: 1,
      verdict,
      attempt_state,
      recoverable,
      score,
      waitedSeconds: 0,
    });
    expect(written).toMatchObject({ next: "turn", fallback: false });
    const message = followUp.parse(JSON.parse(at.objects.text(followUpFileKey(at.of, "turn-02.json"))!));
    expect(message.language).toBe(language);
    putTurn(at.objects, at.of, 2, { results: { "best_move.json": won(language) } });
    expect(await at.judged(2)).toMatchObject({ next: "stop", verdict: "pass", score: 1 });
  });

  it("no answer at all is judged too", async () => {
    const at = await gomoku(language);
    putTurn(at.objects, at.of, 1, { stopReason: "turn_timeout", complete: false });
    expect(await at.judged(1)).toMatchObject({ next: "continue", verdict: "continue", score: 0 });
  });
});
