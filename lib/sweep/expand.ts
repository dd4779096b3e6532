/** The pure expansion of a sweep: every attempt that it plans, each with its id, in order, a lane for each model. */
import { createHash } from "node:crypto";
import type { Language, Network } from "../attempt/vocabulary.ts";
import { base32, canonicalJson, sha256Hex } from "../tasks/canonical.ts";
import { limitsInForce, loweredLimits, type PackageLimits } from "./limits.ts";
import type { AgentChoice, ManifestLine, SimulatorChoice, SupervisorChoice } from "./manifest-line.ts";
import type { ResolvedModel } from "./resolve-model.ts";
import type { SweepFile } from "./sweep-file.ts";

/** What the expansion needs to know of a task package. */
export interface PlannedTask {
  id: string;
  digest: string;
  category: string;
  capability: string;
  language: Language;
  cluster: string;
  network: Network;
  threshold: number;
  limits: PackageLimits;
  /** How hard its supervisor is to think where the sweep does not say. */
  supervisorEffort: "low" | "medium" | "high";
}

/** A sweep with everything looked up. */
export interface SweepPlan {
  sweep: SweepFile;
  tasks: readonly PlannedTask[];
  agents: readonly AgentChoice[];
  models: readonly ResolvedModel[];
  supervisor: { kind: "checks" } | { kind: "model"; model: ResolvedModel };
  userSimulator: { kind: "none" } | { kind: "model"; model: ResolvedModel };
}

export interface Lane {
  /** Name of the lane in keys: the model's, made safe. */
  lane: string;
  model: string;
  /** Attempts of this lane at the same time, at most: the sweep's total is shared with the other lanes. */
  concurrency: number;
  lines: ManifestLine[];
}

export interface Expansion {
  lanes: Lane[];
  planned: number;
  /** Digest over every attempt as planned: equal for equal sweeps, whatever the generation and the machine. */
  digest: string;
  /** What must not change under one name, as canonical JSON: see lib/sweep/fixed.ts. */
  fixed: string;
  /** Limits that the sweep lowers, by task. */
  lowered: { task: string; limits: Record<string, number> }[];
}

/** First 26 characters of base32(sha256(canonical JSON of [sweep, task digest, agent+version, model, epoch])). */
export function attemptId(sweep: string, taskDigest: string, agent: AgentChoice, model: string, epoch: number): string {
  const named = canonicalJson([sweep, taskDigest, `${agent.name}+${agent.version}`, model, epoch]);
  return base32(createHash("sha256").update(named).digest()).slice(0, 26);
}

/** A model's name as a part of a key. Names that had to be changed carry a hash, so that two never meet. */
export function laneName(model: string): string {
  const safe = model.replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 60);
  return safe === model && !/^\.+$/.test(safe) ? safe : `${safe}-${sha256Hex(model).slice(0, 8)}`;
}

/** The first 32 bits of a hash: a seed of its own for each attempt, the same on every machine. */
function seedOf(seed: number, attempt: string): number {
  return Number.parseInt(sha256Hex(canonicalJson([seed, attempt])).slice(0, 8), 16);
}

/**
 * Expands a sweep. Shuffled means: sorted by a hash of the seed and what runs, without the model. So every lane has the same
 * order, and a sweep that its budget stops has done the same tasks for each model; an edited sweep keeps the order of what
 * was in it.
 */
