import { describe, expect, it } from "vitest";
import { attemptRow } from "../../lib/attempt/attempt-row.ts";
import { type LeftOpen, type LeftOpenEnd, leftOpenRow } from "../../lib/attempt/left-open.ts";
import { goesOn, someDecision, someFacts, someFollowUp, someLine, someReport, started } from "./facts.ts";

const died: LeftOpenEnd = { status: "infra_error", reason: "interrupted" };
const cancelled: LeftOpenEnd = { status: "cancelled", reason: "by the user" };
const used = {
  v: 1,
  role: "supervisor",
  turn: 1,
  model: "j",
  ms: 1,
  status: "ok",
  tokens: { input: 1, cached: 0, output: 1 },
  usd: 0.25,
} as const;

/** Found three days after its process died. */
function left(change: Partial<LeftOpen> = {}): LeftOpen {
  const now = started + 3 * 86_400_000;
  return { ...someFacts(), wholeTurns: 1, now, ...change };
}

describe("a try that nobody was left to record", () => {
  it("gets the row of Record when its last turn was decided and the attempt stops there", () => {
    for (const end of [died, cancelled]) {
      const { wall_seconds, ended, ...row } = leftOpenRow(left(), end);
      const { wall_seconds: _, ended: __, ...recorded } = attemptRow(someFacts());
      expect(row).toEqual(recorded);
      expect(row).toMatchObject({ status: "pass", valid: true, score: 1 });
      expect(wall_seconds).toBe(11);
      expect(ended).toBe("2026-03-04T10:00:00.000Z");
    }
    const failed = left({
      decisions: [someDecision(1, { verdict: "fail", attempt_state: "terminal_failure", score: 0 })],
    });
    expect(leftOpenRow(failed, died)).toMatchObject({ status: "fail", valid: true });
  });

  it("is unjudged when its last whole turn has no decision, and cancelled where that was wanted", () => {
    const undecided = left({ decisions: [], usage: [used] });
    expect(leftOpenRow(undecided, died)).toMatchObject({
      status: "unjudged",
      turns: 1,
      score: null,
      usd: { executor: 0.01, supervisor: 0.25 },
    });
    expect(leftOpenRow(undecided, cancelled)).toMatchObject({
      status: "cancelled",
      reason: "by the user",
      usd: { executor: 0.01, supervisor: 0.25 },
    });
    const later = left({
      wholeTurns: 2,
      reports: [someReport(1), someReport(2)],
      decisions: [someDecision(1, goesOn)],
      followUps: [someFollowUp(2)],
    });
    expect(leftOpenRow(later, died)).toMatchObject({ status: "unjudged", turns: 2, followups: 1 });
  });

  it("is what it was said to be when a turn was still to come, and keeps what the whole ones cost", () => {
    const open = left({ decisions: [someDecision(1, goesOn)], followUps: [someFollowUp(2)] });
    expect(leftOpenRow(open, died)).toMatchObject({
      status: "infra_error",
      reason: "interrupted",
      turns: 1,
      usd: { executor: 0.01 },
    });
    expect(leftOpenRow(left({ wholeTurns: 0, reports: [], decisions: [] }), died)).toMatchObject({
      status: "infra_error",
      turns: 0,
    });
  });

  it("is no result when evidence is damaged, or when nobody knows its line", () => {
    // Turn 2 has a manifest, and its report cannot be read.
    const damaged = left({ wholeTurns: 2, decisions: [someDecision(1), someDecision(2)] });
    expect(leftOpenRow(damaged, died)).toMatchObject({ status: "infra_error", reason: "interrupted" });
    expect(leftOpenRow(left({ line: null }), died)).toMatchObject({ status: "infra_error", usd: { executor: 0.01 } });
  });

  it("goes by the attempt's limits: a continue on the last turn ends it", () => {
    const line = someLine({ limits: { ...someLine().limits, maxFollowups: 0 } });
    const spent = left({ line, decisions: [someDecision(1, { ...goesOn, score: 0.2 })] });
    expect(leftOpenRow(spent, died)).toMatchObject({ status: "budget_exhausted", valid: true });
  });
});
