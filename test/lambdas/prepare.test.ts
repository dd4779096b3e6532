import { describe, expect, it } from "vitest";
import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import { type PrepareDeps, prepareHandler } from "../../lambdas/prepare.ts";
import { closedWithoutResult } from "../../lib/attempt/attempt-row.ts";
import { packageFile } from "../../lib/firewall/keys.ts";
import { guardScores } from "../../lib/platform/local/guarded-scores.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { aLine } from "../support/manifest-line.ts";
import { MemoryObjects } from "../support/memory-objects.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { publishForTest } from "../support/published.ts";
import { countingRandom } from "../support/random.ts";

const line = aLine({ limits: { ...aLine().limits, usdPerAttempt: 2 } });

async function world(change: { capUsd?: number | null; publish?: boolean; images?: boolean } = {}) {
  const objects = new MemoryObjects();
  const scores = new MemoryScores();
  let now = Date.UTC(2026, 0, 1);
  if (change.publish !== false) publishForTest(objects, line);
  const start = (generation: number) =>
    scores.startGeneration(generation - 1, {
      sweep: line.sweep,
      generation,
      digest: "s",
      fixed: "",
      capUsd: change.capUsd ?? null,
      planned: 1,
      controller: null,
    });
  await start(1);
  const deps: PrepareDeps = {
    store: objects.as({ role: "prepare" }),
    scores: guardScores(scores, "prepare"),
    clock: { now: () => now, sleep: async () => {} },
    random: countingRandom(),
    closeLeftOpen: closeLeftOpen({
      store: objects.as({ role: "record" }),
      scores: guardScores(scores, "record"),
      clock: { now: () => now },
    }),
    imageOf: () => (change.images === false ? null : "image@sha256:1"),
    turnMarginSeconds: 600,
    heartbeatSeconds: 300,
    leaseSeconds: 3600,
  };
  return {
    objects,
    scores,
    start,
    wait: (ms: number) => {
      now += ms;
    },
    deps,
    prepare: (round = 1, of: ManifestLine = line) => prepareHandler(deps)({ v: 1, line: of, round }),
    rows: () => scores.tries(line.sweep, line.attempt),
  };
}

