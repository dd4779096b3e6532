import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attemptRow, closedWithoutResult, openRow, type TryFacts } from "../../lib/attempt/attempt-row.ts";
import { machineFaults } from "../../lib/attempt/functions.ts";
import { attemptState, isValidStatus, statusRank, stopReason, verdict } from "../../lib/attempt/vocabulary.ts";
import { scoreRow } from "../../lib/results/score-row.ts";
import { promptsDigest } from "../../lib/roles/prompts/digest.ts";
import { goesOn, someDecision, someFacts, someFollowUp, someLine, someReport, started } from "./facts.ts";

const row = (change: Partial<TryFacts> = {}) => attemptRow(someFacts(change));
const fault = (error: string, cause = "") => ({ fault: { error, cause } });

describe("the row of a finished try", () => {
  it("a passed attempt, with all that was used", () => {
    const made = row({
      turns: 2,
      reports: [someReport(2), someReport(1)],
      decisions: [
        someDecision(1, {
          ...goesOn,
          score: 0.4,
          usage: { input: 7, cached: 0, output: 3, usd: 0.001 },
        }),
        someDecision(2, { score: 0.95 }),
      ],
      followUps: [someFollowUp(2, true)],
      usage: [
        {
          v: 1,
          role: "supervisor",
          turn: 1,
          model: "j",
          ms: 5,
          status: "ok",
          tokens: { input: 7, cached: 0, output: 3 },
          usd: 0.001,
        },
      ],
    });
    expect(made).toMatchObject({
      status: "pass",
      verdict: "pass",
      attempt_state: "complete_and_passed",
      stop_reason: "ended",
      passed: true,
      valid: true,
      score: 0.95,
      score_source: "checks",
      turns: 2,
      followups: 1,
      fallback_turns: 1,
      executor_seconds: 20,
      wall_seconds: 20,
      tokens: { executor: { input: 200, cached: 40, output: 20 }, supervisor: { input: 7, cached: 0, output: 3 } },
      usd: { executor: 0.02, supervisor: 0.001, simulator: 0 },
      isolation: "bwrap",
      lowered_limits: { turnSeconds: 100 },
      digests: {
        task: "d",
        prompts: promptsDigest({ supervisor: "p", simulator: ["p"] }),
        rubric: "r",
        image: "image",
      },
      started: "2026-03-01T10:00:00.000Z",
      ended: "2026-03-01T10:00:20.000Z",
    });
    expect(scoreRow.parse(made)).toEqual(made);
  });

  it("has a digest of the prompts of every role that spoke", () => {
    const prompts = (change: Partial<TryFacts>): string | null => attemptRow(someFacts(change)).digests.prompts;
    const wrote = (by: string) => ({ ...someFollowUp(2), digests: { prompts: by } });
    expect(prompts({})).toBe("p");
    const other = prompts({ followUps: [wrote("other")] });
    expect(prompts({ followUps: [wrote("s")] })).not.toBe(other);
    expect(prompts({ followUps: [wrote("s"), wrote("s")] })).toBe(prompts({ followUps: [wrote("s")] }));
  });

  it.each([
    ["its lines, where its report knows of less", { input: 500, cached: 0, output: 50 }, 0.5, 600, 0.51],
    ["its report, where lines are lost", { input: 1, cached: 0, output: 1 }, 0.001, 200, 0.02],
  ])("an executor's turn is counted by %s", (_, tokens, usd, input, dollars) => {
    const made = row({
      turns: 2,
      reports: [someReport(1), someReport(2)],
      decisions: [someDecision(2)],
      usage: [{ v: 1, role: "executor", turn: 1, model: "m", ms: 1, status: "ok", tokens, usd }],
    });
    expect(made.tokens.executor.input).toBe(input);
    expect(made.usd.executor).toBe(dollars);
  });

  it("follow-ups used up: budget_exhausted with the last decision's score", () => {
    const made = row({
      line: someLine({ limits: { ...someLine().limits, maxFollowups: 0 } }),
      decisions: [someDecision(1, { ...goesOn, score: 0.6 })],
    });
    expect(made).toMatchObject({ status: "budget_exhausted", score: 0.6, passed: false, valid: true });
    expect(made.reason).toBe("follow-ups used up: score 0.6, threshold 0.9");
  });

  it("a score at the threshold promotes an attempt whose result was left open", () => {
    const made = row({
      line: someLine({ limits: { ...someLine().limits, maxFollowups: 0 } }),
      decisions: [someDecision(1, { ...goesOn, score: 0.9 })],
    });
    expect(made).toMatchObject({ status: "pass", verdict: "continue", passed: true });
    expect(made.reason).toContain("the score reaches the threshold");
  });

  it("out of time: the best of the complete turns, 0 where there is none", () => {
    const last = someReport(2, {
      exit: { code: null, stopReason: "global_timeout" },
      completion: { complete: false, reason: "no_signal" },
    });
    const decisions = [someDecision(1, { ...goesOn, score: 0.5 }), someDecision(2, { ...goesOn, score: 0.7 })];
    expect(row({ turns: 2, reports: [someReport(1), last], decisions })).toMatchObject({
      status: "global_timeout",
      score: 0.5,
    });
    const never = someReport(1, { completion: { complete: false, reason: "no_signal" } });
    expect(row({ turns: 2, reports: [never, last], decisions })).toMatchObject({ status: "global_timeout", score: 0 });
    const compat = someLine({ compat: "uniclawbench" });
    expect(row({ line: compat, turns: 2, reports: [never, last], decisions })).toMatchObject({ score: 0.7 });
  });

  it("a timed-out last turn scores so under any status", () => {
    const timedOut = someReport(1, {
      exit: { code: null, stopReason: "turn_timeout" },
      completion: { complete: false, reason: "no_message" },
    });
    const decisions = [someDecision(1, { verdict: "fail", attempt_state: "terminal_failure", score: 0.3 })];
    expect(row({ reports: [timedOut], decisions })).toMatchObject({ status: "fail", score: 0, valid: true });
  });

  it("all seconds used is a global timeout, also when the turn ended by itself", () => {
    const made = row({
      reports: [someReport(1, { executorSeconds: 300 })],
      decisions: [someDecision(1, { ...goesOn, score: 0.2 })],
    });
    expect(made).toMatchObject({ status: "global_timeout", score: 0.2, stop_reason: "ended" });
  });

  it("the attempt's dollar cap is the agent's failure", () => {
    const made = row({
      reports: [
        someReport(1, {
          exit: { code: 1, stopReason: "cost_cap" },
          completion: { complete: false, reason: "nonzero_exit" },
        }),
      ],
      decisions: [someDecision(1, { ...goesOn, score: 0.3 })],
    });
    expect(made).toMatchObject({ status: "budget_exhausted", valid: true, score: 0.3 });
  });

  it("a failed gate is a fail, one that lets the attempt go on is not", () => {
    const incomplete = someReport(1, { completion: { complete: false, reason: "no_signal" } });
    const failed = someDecision(1, { verdict: "fail", attempt_state: "incomplete", gateFailed: true, score: 1 });
    expect(row({ reports: [incomplete], decisions: [failed] })).toMatchObject({ status: "fail", passed: false });
    const capped = someReport(1, { ...incomplete, exit: { code: 0, stopReason: "cost_cap" } });
    const deferred = someDecision(1, { ...goesOn, gateFailed: true, score: 0.5 });
    expect(row({ reports: [capped], decisions: [deferred] })).toMatchObject({ status: "budget_exhausted" });
  });
});

