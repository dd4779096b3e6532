/**
 * The contract tables: inputs with the right answers, run through the rules. A table is a JSON file of rows; the form of
 * a row is a schema here.
 */
import { z } from "zod";
import { completionOf } from "../../lib/attempt/completion.ts";
import { normaliseDecision, type RawDecision } from "../../lib/attempt/decision-rule.ts";
import { outcome } from "../../lib/attempt/outcome.ts";
import { normaliseStatus } from "../../lib/attempt/status-names.ts";
import { stopSignals } from "../../lib/attempt/stop-signals.ts";
import { attemptState, stopReason, verdict } from "../../lib/attempt/vocabulary.ts";
import { feedbackLines } from "../../lib/roles/feedback.ts";
import { type Problem, ProblemsError, shown } from "../../lib/tasks/problem.ts";
import { openClawEvents } from "../../lib/trajectory/openclaw-transcript.ts";
import { statisticsForm } from "./statistics-table.ts";

/** One row, run. */
export interface CaseResult {
  /** `12` in a list, `wilson[3]` in a table of several lists. */
  index: string;
  expected: unknown;
  got: unknown;
}

/** A form of table: reads the whole of a JSON value and runs each row. */
export type TableForm = (json: unknown) => { results: CaseResult[] } | { issues: z.core.$ZodIssue[] };

const score = z.number().min(0).max(1);
const exitCode = z.number().int().nullable();
const expected = z.record(z.string(), z.unknown());

const outcomeRow = z.object({
  signals: z.object({
    verdict: z.string(),
    attempt_state: z.string(),
    rate_limit: z.boolean(),
    infra_error: z.enum(["", "infra_error", "pre_exec_failed"]),
    completion_gate_failed: z.boolean(),
    executor_completed_ever: z.boolean(),
    agent_exit_code: exitCode,
    terminal_reason: z.string(),
    score,
    threshold: score,
  }),
  expect: expected,
});

const completionRow = z.object({
  agent: z.string(),
  exit_code: exitCode,
  events: z.array(z.unknown()),
  expect: expected,
});

const decisionRow = z.object({
  turn: z.number().int().positive(),
  maxFollowups: z.number().int().nonnegative(),
  decision: z.object({
    verdict,
    attempt_state: attemptState,
    recoverable: z.boolean(),
    rationale: z.string().default(""),
    guidance_tags: z.array(z.string()).default([]),
  }),
  expect: expected,
  /** Left out where a table is about Proctor's own rule alone. */
  compatUniclawbench: expected.default({}),
});

const stopReasonRow = z.object({
  stopReason,
  turn: z.number().int().positive(),
  exitCode,
  expect: expected,
});

const feedbackRow = z.object({ candidate_feedback: z.string(), expect: expected });

const statusRow = z.tuple([z.string().nullable(), z.string()]);

export const tables = {
  outcome: list(outcomeRow, (row) => [row.expect, outcome(row.signals, row.signals.score, row.signals.threshold)]),
  completion: list(completionRow, (row) => {
    const judged = completionOf(row.agent, openClawEvents(row.events, "transcript.jsonl"), row.exit_code);
    return [row.expect, { completed: judged.complete }];
  }),
  decision: list(decisionRow, (row) => {
    const raw: RawDecision = row.decision;
    const place = { turn: row.turn, maxFollowups: row.maxFollowups };
    return [
      { expect: row.expect, compatUniclawbench: row.compatUniclawbench },
      {
        expect: normaliseDecision(raw, { ...place, compat: null }),
        compatUniclawbench: normaliseDecision(raw, { ...place, compat: "uniclawbench" }),
      },
    ];
  }),
  "stop-reasons": list(stopReasonRow, (row) => [row.expect, stopSignals(row.stopReason, row.turn, row.exitCode)]),
  feedback: list(feedbackRow, (row) => {
    const lines = feedbackLines(row.candidate_feedback);
    return [row.expect, { lines, fallback: lines.length === 0 }];
  }),
  "status-normalise": list(statusRow, ([name, status]) => [status, normaliseStatus(name)]),
  statistics: statisticsForm,
} satisfies Record<string, TableForm>;

export type TableName = keyof typeof tables;
export const tableNames = Object.keys(tables) as TableName[];

/**
 * Runs all rows of a table.
 * @returns how many there are, and those whose result is not the expected one
 * @throws ProblemsError when the value is not of the table's form
 */
export function runTable(name: TableName, file: string, json: unknown): { rows: number; differing: CaseResult[] } {
  const read = tables[name](json);
  if ("issues" in read) {
    throw new ProblemsError(
      read.issues.map((issue): Problem => {
        const at = issue.path.reduce<unknown>(
          (value, step) => (typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined),
          json,
        );
        return {
          file,
          field: issue.path.map(String).join("."),
          severity: "error",
          found: shown(at),
          expected: `a row of a ${name} table (${issue.message})`,
        };
      }),
    );
  }
  const tolerance = name === "statistics" ? 1e-9 : 0;
  return {
    rows: read.results.length,
    differing: read.results.filter((row) => !agrees(row.expected, row.got, tolerance)),
  };
}

function list<Row extends z.ZodType>(
  rowSchema: Row,
  run: (row: z.output<Row>) => [expected: unknown, got: unknown],
): TableForm {
  return (json) => {
    const parsed = z.array(rowSchema).safeParse(json);
    if (!parsed.success) return { issues: parsed.error.issues };
    return {
      results: parsed.data.map((row, index) => {
        const [want, got] = run(row);
        return { index: String(index), expected: want, got };
      }),
    };
  };
}

/** Whether `got` has all that is expected; members that a table does not name are not compared. */
export function agrees(want: unknown, got: unknown, tolerance: number): boolean {
  if (typeof want === "number" && typeof got === "number") return Math.abs(want - got) <= tolerance;
  if (Array.isArray(want)) {
    return (
      Array.isArray(got) &&
      want.length === got.length &&
      want.every((item, index) => agrees(item, got[index], tolerance))
    );
  }
  if (typeof want === "object" && want !== null) {
    if (typeof got !== "object" || got === null) return false;
    return Object.entries(want).every(([name, value]) => agrees(value, Reflect.get(got, name), tolerance));
  }
  return want === got;
}