describe("prepare", () => {
  it("opens a try with its row, its lease and its dollars", async () => {
    const { prepare, rows, scores } = await world({ capUsd: 10 });
    const result = await prepare();
    expect(result).toMatchObject({
      next: "launch",
      try: 1,
      image: "image@sha256:1",
      keyName: null,
      turnTimeoutSeconds: 660,
      heartbeatSeconds: 300,
    });
    expect(Buffer.from(result.sealKey, "base64")).toHaveLength(32);
    expect(result.mailbox).toMatch(/^[a-z2-7]{26}$/);
    expect(await rows()).toMatchObject([
      {
        try: 1,
        status: "running",
        lowered_limits: { turnSeconds: 60, totalSeconds: 180 },
        digests: { image: "image@sha256:1" },
      },
    ]);
    expect(await scores.lease(line.attempt, 1)).toMatchObject({ mailbox: result.mailbox, round: 1, reservedUsd: 2 });
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(2);
  });

  it("names the key of a real provider", async () => {
    const { prepare } = await world();
    const model = {
      name: "m",
      provider: "p",
      price: { input: 1, output: 1 },
      api: "chat",
      baseUrl: "https://example.org/v1",
      keyName: "P_KEY",
    } as const;
    expect((await prepare(1, { ...line, model })).keyName).toBe("P_KEY");
  });

  it("answers a second delivery as the first, and reserves once", async () => {
    const { prepare, rows, scores } = await world({ capUsd: 10 });
    const first = await prepare();
    expect(await prepare()).toEqual(first);
    expect(await rows()).toHaveLength(1);
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(2);
  });

  it("answers two deliveries at once alike", async () => {
    const { prepare, rows, scores } = await world({ capUsd: 10 });
    const results = await Promise.all([prepare(), prepare(), prepare()]);
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
    expect(await rows()).toHaveLength(1);
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(2);
  });

  it("opens the next try in the next round", async () => {
    const { prepare, rows, scores, deps } = await world({ capUsd: 10 });
    const first = await prepare(1);
    const [open] = await rows();
    if (!open) throw new Error("no row");
    await scores.closeTry(closedWithoutResult(open, "infra_error", "lost", deps.clock.now()));
    const second = await prepare(2);
    expect(second).toMatchObject({ try: 2 });
    expect(second.mailbox).not.toBe(first.mailbox);
    expect(second.sealKey).not.toBe(first.sealKey);
    expect(await prepare(2)).toEqual(second);
    expect((await rows()).map((row) => row.status)).toEqual(["infra_error", "running"]);
  });

  it("closes what an earlier generation left open, and gives its dollars back", async () => {
    const { prepare, rows, start, scores, wait } = await world({ capUsd: 3 });
    await prepare();
    wait(60_000);
    await start(2);
    const second = await prepare(1, { ...line, generation: 2 });
    expect(second.try).toBe(2);
    expect(await rows()).toMatchObject([
      { try: 1, status: "infra_error", reason: expect.stringContaining("interrupted"), wall_seconds: 60 },
      { try: 2, status: "running", generation: 2 },
    ]);
    expect(await scores.lease(line.attempt, 1)).toBeNull();
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(2);
  });

  it("is refused once a later generation runs the attempt, and touches nothing of it", async () => {
    const { prepare, rows, start } = await world();
    await start(2);
    await prepare(1, { ...line, generation: 2 });
    await expect(prepare(1)).rejects.toMatchObject({ name: "Proctor.Refused" });
    expect(await rows()).toMatchObject([{ generation: 2, status: "running" }]);
  });

  it("says that an attempt is done when it has a valid row", async () => {
    const { prepare, rows, scores } = await world();
    await prepare();
    const [open] = await rows();
    if (!open) throw new Error("no row");
    await scores.closeTry({ ...open, status: "fail", score: 0, valid: true });
    await expect(prepare(2)).rejects.toMatchObject({ name: "Proctor.AlreadyDone" });
    await expect(prepare(1, { ...line, generation: 2 })).rejects.toMatchObject({ name: "Proctor.AlreadyDone" });
    expect(await rows()).toHaveLength(1);
  });

  it("gives the dollars back when the try can not be opened", async () => {
    const { deps, scores, rows } = await world({ capUsd: 10 });
    const broken = { ...deps.scores, openTry: async () => Promise.reject(new Error("the disk is full")) };
    const prepare = prepareHandler({ ...deps, scores: broken });
    await expect(prepare({ v: 1, line, round: 1 })).rejects.toThrow("the disk is full");
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(0);
    expect(await rows()).toEqual([]);
  });

  it("stops at the sweep's cap with a row that says so, once", async () => {
    const { prepare, rows, scores } = await world({ capUsd: 1.99 });
    await expect(prepare()).rejects.toMatchObject({ name: "Proctor.Refused", message: expect.stringContaining("cap") });
    await expect(prepare()).rejects.toMatchObject({ name: "Proctor.Refused" });
    expect(await rows()).toMatchObject([{ status: "cost_stopped", valid: false, score: null }]);
    expect((await scores.sweep(line.sweep))?.reservedUsd).toBe(0);
  });

  it("runs a cost-stopped attempt once the cap is raised in a new generation", async () => {
    const { prepare, rows, scores } = await world({ capUsd: 1 });
    await expect(prepare()).rejects.toMatchObject({ name: "Proctor.Refused" });
    await scores.startGeneration(1, {
      sweep: line.sweep,
      generation: 2,
      digest: "s",
      fixed: "",
      capUsd: 5,
      planned: 1,
      controller: null,
    });
    expect(await prepare(1, { ...line, generation: 2 })).toMatchObject({ try: 2 });
    expect((await rows()).map((row) => row.status)).toEqual(["cost_stopped", "running"]);
  });

  it("refuses what cannot succeed, each with the reason in a row", async () => {
    const unpublished = await world({ publish: false });
    await expect(unpublished.prepare()).rejects.toMatchObject({ name: "Proctor.Refused" });
    expect(await unpublished.rows()).toMatchObject([
      { status: "infra_error", reason: expect.stringContaining("not published") },
    ]);

    const noRubric = await world();
    noRubric.objects.remove(packageFile(line.task, line.digest, "hidden", "references/eval_rule.md"));
    await expect(noRubric.prepare()).rejects.toMatchObject({ message: expect.stringContaining("rubric") });

    const noRequest = await world();
    noRequest.objects.remove(packageFile(line.task, line.digest, "agent", "request.md"));
    await expect(noRequest.prepare()).rejects.toMatchObject({ message: expect.stringContaining("request") });

    const garbage = await world();
    garbage.objects.put(packageFile(line.task, line.digest, "runner", "package.json"), "<html>");
    await expect(garbage.prepare()).rejects.toMatchObject({ message: expect.stringContaining("not JSON") });

    const noImage = await world({ images: false });
    await expect(noImage.prepare()).rejects.toMatchObject({
      message: expect.stringContaining("cannot be launched here"),
    });
  });

  it("refuses an event of another form before it does anything", async () => {
    const { deps, rows } = await world();
    for (const event of [
      null,
      {},
      { v: 1, line, round: 0 },
      { v: 2, line, round: 1 },
      { v: 1, line: { ...line, extra: 1 }, round: 1 },
    ]) {
      await expect(prepareHandler(deps)(event)).rejects.toThrow();
    }
    expect(await rows()).toEqual([]);
  });
});
