import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attemptScore, roundScore, weightedScore } from "../../lib/attempt/credit.ts";
import { applyGate, verdictOfChecks, verdictOfModel } from "../../lib/attempt/decision-rule.ts";
import { nextStep, nextStepOf } from "../../lib/attempt/next-step.ts";
import { outcome, promote, statusOf } from "../../lib/attempt/outcome.ts";
import { jitterUnit, retryAfter } from "../../lib/attempt/retry-rule.ts";
import { exportedStatus } from "../../lib/attempt/status-names.ts";
import { stopSignals } from "../../lib/attempt/stop-signals.ts";
import { errorStatus, rowStatus, stopReason } from "../../lib/attempt/vocabulary.ts";
import { someDecision, someLine, someReport } from "./facts.ts";

const early = { turn: 1, maxFollowups: 2, compat: null } as const;
const lastTurn = { turn: 3, maxFollowups: 2, compat: null } as const;

describe("credit", () => {
  it("caps by minimum after the sum, on six decimals", () => {
    const checkpoints = [
      { weight: 0.2, credit: 1 },
      { weight: 0.2, credit: 0 },
      { weight: 0.6, credit: 1 },
    ];
    expect(weightedScore(checkpoints, [])).toEqual({ score: 0.8, uncapped: 0.8, cap: null });
    const caps = [
      { id: "cap-2", max: 0.7 },
      { id: "cap-1", max: 0.5 },
    ];
    expect(weightedScore(checkpoints, caps)).toEqual({ score: 0.5, uncapped: 0.8, cap: caps[1] });
    expect(weightedScore(checkpoints, [{ id: "c", max: 0.9 }]).cap).toBeNull();
    expect(
      weightedScore(
        [
          { weight: 0.1, credit: 1 / 3 },
          { weight: 0.9, credit: 0 },
        ],
        [],
      ).score,
    ).toBe(0.033333);
  });

  it("full credit is 1 although three thirds are written as 0.333", () => {
    const thirds = [0.333, 0.333, 0.333].map((weight) => ({ weight, credit: 1 }));
    expect(weightedScore(thirds, []).score).toBe(1);
    expect(weightedScore([], []).score).toBe(0);
  });

  it("stays within 0..1 and never rises by a cap", () => {
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.record({ weight: unit, credit: unit })), fc.array(unit), (checkpoints, caps) => {
        const { score, uncapped } = weightedScore(
          checkpoints,
          caps.map((max, index) => ({ id: String(index), max })),
        );
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(uncapped);
        expect(uncapped).toBeLessThanOrEqual(1);
        expect(roundScore(score)).toBe(score);
        for (const max of caps) expect(score).toBeLessThanOrEqual(roundScore(max));
      }),
    );
  });

  it("the attempt's score is the last decision's unless time ran out", () => {
    const turns = [
      { complete: true, score: 0.5 },
      { complete: false, score: 0.9 },
      { complete: true, score: 0.4 },
    ];
    expect(attemptScore(turns, false, null)).toBe(0.4);
    expect(attemptScore(turns, true, null)).toBe(0.5);
    expect(attemptScore([{ complete: false, score: 0.9 }], true, null)).toBe(0);
    expect(attemptScore(turns, false, "uniclawbench")).toBe(0.9);
    expect(
      attemptScore(
        [
          { complete: true, score: 0.6 },
          { complete: true, score: null },
        ],
        false,
        null,
      ),
    ).toBe(0.6);
  });
});

