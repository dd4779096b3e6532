import { describe, expect, it } from "vitest";
import { expandSweep } from "../../lib/sweep/expand.ts";
import { fixedProblems } from "../../lib/sweep/fixed.ts";
import { plannedTask, scripted, sweepPlan } from "../support/sweep-plan.ts";

type Given = Parameters<typeof sweepPlan>[0];
const fixed = (given: Given): string => expandSweep(sweepPlan(given), 1).fixed;
const fields = (before: Given, after: Given): string[] =>
  fixedProblems("s.yaml", fixed(before), fixed(after)).map((problem) => problem.field);

describe("an edited sweep of the same name", () => {
  it.each([
    ["more tasks", { tasks: [plannedTask("x")] }],
    ["more models, and others gone", { models: [scripted("a"), scripted("c")] }],
    ["more agents", { agents: ["mini", "null"] }],
    ["more epochs", { fields: { epochs: 5 } }],
    ["another cap", { fields: { limits: { usdPerAttempt: null, usdJudging: null, usd: 100 } } }],
    [
      "other concurrency, retries, seed and order",
      { fields: { limits: { concurrency: 9 }, retries: { infra: 0 }, seed: 4, order: "as-listed" } },
    ],
  ] as [string, Given][])("may have %s", (_, after) => {
    expect(fields({}, after)).toEqual([]);
  });

  it.each([
    ["another time limit", { fields: { limits: { turnSeconds: 9 } } }, ["limits.turnSeconds"]],
    ["another cap on an attempt", { fields: { limits: { usdPerAttempt: 9 } } }, ["limits.usdPerAttempt"]],
    ["other rules", { fields: { compat: "uniclawbench" } }, ["compat"]],
    [
      "another model under an old name",
      { models: [{ ...scripted("a"), identity: { ...scripted("a").identity, provider: "other" } }, scripted("b")] },
      ["models.a"],
    ],
  ] as [string, Given, string[]][])("may not have %s", (_, after, expected) => {
    expect(fields({}, after)).toEqual(expected);
  });

  it("may not have another supervisor, and says what it was", () => {
    const made = { ...sweepPlan(), supervisor: { kind: "model" as const, model: scripted("judge") } };
    const problems = fixedProblems("s.yaml", fixed({}), expandSweep(made, 1).fixed);
    expect(problems).toMatchObject([{ field: "supervisor", found: expect.stringContaining('has run with "checks"') }]);
  });

  it("may not have other options of an agent", () => {
    const made = { ...sweepPlan(), agents: [{ name: "mini", version: "1", options: { steps: 3 } }] };
    expect(fixedProblems("s.yaml", fixed({}), expandSweep(made, 1).fixed)).toMatchObject([{ field: "agents.mini+1" }]);
  });
});
