import { describe, expect, it } from "vitest";
import type { ModelCallStatus } from "../../../lib/attempt/usage.ts";
import { stopReasonOf, type TurnEnd } from "../../../lib/executor/runner/stop-reason.ts";
import type { WatchdogStop } from "../../../lib/executor/runner/watchdog.ts";

const exit = (code: number | null, signal: string | null = null): TurnEnd => ({ kind: "exit", code, signal });
const stopped = (stop: WatchdogStop): TurnEnd => ({ kind: "watchdog", stop });
interface Row {
  why: string;
  end: TurnEnd;
  calls?: ModelCallStatus[];
  capReached?: boolean;
  complete?: boolean;
  expect: string;
  code?: number | null;
}

const rows: Row[] = [
  { why: "an agent that ended", end: exit(0), calls: ["ok"], complete: true, expect: "ended", code: 0 },
  { why: "an agent's own failure", end: exit(3), calls: ["ok"], expect: "ended", code: 3 },
  { why: "no model was asked", end: exit(1), expect: "ended", code: 1 },
  { why: "a 429 that it gave up on", end: exit(1), calls: ["ok", "rate_limited"], expect: "rate_limited", code: 1 },
  { why: "a 429 and exit 0 without an end", end: exit(0), calls: ["rate_limited"], expect: "rate_limited", code: 0 },
  { why: "a 429 after it had completed", end: exit(0), calls: ["ok", "rate_limited"], complete: true, expect: "ended" },
  { why: "it recovered from a 429", end: exit(1), calls: ["rate_limited", "ok"], expect: "ended" },
  { why: "it recovered from all kinds", end: exit(1), calls: ["provider_error", "timeout", "ok"], expect: "ended" },
  ...(["quota_exhausted", "provider_error", "disconnected", "timeout", "unreadable"] as const).map((status) => ({
    why: `${status} that it gave up on`,
    end: exit(1),
    calls: ["ok" as const, status],
    expect: "provider_fault",
  })),
  { why: "a bad request is the agent's own", end: exit(1), calls: ["bad_request"], expect: "ended" },
  { why: "a call that it gave up itself", end: exit(1), calls: ["ok", "cancelled"], expect: "ended" },
  {
    why: "a fault, then a call given up",
    end: exit(1),
    calls: ["provider_error", "cancelled"],
    expect: "provider_fault",
  },
  {
    why: "the last fault names the reason",
    end: exit(1),
    calls: ["provider_error", "rate_limited"],
    expect: "rate_limited",
  },
  { why: "out of memory", end: exit(null, "SIGKILL"), expect: "killed", code: 137 },
  { why: "out of memory below a shell", end: exit(137), calls: ["rate_limited"], expect: "killed", code: 137 },
  { why: "its side went away", end: { kind: "lost" }, expect: "killed", code: 137 },
  { why: "a crash by signal", end: exit(null, "SIGSEGV"), expect: "ended", code: 139 },
  { why: "no code, no signal", end: exit(null), complete: true, expect: "ended", code: null },
  { why: "the cap", end: exit(1), calls: ["ok", "capped"], capReached: true, expect: "cost_cap", code: 1 },
  { why: "the cap, and a good end", end: exit(0), calls: ["ok"], capReached: true, complete: true, expect: "cost_cap" },
  {
    why: "the cap after a fault",
    end: exit(1),
    calls: ["provider_error", "capped"],
    capReached: true,
    expect: "cost_cap",
  },
  { why: "a hang after the cap", end: stopped("stalled"), calls: ["capped"], capReached: true, expect: "cost_cap" },
  {
    why: "a timeout after the cap",
    end: stopped("turn_timeout"),
    calls: ["capped"],
    capReached: true,
    expect: "turn_timeout",
  },
  { why: "the turn's limit", end: stopped("turn_timeout"), calls: ["ok"], expect: "turn_timeout", code: null },
  { why: "the total's limit", end: stopped("global_timeout"), calls: ["ok"], expect: "global_timeout", code: null },
  { why: "silence", end: stopped("stalled"), calls: ["ok"], expect: "stalled", code: null },
  { why: "no start", end: stopped("no_start"), expect: "no_start", code: null },
  {
    why: "an open call at the limit",
    end: stopped("turn_timeout"),
    calls: ["ok", "cancelled"],
    expect: "turn_timeout",
  },
  {
    why: "an open call after a fault",
    end: stopped("turn_timeout"),
    calls: ["timeout", "cancelled"],
    expect: "turn_timeout",
  },
  { why: "429 until the limit", end: stopped("turn_timeout"), calls: ["ok", "rate_limited"], expect: "rate_limited" },
  {
    why: "waiting after a 500 until the limit",
    end: stopped("global_timeout"),
    calls: ["provider_error"],
    expect: "provider_fault",
  },
  { why: "silence after a 500", end: stopped("stalled"), calls: ["provider_error"], expect: "provider_fault" },
  {
    why: "SIGTERM",
    end: { kind: "interrupted" },
    calls: ["rate_limited"],
    capReached: true,
    expect: "interrupted",
    code: null,
  },
  { why: "the runner's deadline", end: stopped("deadline"), calls: ["rate_limited"], expect: "interrupted" },
];

describe("the stop reason", () => {
  it.each(rows)("of $why is $expect", (row) => {
    const found = stopReasonOf({
      end: row.end,
      calls: row.calls ?? [],
      capReached: row.capReached ?? false,
      complete: row.complete ?? false,
    });
    expect(found.stopReason).toBe(row.expect);
    if (row.code !== undefined) expect(found.code).toBe(row.code);
  });
});
