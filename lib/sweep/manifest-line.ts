/**
 * One planned attempt: a line of a sweep's manifest and the input of the attempt machine. Deterministic: no time, no
 * random, no parent's id, because executions join by name only where their input is the same.
 */
import { z } from "zod";
import { price } from "../attempt/usage.ts";
import { language, network } from "../attempt/vocabulary.ts";

/** A model of a provider, resolved: everything but the key itself, which is looked up by `keyName` where it is used. */
const providerCommon = { name: z.string().min(1), provider: z.string().min(1), price };
export const modelChoice = z.discriminatedUnion("api", [
  z.strictObject({
    ...providerCommon,
    api: z.enum(["chat", "responses", "messages"]),
    baseUrl: z.url(),
    keyName: z.string().nullable(),
  }),
  /** `socket`: Unix socket of the server of scripted models. `script`: folder of turns that it serves for this model. */
  z.strictObject({ ...providerCommon, api: z.literal("scripted"), socket: z.string(), script: z.string() }),
]);
export type ModelChoice = z.infer<typeof modelChoice>;

export const effort = z.enum(["low", "medium", "high"]);

export const agentChoice = z.strictObject({
  name: z.string().min(1),
  version: z.string().min(1),
  options: z.record(z.string(), z.unknown()),
});
export type AgentChoice = z.infer<typeof agentChoice>;

/** `checks`: checkpoints decided by code alone. */
const supervisorChoice = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("checks") }),
  z.strictObject({ kind: z.literal("model"), model: modelChoice, effort }),
]);
export type SupervisorChoice = z.infer<typeof supervisorChoice>;

/** `none`: the fixed sentence of the task's language is sent. */
const simulatorChoice = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("none") }),
  z.strictObject({ kind: z.literal("model"), model: modelChoice }),
]);
export type SimulatorChoice = z.infer<typeof simulatorChoice>;

/** Limits in force for one attempt, in seconds, dollars and tokens; null: no limit of that kind. */
const attemptLimits = z.strictObject({
  turnSeconds: z.number().positive(),
  totalSeconds: z.number().positive(),
  noStartSeconds: z.number().positive(),
  stallSeconds: z.number().positive(),
  maxFollowups: z.number().int().nonnegative(),
  usdPerAttempt: z.number().positive().nullable(),
  usdJudging: z.number().positive().nullable(),
  tokensPerAttempt: z.number().int().positive().nullable(),
});
export type AttemptLimits = z.infer<typeof attemptLimits>;

export const retries = z.strictObject({
  infra: z.number().int().nonnegative(),
  rateLimit: z.number().int().nonnegative(),
});

export const manifestLine = z.strictObject({
  v: z.literal(1),
  sweep: z.string(),
  generation: z.number().int().positive(),
  attempt: z.string().length(26),
  task: z.string(),
  digest: z.string(),
  category: z.string(),
  capability: z.string(),
  language,
  /** Tasks that belong together in the statistics: a task and its twin share it. */
  cluster: z.string(),
  network,
  threshold: z.number().min(0).max(1),
  agent: agentChoice,
  model: modelChoice,
  epoch: z.number().int().positive(),
  supervisor: supervisorChoice,
  userSimulator: simulatorChoice,
  limits: attemptLimits,
  retries,
  placement: z.enum(["one", "two"]),
  seed: z.number().int().nonnegative(),
  compat: z.enum(["uniclawbench"]).nullable(),
});
export type ManifestLine = z.infer<typeof manifestLine>;
