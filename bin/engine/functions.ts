/** The functions of the state machines, wired for one machine: each gets a store and a table that know only its role. */

import { closeLeftOpen } from "../../lambdas/close-left-open.ts";
import { compactHandler } from "../../lambdas/compact.ts";
import { executionEndedHandler } from "../../lambdas/execution-ended.ts";
import { openTurnHandler } from "../../lambdas/open-turn.ts";
import { preflightHandler } from "../../lambdas/preflight.ts";
import { prepareHandler } from "../../lambdas/prepare.ts";
import { recordHandler } from "../../lambdas/record.ts";
import { simulateHandler } from "../../lambdas/simulate.ts";
import { superviseHandler } from "../../lambdas/supervise.ts";
import { taskStoppedHandler } from "../../lambdas/task-stopped.ts";
import { agentByName } from "../../lib/agents/registry.ts";
import type { machinePlaceholders } from "../../lib/attempt/machines.ts";
import type { TurnCredentials } from "../../lib/executor/sealed-message.ts";
import type { Runs } from "../../lib/platform/local/open-runs.ts";
import type { CheckRunner, Clock, ModelClient, Random, Role, Secrets, TaskTokens } from "../../lib/platform/ports.ts";

export interface FunctionPorts {
  runs: Runs;
  clock: Clock;
  random: Random;
  secrets: Secrets;
  models: ModelClient;
  checks: CheckRunner;
  tokens: TaskTokens;
  /** Unix socket that takes answers to turn tokens. */
  tokensSocket: string;
  stopExecutors(startedBy: string, executor: string | null, reason: string): Promise<number>;
}

/** Start of an executor, collecting of what it made, and the answer, on a machine that is busy. */
const turnMarginSeconds = 600;
/** A runner beats every minute; the first beat comes after the executor's start. */
const heartbeatSeconds = 300;
const leaseSeconds = 7 * 24 * 3600;

/** The name of each function is what the placeholder in the machines' files stands for. */
export const functionNames = {
  PreflightFunction: "preflight",
  PrepareFunction: "prepare",
  OpenTurnFunction: "open-turn",
  SuperviseFunction: "supervise",
  SimulateFunction: "simulate",
  RecordFunction: "record",
  CompactFunction: "compact",
} as const satisfies Partial<Record<(typeof machinePlaceholders)[keyof typeof machinePlaceholders][number], string>>;

export type FunctionName = (typeof functionNames)[keyof typeof functionNames];

export interface Functions {
  byName: Readonly<Record<FunctionName, (event: unknown) => Promise<unknown>>>;
  taskStopped: ReturnType<typeof taskStoppedHandler>;
  executionEnded: ReturnType<typeof executionEndedHandler>;
}

export function localFunctions(ports: FunctionPorts): Functions {
  const { clock, random, secrets, models, checks, tokens } = ports;
  const as = (role: Exclude<Role, "turn-grant">) => {
    const { objects, scores } = ports.runs.as({ role });
    return { store: objects, scores };
  };
  const grantFor = async (): Promise<TurnCredentials> => ({
    kind: "local",
    objects: ports.runs.objectsRoot,
    tokens: ports.tokensSocket,
  });
  const reaper = as("reaper");
  // A row is made with Record's rights, whoever asks for it.
  const closing = closeLeftOpen({ ...as("record"), clock });
  return {
    byName: {
      preflight: preflightHandler(as("preflight")),
      prepare: prepareHandler({
        ...as("prepare"),
        clock,
        random,
        closeLeftOpen: closing,
        imageOf: (agent) => (agentByName(agent.name)?.version === agent.version ? `local:${agent.version}` : null),
        turnMarginSeconds,
        heartbeatSeconds,
        leaseSeconds,
      }),
      "open-turn": openTurnHandler({ ...as("open-turn"), clock, random, secrets, grantFor, turnMarginSeconds }),
      supervise: superviseHandler({ store: as("supervisor").store, models, clock, checks }),
      simulate: simulateHandler({ store: as("user-simulator").store, models, clock }),
      record: recordHandler({ ...as("record"), clock }),
      compact: compactHandler(as("compact")),
    },
    taskStopped: taskStoppedHandler({ scores: reaper.scores, tokens }),
    executionEnded: executionEndedHandler({
      scores: reaper.scores,
      closeLeftOpen: closing,
      clock,
      tokens,
      stopExecutors: ports.stopExecutors,
    }),
  };
}