describe("verdict when code decides", () => {
  it("checks alone pass at the threshold and never give up", () => {
    expect(verdictOfChecks(0.9, 0.9, false, early).verdict).toBe("pass");
    expect(verdictOfChecks(0, 0.9, true, early)).toEqual({
      verdict: "continue",
      attempt_state: "complete_but_failed",
      recoverable: true,
    });
    expect(verdictOfChecks(0.89, 0.9, false, lastTurn)).toEqual({
      verdict: "continue",
      attempt_state: "incomplete",
      recoverable: false,
    });
  });

  it("a model's pass below the threshold goes on while it can, then fails; compat keeps it", () => {
    const pass = {
      verdict: "pass",
      attempt_state: "complete_and_passed",
      recoverable: false,
      rationale: "",
      guidance_tags: [],
    } as const;
    expect(verdictOfModel(pass, 0.89, 0.9, true, early)).toMatchObject({ verdict: "continue", recoverable: true });
    expect(verdictOfModel(pass, 0.89, 0.9, true, lastTurn)).toEqual({
      verdict: "fail",
      attempt_state: "complete_but_failed",
      recoverable: false,
    });
    expect(verdictOfModel(pass, 0.89, 0.9, true, { ...lastTurn, compat: "uniclawbench" }).verdict).toBe("pass");
    expect(verdictOfModel(pass, 0.9, 0.9, true, lastTurn).verdict).toBe("pass");
  });

  it("a model's lower verdict is not raised by the score", () => {
    const fail = {
      verdict: "fail",
      attempt_state: "terminal_failure",
      recoverable: false,
      rationale: "no",
      guidance_tags: [],
    } as const;
    expect(verdictOfModel(fail, 1, 0.9, true, early).verdict).toBe("fail");
  });

  it("the gate holds back a pass on a turn that the agent did not end", () => {
    const pass = { verdict: "pass", attempt_state: "complete_and_passed", recoverable: false } as const;
    expect(applyGate(pass, true, lastTurn)).toEqual({ ...pass, gateFailed: false });
    expect(applyGate(pass, false, early)).toEqual({
      verdict: "continue",
      attempt_state: "incomplete",
      recoverable: true,
      gateFailed: true,
    });
    expect(applyGate(pass, false, lastTurn)).toMatchObject({ verdict: "fail", recoverable: false, gateFailed: true });
    const goesOn = { verdict: "continue", attempt_state: "in_progress", recoverable: true } as const;
    expect(applyGate(goesOn, false, early)).toEqual({ ...goesOn, gateFailed: false });
  });
});

describe("next step", () => {
  const base = {
    verdict: "continue",
    turn: 1,
    terminalReason: "",
    secondsUsed: 10,
    usdUsed: 0,
    tokensUsed: 0,
    limits: { maxFollowups: 2, totalSeconds: 100, usdPerAttempt: 1, tokensPerAttempt: 1000 },
  } as const;

  it("goes on while something is left of everything", () => {
    expect(nextStep(base)).toEqual({ next: "continue" });
  });

  it.each([
    [{ verdict: "pass" }, "passed", ""],
    [{ verdict: "fail" }, "failed", ""],
    [{ turn: 3 }, "followups_used", "followup-limit-reached"],
    [{ secondsUsed: 100 }, "global_timeout", "global-timeout"],
    [{ terminalReason: "global-timeout" }, "global_timeout", "global-timeout"],
    [{ usdUsed: 1 }, "cost_cap", "followup-limit-reached"],
    [{ tokensUsed: 1000 }, "token_cap", "followup-limit-reached"],
    [{ terminalReason: "followup-limit-reached" }, "cost_cap", "followup-limit-reached"],
  ] as const)("%o stops: %s", (change, why, terminalReason) => {
    expect(nextStep({ ...base, ...change })).toEqual({ next: "stop", why, terminalReason });
  });

  it("sums over the turns up to the one decided on", () => {
    const reports = [someReport(1, { executorSeconds: 200 }), someReport(2, { executorSeconds: 150 })];
    const goesOn = { verdict: "continue" } as const;
    expect(nextStepOf(someLine(), reports, someDecision(1, goesOn))).toEqual({ next: "continue" });
    expect(nextStepOf(someLine(), reports, someDecision(2, goesOn))).toMatchObject({ why: "global_timeout" });
  });
});