export function expandSweep(plan: SweepPlan, generation: number): Expansion {
  const { sweep } = plan;
  const lowered: Expansion["lowered"] = [];
  const cells = plan.tasks.flatMap((task) => {
    const limits = limitsInForce(task.limits, sweep.limits);
    const below = loweredLimits(task.limits, limits);
    if (Object.keys(below).length > 0) lowered.push({ task: task.id, limits: below });
    return plan.agents.flatMap((agent) =>
      Array.from({ length: sweep.epochs }, (_, index) => {
        const epoch = index + 1;
        const key = sha256Hex(canonicalJson([sweep.seed, task.digest, `${agent.name}+${agent.version}`, epoch]));
        return { task, agent, epoch, limits, key };
      }),
    );
  });
  // As listed: the first epoch of everything comes before the second.
  if (sweep.order === "as-listed") cells.sort((a, b) => a.epoch - b.epoch);
  else cells.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));

  const userSimulator: SimulatorChoice =
    plan.userSimulator.kind === "none" ? { kind: "none" } : { kind: "model", model: plan.userSimulator.model.choice };
  const supervisorFor = (task: PlannedTask): SupervisorChoice => {
    if (plan.supervisor.kind === "checks") return { kind: "checks" };
    const stated = sweep.supervisor === "checks" ? undefined : sweep.supervisor.effort;
    return { kind: "model", model: plan.supervisor.model.choice, effort: stated ?? task.supervisorEffort };
  };
  const lanes = plan.models.map(({ choice }): Lane => {
    const lines = cells.map(({ task, agent, epoch, limits }): ManifestLine => {
      const attempt = attemptId(sweep.name, task.digest, agent, choice.name, epoch);
      return {
        v: 1,
        sweep: sweep.name,
        generation,
        attempt,
        task: task.id,
        digest: task.digest,
        category: task.category,
        capability: task.capability,
        language: task.language,
        cluster: task.cluster,
        network: task.network,
        threshold: task.threshold,
        agent,
        model: choice,
        epoch,
        supervisor: supervisorFor(task),
        userSimulator,
        limits,
        retries: sweep.retries,
        placement: task.network === "web" ? "one" : "two",
        seed: seedOf(sweep.seed, attempt),
        compat: sweep.compat ?? null,
      };
    });
    return { lane: laneName(choice.name), model: choice.name, concurrency: concurrencyOf(sweep, choice.name), lines };
  });
  return {
    lanes,
    planned: lanes.reduce((sum, lane) => sum + lane.lines.length, 0),
    digest: digestOf(plan, lanes),
    fixed: fixedText(plan),
    lowered,
  };
}

/** A lane's own cap. The total over all lanes is held by the engine, as attempts begin. */
function concurrencyOf(sweep: SweepFile, model: string): number {
  const { perModel, concurrency } = sweep.limits;
  const own = typeof perModel === "object" ? perModel[model] : perModel;
  return Math.min(own ?? concurrency, concurrency);
}

function digestOf(plan: SweepPlan, lanes: readonly Lane[]): string {
  const prices = plan.models.map((model) => model.choice.price);
  const attempts = lanes.flatMap((lane) => lane.lines.map((line) => [line.attempt, line.limits, line.seed]));
  return sha256Hex(canonicalJson({ sweep: plan.sweep, fixed: fixedText(plan), prices, attempts }));
}

/** Roles, limits, compat, and for each agent and model what its name stands for: what makes results of one name comparable. */
function fixedText(plan: SweepPlan): string {
  const { sweep } = plan;
  const { turnSeconds, totalSeconds, noStartSeconds, stallSeconds, tokensPerAttempt } = sweep.limits;
  const none: PackageLimits = { turnSeconds: 0, totalSeconds: 0, maxFollowups: 0 };
  const { usdPerAttempt, usdJudging } = limitsInForce(none, sweep.limits);
  const role = (of: SweepPlan["supervisor"] | SweepPlan["userSimulator"]): unknown =>
    of.kind === "model" ? of.model.identity : of.kind;
  return canonicalJson({
    supervisor: role(plan.supervisor),
    effort: sweep.supervisor === "checks" ? null : (sweep.supervisor.effort ?? null),
    userSimulator: role(plan.userSimulator),
    limits: {
      turnSeconds: turnSeconds ?? null,
      totalSeconds: totalSeconds ?? null,
      noStartSeconds: noStartSeconds ?? null,
      stallSeconds: stallSeconds ?? null,
      tokensPerAttempt,
      usdPerAttempt,
      usdJudging,
    },
    compat: sweep.compat ?? null,
    agents: Object.fromEntries(plan.agents.map((agent) => [`${agent.name}+${agent.version}`, agent.options])),
    models: Object.fromEntries(plan.models.map((model) => [model.choice.name, model.identity])),
  });
}