describe("faults", () => {
  it.each([
    [machineFaults.unjudged, "unjudged"],
    [machineFaults.simulatorSilent, "infra_error"],
    [machineFaults.launchFailed, "infra_error"],
    [machineFaults.cancelled, "cancelled"],
    [machineFaults.costStopped, "cost_stopped"],
    [machineFaults.preExecFailed, "pre_exec_failed"],
    ["States.Timeout", "infra_error"],
    ["States.HeartbeatTimeout", "infra_error"],
  ])("%s makes the row %s", (error, status) => {
    const made = row({ decisions: [], ...fault(error, "the cause\nand a stack") });
    expect(made).toMatchObject({ status, valid: false, passed: false, score: null });
    expect(made.reason).toMatch(/: the cause$/);
  });

  it("an unknown fault before the turn's evidence is ours", () => {
    expect(row({ reports: [], decisions: [], ...fault("Error", "boom") })).toMatchObject({ status: "infra_error" });
    expect(row({ turns: 2, ...fault("Runner.Lost") })).toMatchObject({ status: "infra_error" });
  });

  it("an unknown fault while a whole turn waits for its decision leaves it unjudged", () => {
    expect(row({ decisions: [], ...fault("TypeError", "x is not a function") })).toMatchObject({
      status: "unjudged",
      stop_reason: "ended",
    });
  });

  it("an unknown fault after the decision is ours", () => {
    const made = row({ decisions: [someDecision(1, goesOn)], ...fault("Error", "simulator crashed") });
    expect(made).toMatchObject({ status: "infra_error", verdict: "continue" });
  });

  it("a turn that was opened and left nothing is an infra error", () => {
    expect(row({ turns: 2, decisions: [someDecision(1, goesOn)] })).toMatchObject({ status: "infra_error" });
    expect(row({ turns: 0, reports: [], decisions: [] })).toMatchObject({ status: "infra_error" });
  });

  it.each([
    ["rate_limited", "rate_limit"],
    ["provider_fault", "infra_error"],
    ["interrupted", "infra_error"],
    ["no_start", "infra_error"],
  ] as const)("a turn lost to %s is %s and needs no decision", (stop, status) => {
    const made = row({ reports: [someReport(1, { exit: { code: 1, stopReason: stop }, note: "429" })], decisions: [] });
    expect(made).toMatchObject({ status, stop_reason: stop, score: null, valid: false });
    expect(made.reason).toContain("429");
  });
});