describe("retries", () => {
  const retries = { infra: 2, rateLimit: 1 };
  const following = (status: (typeof rowStatus.options)[number], earlier: (typeof rowStatus.options)[number][] = []) =>
    retryAfter({ status, earlier, retries, unit: 0 });

  it("each kind of fault has its own count", () => {
    expect(following("infra_error").next).toBe("retry");
    expect(following("pre_exec_failed", ["infra_error"]).next).toBe("retry");
    expect(following("infra_error", ["infra_error", "pre_exec_failed"]).next).toBe("done");
    expect(following("rate_limit", ["infra_error", "infra_error"]).next).toBe("retry");
    expect(following("rate_limit", ["rate_limit"]).next).toBe("done");
  });

  it("only faults that the agent did not cause run again, and unjudged never does", () => {
    const again = rowStatus.options.filter((status) => following(status).next === "retry");
    expect(again.sort()).toEqual(["infra_error", "pre_exec_failed", "rate_limit"]);
  });

  it("delays double up to a limit; the unit number places them in their upper half", () => {
    const delay = (faults: number, unit: number): number =>
      retryAfter({
        status: "infra_error",
        earlier: Array(faults - 1).fill("infra_error"),
        retries: { infra: 99, rateLimit: 0 },
        unit,
      }).delaySeconds;
    expect([1, 2, 3, 4].map((faults) => delay(faults, 0))).toEqual([2, 4, 8, 16]);
    expect(delay(1, 0.999)).toBe(4);
    expect(delay(60, 0)).toBe(150);
    const unit = jitterUnit("a".repeat(26), 1);
    expect(unit).toBe(jitterUnit("a".repeat(26), 1));
    expect(unit).toBeGreaterThanOrEqual(0);
    expect(unit).toBeLessThan(1);
    expect(unit).not.toBe(jitterUnit("a".repeat(26), 2));
  });
});

describe("status", () => {
  it("promotion never touches faults, fails and what Proctor adds", () => {
    const open = ["pass", "budget_exhausted", "global_timeout"];
    for (const status of [...rowStatus.options, ...errorStatus.options]) {
      expect(promote(status, 1, 0.5)).toBe(open.includes(status) ? "pass" : status);
      expect(promote(status, 0.4, 0.5)).toBe(status);
      expect(promote(status, null, 0)).toBe(status);
    }
  });

  it("every combination of signals has one status, and passed needs the score", () => {
    const signals = fc.record({
      verdict: fc.constantFrom("", "pass", "continue", "fail"),
      attempt_state: fc.constantFrom("", "in_progress", "complete_and_passed", "terminal_failure"),
      rate_limit: fc.boolean(),
      infra_error: fc.constantFrom("" as const, "infra_error" as const, "pre_exec_failed" as const),
      completion_gate_failed: fc.boolean(),
      executor_completed_ever: fc.boolean(),
      agent_exit_code: fc.constantFrom(null, 0, 1, 124),
      terminal_reason: fc.constantFrom("", "global-timeout", "followup-limit-reached"),
    });
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(signals, unit, unit, (given, score, threshold) => {
        const { status, passed } = outcome(given, score, threshold);
        expect(rowStatus.options).toContain(status);
        expect(passed).toBe(status === "pass" && score >= threshold);
        if (status !== "pass") expect(status).toBe(statusOf(given));
      }),
    );
  });

  it("every stop reason has signals; a turn lost to a fault is not supervised", () => {
    for (const stop of stopReason.options) {
      const signals = stopSignals(stop, 2, 1);
      expect(signals.supervise).toBe(!signals.rate_limit && signals.infra_error === "");
    }
  });

  it("statuses of ours have names that the original's tools know", () => {
    expect(["unjudged", "cost_stopped", "cancelled", "fail"].map((s) => exportedStatus(s as "fail"))).toEqual([
      "infra_error",
      "missing",
      "missing",
      "fail",
    ]);
  });
});
