/** What the end of an agent's turn means for the attempt (UniClawBench's signals, from our stop reasons). */
import { z } from "zod";
import type { TurnReport } from "../trajectory/turn-report.ts";
import type { StopReason } from "./vocabulary.ts";

export const terminalReason = z.enum(["", "global-timeout", "followup-limit-reached"]);
export type TerminalReason = z.infer<typeof terminalReason>;

export interface StopSignals {
  rate_limit: boolean;
  infra_error: "" | "infra_error" | "pre_exec_failed";
  /** 124: a limit of ours ended the turn. Null: the agent's exit says nothing. */
  agent_exit_code: number | null;
  /** Set where no turn can follow. */
  terminal_reason: TerminalReason;
  /** Whether the turn is supervised: every turn that ran and was not lost to a fault. */
  supervise: boolean;
}

const timeoutExit = 124;
const killedExit = 137;

/** @param exitCode the agent's own, null where it was ended by us or by a signal */
export function stopSignals(stop: StopReason, turn: number, exitCode: number | null): StopSignals {
  const ran = { rate_limit: false, infra_error: "", terminal_reason: "", supervise: true } as const;
  const lost = { ...ran, agent_exit_code: null, supervise: false } as const;
  switch (stop) {
    case "ended":
      return { ...ran, agent_exit_code: exitCode };
    case "turn_timeout":
    case "stalled":
      return { ...ran, agent_exit_code: timeoutExit };
    case "global_timeout":
      return { ...ran, agent_exit_code: timeoutExit, terminal_reason: "global-timeout" };
    case "no_start":
      // On the first turn nothing of the agent has run, so it cannot be to blame.
      return turn === 1 ? { ...lost, infra_error: "infra_error" } : { ...ran, agent_exit_code: timeoutExit };
    case "cost_cap":
      return { ...ran, agent_exit_code: exitCode, terminal_reason: "followup-limit-reached" };
    case "killed":
      return { ...ran, agent_exit_code: exitCode ?? killedExit };
    case "rate_limited":
      return { ...lost, rate_limit: true };
    case "provider_fault":
    case "interrupted":
      return { ...lost, infra_error: "infra_error" };
  }
}

export function signalsOfTurn(report: Pick<TurnReport, "turn" | "exit">): StopSignals {
  return stopSignals(report.exit.stopReason, report.turn, report.exit.code);
}

/** Whether a limit of ours, and not the agent, ended the turn. */
export function timedOut(stop: StopReason): boolean {
  return stop === "turn_timeout" || stop === "stalled" || stop === "global_timeout" || stop === "no_start";
}
