import { expect, it } from "vitest";
import { judgeAgain } from "../../bin/sweeps/judge-again.ts";
import { closedWithoutResult, openRow } from "../../lib/attempt/attempt-row.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { MemoryScores } from "../support/memory-scores.ts";
import { aJudgedLine } from "../support/role-world.ts";

/** A sweep under a cap with unjudged tries, and what was reserved while each of them was judged. */
async function judged(capUsd: number, attempts: string[]) {
  const scores = new MemoryScores();
  const limits = { ...aJudgedLine().limits, usdJudging: 0.5 };
  const lines = attempts.map((letter): ManifestLine => aJudgedLine({ attempt: letter.repeat(26), limits }));
  const { sweep } = aJudgedLine();
  const fixed = { digest: "d", fixed: "{}", planned: lines.length, controller: null };
  await scores.startGeneration(0, { sweep, generation: 1, capUsd, ...fixed });
  for (const line of lines) {
    const open = openRow(line, 1, { now: 0, isolation: null, image: null, loweredLimits: {} });
    await scores.closeTry(closedWithoutResult(open, "unjudged", "no verdict", 1));
  }
  const reserved: number[] = [];
  const said: string[] = [];
  const engine = {
    isDraining: false,
    async execute() {
      reserved.push((await scores.sweep(sweep))?.reservedUsd ?? 0);
      return { status: "SUCCEEDED", output: null, error: null, cause: null };
    },
  };
  const progress = {
    begin: () => undefined,
    beat: () => undefined,
    say: (text: string) => said.push(text),
    ended: () => undefined,
  };
  const again = await judgeAgain(
    engine,
    lines.map((line) => ({ line, try: 1 })),
    { runs: { scores }, progress, concurrency: 1 },
  );
  return { again, reserved, said, left: (await scores.sweep(sweep))?.reservedUsd };
}

it("holds back the worst case of each judging while it lasts", async () => {
  const { again, reserved, said, left } = await judged(0.6, ["a", "b"]);
  expect(reserved).toEqual([0.5, 0.5]);
  expect({ again, said, left }).toEqual({ again: [], said: [], left: 0 });
});

it("leaves unjudged what the sweep's cap holds back, and says so", async () => {
  const { again, reserved, said } = await judged(0.4, ["a"]);
  expect(reserved).toEqual([]);
  expect(again).toEqual([]);
  expect(said).toEqual([expect.stringContaining("raise limits.usd")]);
});
