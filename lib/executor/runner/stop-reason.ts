/**
 * Why a turn ended, from how it ended and from what its model calls came to. Pure; the table is in the tests.
 *
 * A model call's fault counts when it is **unrecovered**: of the calls that came to a result (a call that was cut by its
 * caller or by the end of the turn came to none), the last one is a fault of the provider's: rate_limited, or
 * quota_exhausted, provider_error, disconnected, timeout, unreadable. bad_request is the agent's own doing. An agent that
 * got an answer after a fault has recovered from it. In this order:
 *
 *  1. we ended it (SIGTERM, the runner's own deadline)            interrupted
 *  2. the agent was killed from outside (SIGKILL, exit 137), or
 *     its side went away with it                                  killed: out of memory, say
 *  3. a watchdog's stop while no call is open, after an
 *     unrecovered fault: the agent waited for a model in vain     rate_limited or provider_fault
 *  4. turn or global timeout                                      turn_timeout, global_timeout
 *  5. the cap is reached                                          cost_cap
 *  6. no start, stall                                             no_start, stalled
 *  7. exit after an unrecovered fault, with a code other than 0
 *     or without having completed                                 rate_limited or provider_fault
 *  8. exit                                                        ended
 */
import { constants } from "node:os";
import type { ModelCallStatus } from "../../attempt/usage.ts";
import type { StopReason } from "../../attempt/vocabulary.ts";
import type { WatchdogStop } from "./watchdog.ts";

export type TurnEnd =
  | { kind: "exit"; code: number | null; signal: string | null }
  | { kind: "watchdog"; stop: WatchdogStop }
  /** SIGTERM to the runner. */
  | { kind: "interrupted" }
  /** The connection to the turn server broke before the agent's exit was told. */
  | { kind: "lost" };

export interface TurnEvidence {
  end: TurnEnd;
  /** Results of the model calls, in the order in which they ended. */
  calls: readonly ModelCallStatus[];
  capReached: boolean;
  /** The agent's own rule says that it completed the turn. */
  complete: boolean;
}

export function stopReasonOf(turn: TurnEvidence): { stopReason: StopReason; code: number | null } {
  const { end, capReached } = turn;
  const fault = unrecoveredFault(turn.calls);
  switch (end.kind) {
    case "interrupted":
      return { stopReason: "interrupted", code: null };
    case "lost":
      return { stopReason: "killed", code: 137 };
    case "watchdog": {
      const openCall = turn.calls.at(-1) === "cancelled";
      if (end.stop === "deadline") return { stopReason: "interrupted", code: null };
      if (fault && !openCall) return { stopReason: fault, code: null };
      if (end.stop === "turn_timeout" || end.stop === "global_timeout") return { stopReason: end.stop, code: null };
      return { stopReason: capReached ? "cost_cap" : end.stop, code: null };
    }
    case "exit": {
      const code = end.code ?? exitCodeOfSignal(end.signal);
      if (code === 137) return { stopReason: "killed", code };
      if (capReached) return { stopReason: "cost_cap", code };
      if (fault && (code !== 0 || !turn.complete)) return { stopReason: fault, code };
      return { stopReason: "ended", code };
    }
  }
}

/** The stop reason that the last result of a model call asks for, or null. */
function unrecoveredFault(calls: readonly ModelCallStatus[]): "rate_limited" | "provider_fault" | null {
  const last = calls.findLast((status) => status !== "cancelled");
  switch (last) {
    case "rate_limited":
      return "rate_limited";
    case "quota_exhausted":
    case "provider_error":
    case "disconnected":
    case "timeout":
    case "unreadable":
      return "provider_fault";
    case "ok":
    case "bad_request":
    case "capped":
    case undefined:
      return null;
  }
}

/** As a shell tells it: 128 and the signal's number. Without code and signal there is no exit code. */
function exitCodeOfSignal(signal: string | null): number | null {
  if (signal === null) return null;
  const number = (constants.signals as Record<string, number | undefined>)[signal];
  return number === undefined ? 128 : 128 + number;
}