describe("judging again", () => {
  const stored = () => attemptRow(someFacts({ decisions: [], fault: { error: machineFaults.unjudged, cause: "" } }));
  const again = (change: Partial<TryFacts>) =>
    attemptRow(someFacts({ stored: stored(), executorGone: true, now: started + 9e8, ...change }));

  it("a pass, a fail or a last continue closes the try", () => {
    expect(again({})).toMatchObject({ status: "pass", score: 1 });
    const fail = someDecision(1, { verdict: "fail", attempt_state: "terminal_failure", score: 0.1 });
    expect(again({ decisions: [fail] })).toMatchObject({ status: "fail", score: 0.1 });
    const line = someLine({ limits: { ...someLine().limits, maxFollowups: 0 } });
    expect(again({ line, decisions: [someDecision(1, { ...goesOn, score: 0.2 })] })).toMatchObject({
      status: "budget_exhausted",
    });
  });

  it("a continue with follow-ups left ends the try, because its executor is gone", () => {
    const made = again({ decisions: [someDecision(1, goesOn)] });
    expect(made).toMatchObject({ status: "infra_error", valid: false });
    expect(made.reason).toContain("executor is gone");
  });

  it("counts both judgings, also where lines of the second were lost", () => {
    const line = { v: 1, role: "supervisor", turn: 1, model: "j", ms: 1, status: "ok" } as const;
    const usage = [{ ...line, tokens: { input: 100, cached: 0, output: 10 }, usd: 0.2 }];
    expect(again({ usage, decisions: [] }).usd.supervisor).toBe(0.2);
    const decided = someDecision(1, { usage: { input: 300, cached: 0, output: 30, usd: 0.5 } });
    expect(again({ usage, decisions: [decided] })).toMatchObject({
      usd: { supervisor: 0.5 },
      tokens: { supervisor: { input: 300, cached: 0, output: 30 } },
    });
  });

  it("the days in between are not the attempt's", () => {
    expect(again({}).wall_seconds).toBe(20);
  });

  it("always outranks the unjudged row, unless it is unjudged again", () => {
    expect(statusRank(again({}).status)).toBeGreaterThan(statusRank(stored().status));
    expect(again({ decisions: [] }).status).toBe("unjudged");
  });
});

describe("rows without a result", () => {
  it("an open row is a valid row of the table", () => {
    const open = openRow(someLine(), 3, { now: started, isolation: "none", image: null, loweredLimits: {} });
    expect(scoreRow.parse(open)).toMatchObject({ status: "running", try: 3, score: null, ended: null });
    const closed = closedWithoutResult(open, "cost_stopped", "the sweep's cap", started + 1500);
    expect(scoreRow.parse(closed)).toMatchObject({ status: "cost_stopped", wall_seconds: 1.5, valid: false });
  });
});

describe("whatever happened", () => {
  const reports = fc
    .array(
      fc.record({ stopReason: fc.constantFrom(...stopReason.options), complete: fc.boolean(), seconds: fc.nat(400) }),
      { maxLength: 4 },
    )
    .map((turns) =>
      turns.map(({ stopReason: stop, complete, seconds }, index) =>
        someReport(index + 1, {
          exit: { code: null, stopReason: stop },
          completion: { complete, reason: "no_signal" },
          executorSeconds: seconds,
        }),
      ),
    );
  const decisions = fc
    .array(
      fc.record({
        verdict: fc.constantFrom(...verdict.options),
        state: fc.constantFrom(...attemptState.options),
        score: fc.double({ min: 0, max: 1, noNaN: true }),
        gateFailed: fc.boolean(),
      }),
      { maxLength: 4 },
    )
    .map((given) =>
      given.map((one, index) =>
        someDecision(index + 1, {
          verdict: one.verdict,
          attempt_state: one.state,
          score: one.score,
          gateFailed: one.gateFailed,
        }),
      ),
    );
  const faults = fc.option(
    fc.record({
      error: fc.constantFrom(...Object.values(machineFaults), "Error", "States.Timeout"),
      cause: fc.string(),
    }),
  );

  it("the row is well-formed, and exactly the valid rows have a score", () => {
    fc.assert(
      fc.property(reports, decisions, faults, fc.boolean(), fc.boolean(), (turns, decided, caught, gone, compat) => {
        const line = someLine({ compat: compat ? "uniclawbench" : null });
        const made = row({
          line,
          turns: turns.length,
          reports: turns,
          decisions: decided.slice(0, turns.length),
          fault: caught,
          executorGone: gone,
        });
        scoreRow.parse(made);
        expect(made.status).not.toBe("running");
        expect(made.score !== null).toBe(isValidStatus(made.status));
        if (made.valid) expect(made.score).not.toBeNull();
        expect(made.valid).toBe(isValidStatus(made.status) && !(compat && made.status === "executor_incomplete"));
        if (made.passed) expect(made.status === "pass" && made.score! >= line.threshold).toBe(true);
        if (caught?.error === machineFaults.unjudged) expect(made.status).toBe("unjudged");
        expect(made.reason).not.toBe("");
      }),
      { numRuns: 300 },
    );
  });
});
