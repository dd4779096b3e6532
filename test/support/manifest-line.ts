/** A manifest line and what belongs to it, for tests of the attempt. */
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";

/** A line that is whole and ordinary; `change` replaces fields of it. */
export function aLine(change: Partial<ManifestLine> = {}): ManifestLine {
  return {
    v: 1,
    sweep: "sweep-a",
    generation: 1,
    attempt: "abcdefghijklmnopqrstuvwxyz",
    task: "task_102_35_sudoku_9x9_easiest",
    digest: "d".repeat(64),
    category: "102_exploration",
    capability: "exploration",
    language: "en",
    cluster: "sudoku_9x9_easiest",
    network: "offline",
    threshold: 1,
    agent: { name: "null", version: "1.0.0", options: {} },
    model: {
      name: "scripted-model",
      provider: "scripted",
      price: { input: 1, output: 2 },
      api: "scripted",
      socket: "/tmp/models.sock",
      script: "/tmp/script",
    },
    epoch: 1,
    supervisor: { kind: "checks" },
    userSimulator: { kind: "none" },
    limits: {
      turnSeconds: 60,
      totalSeconds: 180,
      noStartSeconds: 20,
      stallSeconds: 30,
      maxFollowups: 2,
      usdPerAttempt: 1,
      usdJudging: 0.5,
      tokensPerAttempt: null,
    },
    retries: { infra: 2, rateLimit: 2 },
    placement: "one",
    seed: 1,
    compat: null,
    ...change,
  };
}
