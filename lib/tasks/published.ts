/**
 * A published package, in four parts under its digest. Who may read which part is the access matrix's.
 *
 *     agent/      request.md (the rendered request), sources/**, skills/<name>/**
 *     runner/     package.json, services/<path>/**, pre_exec/**
 *     simulator/  policy.json
 *     hidden/     supervisor.json, references/**, checks.json (when checkpoints are decided by code)
 */
import { z } from "zod";
import { language, network } from "../attempt/vocabulary.ts";

export const publishedFiles = {
  request: "request.md",
  sources: "sources/",
  skills: "skills/",
  runner: "package.json",
  services: "services/",
  preExec: "pre_exec/",
  simulator: "policy.json",
  supervisor: "supervisor.json",
  checks: "checks.json",
  references: "references/",
  evalRule: "references/eval_rule.md",
} as const;

export const runnerPart = z.object({
  v: z.literal(1),
  task: z.string(),
  digest: z.string(),
  category: z.string(),
  language,
  network,
  type: z.enum(["closed_loop", "interception"]),
  timeoutSeconds: z.number().positive(),
  maxTotalSeconds: z.number().positive(),
  maxFollowups: z.number().int().nonnegative(),
  recording: z.enum(["none", "low", "high"]),
  headed: z.boolean(),
  screen: z.object({ width: z.number().int(), height: z.number().int() }),
  services: z.array(z.object({ name: z.string(), path: z.string(), start: z.string(), oneshot: z.boolean() })),
  /** Scripts by their path below pre_exec/. */
  preExec: z.array(z.string()),
  /** Published files that are executable in the package, `agent/skills/ocr/run.sh` say: an object store keeps no modes. */
  executable: z.array(z.string()),
  /** Names of environment variables. */
  privacy: z.array(z.string()),
});
export type RunnerPart = z.infer<typeof runnerPart>;

export const simulatorPart = z.object({
  v: z.literal(1),
  language,
  effort: z.enum(["low", "medium", "high"]),
  /** Replaces the default policy. */
  policy: z.string().nullable(),
});
export type SimulatorPart = z.infer<typeof simulatorPart>;

export const supervisorPart = z.object({
  v: z.literal(1),
  language,
  effort: z.enum(["low", "medium", "high"]),
  /** Appended to the default guidance. */
  instructions: z.string().nullable(),
  threshold: z.number().min(0).max(1),
  /** Hash of eval_rule.md and the checks: what the score depends on. */
  rubricDigest: z.string(),
});
export type SupervisorPart = z.infer<typeof supervisorPart>;
