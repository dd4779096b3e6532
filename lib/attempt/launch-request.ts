/**
 * What the attempt machine's Launch state asks of `ecs:runTask`, and how a launcher on one machine understands it: the
 * same request goes to Fargate and to a local launcher. Secrets stand in the runner's environment, the rest in tags.
 */
import { z } from "zod";
import type { LaunchError, LaunchedExecutor, LaunchSpec } from "../platform/ports.ts";
import { network } from "./vocabulary.ts";

/** Environment names of the two containers' override. */
const launchEnvironment = {
  /** `<attempt>/<NN>`. */
  try: "PROCTOR_TRY",
  mailbox: "PROCTOR_MAILBOX",
  sealKey: "PROCTOR_SEAL_KEY",
  turnSecret: "PROCTOR_TURN_SECRET",
  /** Name of the executor provider's key; empty where none is needed. */
  keyName: "PROCTOR_KEY_NAME",
} as const;

const launchTags = {
  sweep: "proctor:sweep",
  task: "proctor:task",
  digest: "proctor:digest",
  agent: "proctor:agent",
  agentVersion: "proctor:agent-version",
  network: "proctor:network",
} as const;

/** Fargate keeps startedBy up to this length; it is all that a stopped task still says of its try. */
const startedByLength = 128;

export const runTaskRequest = z.object({
  Cluster: z.string().min(1),
  TaskDefinition: z.string().min(1),
  Count: z.literal(1),
  ClientToken: z.string().min(1).max(64),
  StartedBy: z.string().min(1).max(startedByLength),
  CapacityProviderStrategy: z.array(z.object({ CapacityProvider: z.string(), Weight: z.number() })),
  Tags: z.array(z.object({ Key: z.string().min(1).max(128), Value: z.string().max(256) })),
  Overrides: z.object({
    ContainerOverrides: z.array(
      z.object({ Name: z.string(), Environment: z.array(z.object({ Name: z.string(), Value: z.string() })) }),
    ),
  }),
});

export const stopTaskRequest = z.object({ Cluster: z.string(), Task: z.string().min(1), Reason: z.string() });

/** The request as a launcher's port takes it. @throws ZodError for a request that is not the Launch state's */
export function launchSpecOf(request: unknown): LaunchSpec {
  const asked = runTaskRequest.parse(request);
  const runner = new Map(
    asked.Overrides.ContainerOverrides.filter((container) => container.Name === "runner").flatMap((container) =>
      container.Environment.map((variable) => [variable.Name, variable.Value] as const),
    ),
  );
  const tags = new Map(asked.Tags.map((tag) => [tag.Key, tag.Value] as const));
  const text = (from: Map<string, string>, name: string): string =>
    z.string({ error: name }).min(1).parse(from.get(name));
  return {
    startedBy: asked.StartedBy,
    clientToken: asked.ClientToken,
    task: { task: text(tags, launchTags.task), digest: text(tags, launchTags.digest) },
    agent: { name: text(tags, launchTags.agent), version: text(tags, launchTags.agentVersion) },
    network: network.parse(tags.get(launchTags.network)),
    mailbox: text(runner, launchEnvironment.mailbox),
    sealKey: text(runner, launchEnvironment.sealKey),
    turnSecret: text(runner, launchEnvironment.turnSecret),
    keyName: runner.get(launchEnvironment.keyName) || null,
  };
}

/** The part of runTask's answer that the machine reads. */
export interface RunTaskAnswer {
  Tasks: { TaskArn: string; StartedBy: string }[];
  Failures: { Reason: string }[];
}

export function launchedAnswer(executor: LaunchedExecutor, startedBy: string): RunTaskAnswer {
  return { Tasks: [{ TaskArn: executor.id, StartedBy: startedBy }], Failures: [] };
}

/** A launch that failed, as Fargate would say it: want of capacity is an answer, the rest are errors by name. */
export function launchFailure(error: LaunchError): { answer: RunTaskAnswer } | { error: string; cause: string } {
  switch (error.kind) {
    case "capacity":
      return { answer: { Tasks: [], Failures: [{ Reason: `RESOURCE: ${error.message}` }] } };
    case "throttle":
      return { error: "Ecs.ThrottlingException", cause: error.message };
    case "configuration":
      return { error: "Ecs.ClientException", cause: error.message };
  }
}

/** The try that an executor was started for, from its `startedBy`; null when it is not one of ours. */
export function tryOfStartedBy(startedBy: string): { attempt: string; try: number } | null {
  const match = /^([a-z2-7]{26})\/(\d{2,})$/.exec(startedBy);
  return match?.[1] && match[2] ? { attempt: match[1], try: Number(match[2]) } : null;
}
