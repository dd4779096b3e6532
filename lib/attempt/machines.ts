/**
 * The four state machines, as data. Both engines run these very files: Step Functions after substitution of the
 * placeholders by the stack, the interpreter after substitution by the local wiring.
 */
import type { MachineName } from "../platform/ports.ts";
import attempt from "./attempt.asl.json" with { type: "json" };
import judge from "./judge.asl.json" with { type: "json" };
import lane from "./lane.asl.json" with { type: "json" };
import sweep from "./sweep.asl.json" with { type: "json" };

export const machineDefinitions: Record<MachineName, unknown> = { attempt, lane, sweep, judge };

/**
 * What stands in `${…}` in each file. Lists are separated by one space. `TaskDefinitions`: `<agent>=<task definition>`
 * for each agent, in the cloud an ARN with its revision.
 */
export const machinePlaceholders = {
  attempt: [
    "PrepareFunction",
    "OpenTurnFunction",
    "SuperviseFunction",
    "SimulateFunction",
    "RecordFunction",
    "Cluster",
    "TaskDefinitions",
    "Subnets",
    "SecurityGroup",
  ],
  lane: ["AttemptMachine", "ResultsBucket"],
  sweep: ["PreflightFunction", "LaneMachine", "CompactFunction"],
  judge: ["SuperviseFunction", "RecordFunction"],
} as const satisfies Record<MachineName, readonly string[]>;

const padded = (n: number): string => String(n).padStart(2, "0");

/** Name of an attempt's execution: a double start is a no-op, a resume is the next generation. */
export function attemptExecutionName(attempt: string, generation: number): string {
  return `${attempt}-g${padded(generation)}`;
}

/** The attempt and generation that an execution's name says; null for a name of another machine. */
export function attemptOfExecutionName(name: string): { attempt: string; generation: number } | null {
  const match = /^([a-z2-7]{26})-g(\d{2,})$/.exec(name);
  return match?.[1] && match[2] ? { attempt: match[1], generation: Number(match[2]) } : null;
}
