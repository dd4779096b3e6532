/** What holds for all four machine files beyond what validators and the interpreter look at. */
import { describe, expect, it } from "vitest";
import { machineDefinitions, machinePlaceholders } from "../../lib/attempt/machines.ts";
import type { MachineName } from "../../lib/platform/ports.ts";
import { conversationLimits } from "../../lib/roles/conversation.ts";

interface Retrier {
  ErrorEquals: string[];
  IntervalSeconds?: number;
  BackoffRate?: number;
  MaxDelaySeconds?: number;
  MaxAttempts?: number;
}
type States = Record<string, State>;
interface State {
  Type: string;
  TimeoutSeconds?: number;
  Choices?: { Condition: string }[];
  Comment?: string;
  Retry?: Retrier[];
  Catch?: { ErrorEquals: string[]; Next: string }[];
  Next?: string;
  Default?: string;
  ItemProcessor?: { States: Record<string, State> };
}

const machines = Object.entries(machineDefinitions) as [MachineName, { States: Record<string, State> }][];

function statesOf(states: Record<string, State>): [string, State][] {
  return Object.entries(states).flatMap(([name, state]): [string, State][] => [
    [name, state],
    ...(state.ItemProcessor ? statesOf(state.ItemProcessor.States) : []),
  ]);
}

function totalWait(retrier: Retrier): number {
  const { IntervalSeconds = 1, BackoffRate = 2, MaxDelaySeconds = Number.POSITIVE_INFINITY, MaxAttempts = 3 } = retrier;
  let total = 0;
  for (let retry = 0; retry < MaxAttempts; retry++)
    total += Math.min(IntervalSeconds * BackoffRate ** retry, MaxDelaySeconds);
  return total;
}

describe("machine files", () => {
  for (const [name, machine] of machines) {
    const text = JSON.stringify(machine);

    it(`${name}: its placeholders are the ones that are promised`, () => {
      const used = new Set([...text.matchAll(/\$\{(\w+)\}/g)].map((match) => match[1]));
      expect([...used].sort()).toEqual([...machinePlaceholders[name]].sort());
    });

    it(`${name}: comments state the total wait of every retry`, () => {
      for (const [state, { Retry = [], Comment = "" }] of statesOf(machine.States)) {
        for (const seconds of Retry.map(totalWait).filter((total) => total > 0)) {
          expect(Comment, state).toContain(`= ${seconds} s`);
        }
      }
    });

    it(`${name}: no variable hides a function that is used`, () => {
      const called = new Set([...text.matchAll(/\$(\w+)\(/g)].map((match) => match[1]));
      const assigned = [...text.matchAll(/"Assign":\{((?:[^{}]|\{%.*?%\}|\{[^{}]*\})*)\}/g)].flatMap((match) =>
        [...(match[1] ?? "").matchAll(/"(\w+)":/g)].map((key) => key[1]),
      );
      expect(assigned.filter((variable) => called.has(variable))).toEqual([]);
      if (name === "attempt") expect(assigned).toContain("roundNo");
    });
  }

  it("every task state of an attempt catches everything, and once launched leads to Record and StopExecutor", () => {
    const { States: states } = machineDefinitions.attempt as { States: Record<string, State> };
    for (const [name, state] of Object.entries(states)) {
      if (state.Type !== "Task") continue;
      const last = state.Catch?.at(-1);
      expect(last?.ErrorEquals, name).toEqual(["States.ALL"]);
    }
    const next = (name: string): string | undefined => states[name]?.Catch?.at(-1)?.Next;
    expect(["Turn", "Supervise", "Simulate"].map(next)).toEqual(["Record", "Record", "Record"]);
    expect(next("Launch")).toBe("CheckLaunch");
    expect(["CheckLaunch", "NextStep", "AskSimulatorAgain"].map((choice) => states[choice]?.Default)).toEqual([
      "Record",
      "Record",
      "Record",
    ]);
    expect([next("Record"), states.Record?.Next]).toEqual(["StopExecutor", "StopExecutor"]);
  });

  it("functions that wait for models have the time for it, and the waiting ends where nothing more is begun", () => {
    const { requestMs, waitMs, totalWaitMs } = conversationLimits;
    for (const name of ["attempt", "judge"] as const) {
      for (const [state, { TimeoutSeconds, Choices = [] }] of statesOf(
        (machineDefinitions[name] as { States: States }).States,
      )) {
        if (state === "Supervise" || state === "Simulate") {
          expect(TimeoutSeconds, `${name} ${state}`).toBeGreaterThanOrEqual((requestMs + waitMs) / 1000 + 300);
          // As long as a function may run.
          expect(TimeoutSeconds, `${name} ${state}`).toBeLessThanOrEqual(900);
        }
        for (const [limit] of JSON.stringify(Choices).matchAll(/(?<=waitedSeconds < )\d+/g)) {
          expect(Number(limit), `${name} ${state}`).toBe(totalWaitMs / 1000);
        }
      }
    }
  });

  it("the Turn state is retried only where its function was never started", () => {
    const { States: states } = machineDefinitions.attempt as { States: Record<string, State> };
    expect(states.Turn?.Retry?.flatMap((retrier) => retrier.ErrorEquals)).toEqual(["Lambda.TooManyRequestsException"]);
  });
});
