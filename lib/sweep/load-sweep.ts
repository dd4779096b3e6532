/** From a sweep file to a plan with everything looked up, or to everything that is wrong, at once. Reads files, writes none. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { distance } from "fastest-levenshtein";
import { z } from "zod";
import type { Network } from "../attempt/vocabulary.ts";
import { inParallel, type PackageContent, readContent } from "../tasks/digest.ts";
import { type LoadedFolder, loadPackages, type ParseChecks } from "../tasks/load.ts";
import type { TaskPackage } from "../tasks/package.ts";
import { nearest, type Problem, ProblemsError } from "../tasks/problem.ts";
import { runnableProblems } from "../tasks/runnable.ts";
import { readYaml } from "../tasks/yaml-text.ts";
import type { PlannedTask, SweepPlan } from "./expand.ts";
import { chooseTasks } from "./globs.ts";
import { limitsInForce, raisedLimits } from "./limits.ts";
import type { AgentChoice } from "./manifest-line.ts";
import { type ModelsFile, readModelsFile } from "./models-file.ts";
import { type ResolvedModel, resolveModel } from "./resolve-model.ts";
import { type ModelReference, readSweepFile, type SweepFile } from "./sweep-file.ts";

/** An agent that can be run; an adapter of lib/agents is one. */
export interface KnownAgent {
  name: string;
  version: string;
  networks: readonly Network[];
  /** Refuses options that the agent does not have. */
  options?: z.ZodType<Record<string, unknown>>;
}

export interface SweepContext {
  agents: readonly KnownAgent[];
  /** Unix socket of the server of scripted models. */
  socket: string;
  env: Readonly<Record<string, string | undefined>>;
  parseChecks?: ParseChecks;
}

export interface LoadedSweep {
  plan: SweepPlan;
  /** Content of every chosen package, in the order of `plan.tasks`, ready to be published. */
  contents: PackageContent[];
  packages: TaskPackage[];
  /** What is worth saying although the sweep can run. */
  warnings: Problem[];
}

/** @throws ProblemsError with everything that is wrong with the sweep file, models.yaml, or the chosen packages. */
export async function loadSweep(file: string, context: SweepContext): Promise<LoadedSweep> {
  const problems: Problem[] = [];
  const stopAtErrors = (): void => {
    if (problems.some((problem) => problem.severity === "error")) throw new ProblemsError(problems);
  };
  const sweep = sweepOf(file);

  const models = loadModels(file, sweep, context, problems);
  const agents = resolveAgents(file, sweep, context.agents, problems);
  const folder = resolvePackages(file, sweep, context, problems);
  const chosen = folder === null ? [] : choose(file, sweep, folder, problems);
  checkChosen(file, sweep, chosen, agents, context, problems);
  stopAtErrors();
  if (models === null) throw new ProblemsError(problems);

  const contents = await inParallel(chosen, readContent);
  const plan: SweepPlan = {
    sweep,
    tasks: chosen.map((pkg, index) => plannedTask(pkg, contents[index]?.digest ?? "")),
    agents,
    ...models,
  };
  return { plan, contents, packages: chosen, warnings: problems };
}

/** The sweep file alone, nothing that it names. @throws ProblemsError */
export function sweepOf(file: string): SweepFile {
  const { sweep, problems } = readSweepFile(yamlOf(file, "a sweep file"), file);
  if (sweep === null) throw new ProblemsError(problems);
  return sweep;
}

function plannedTask(pkg: TaskPackage, digest: string): PlannedTask {
  return {
    id: pkg.id,
    digest,
    category: pkg.category,
    capability: pkg.capability,
    language: pkg.language,
    cluster: pkg.cluster,
    network: pkg.network,
    threshold: pkg.task.success_threshold,
    limits: {
      turnSeconds: pkg.task.timeout_seconds,
      totalSeconds: pkg.task.max_total_seconds,
      maxFollowups: pkg.task.codex.max_user_followups,
    },
    supervisorEffort: pkg.task.codex.supervisor.reasoning_effort,
  };
}

/** @throws ProblemsError when the file is not there or is no YAML. */
function yamlOf(file: string, expected: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const found = `a file that cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`;
    throw new ProblemsError([{ file, field: "", severity: "error", found, expected }]);
  }
  const yaml = readYaml(text, file);
  if (!yaml.ok) throw new ProblemsError([yaml.problem]);
  return yaml.value;
}

const beside = (file: string, path: string): string => (isAbsolute(path) ? path : join(dirname(file), path));

type ResolvedRoles = Pick<SweepPlan, "models" | "supervisor" | "userSimulator">;

function loadModels(file: string, sweep: SweepFile, context: SweepContext, problems: Problem[]): ResolvedRoles | null {
  const modelsPath = beside(file, sweep.modelsFile);
  let models: ModelsFile;
  try {
    const read = readModelsFile(
      yamlOf(modelsPath, "the file of providers, models.yaml beside the sweep by default"),
      modelsPath,
    );
    problems.push(...read.problems);
    if (read.models === null) return null;
    models = read.models;
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    problems.push(...error.problems);
    return null;
  }
  const resolve = (reference: ModelReference, field: string): ResolvedModel | null => {
    const found = resolveModel(reference, {
      sweepFile: file,
      field,
      modelsPath,
      models,
      modelsFolder: dirname(modelsPath),
      socket: context.socket,
    });
    if (!("choice" in found)) {
      problems.push(found);
      return null;
    }
    missingPrice(file, field, found, sweep, problems);
    missingScript(file, field, found, problems);
    return found;
  };
  const executors = sweep.models.map((reference, index) => resolve(reference, `models.${index}`));
  sameNames(
    file,
    "models",
    sweep.models.map((model) => model.name),
    problems,
  );
  unknownPerModel(file, sweep, problems);
  const supervisor = sweep.supervisor === "checks" ? null : resolve(sweep.supervisor.model, "supervisor.model");
  const simulator = sweep.userSimulator === "none" ? null : resolve(sweep.userSimulator.model, "userSimulator.model");
  return {
    models: executors.filter((model) => model !== null),
    supervisor: supervisor === null ? { kind: "checks" } : { kind: "model", model: supervisor },
    userSimulator: simulator === null ? { kind: "none" } : { kind: "model", model: simulator },
  };
}

/** A cap on dollars that nobody can count would be no cap. */
function missingPrice(file: string, field: string, model: ResolvedModel, sweep: SweepFile, problems: Problem[]): void {
  if (model.priced) return;
  const { usd, usdPerAttempt, usdJudging } = sweep.limits;
  const caps = Object.entries({ usd, usdPerAttempt, usdJudging }).filter(([, cap]) => typeof cap === "number");
  const { name, provider } = model.choice;
  problems.push({
    file,
    field: `${field}.price`,
    severity: caps.length > 0 ? "error" : "warning",
    found: `no price for ${name} of ${provider}`,
    expected:
      caps.length > 0
        ? `a price here or in ${sweep.modelsFile}, since limits.${caps[0]?.[0]} caps dollars ({input: 0, output: 0} if it is free)`
        : "a price: without one its dollars are counted as 0",
  });
}

function missingScript(file: string, field: string, model: ResolvedModel, problems: Problem[]): void {
  if (model.choice.api !== "scripted" || existsSync(model.choice.script)) return;
  problems.push({
    file,
    field,
    severity: "error",
    found: `no folder ${model.choice.script}`,
    expected: `the folder of ${model.choice.name}'s turns, as models.yaml names it`,
  });
}

function sameNames(file: string, field: string, names: readonly string[], problems: Problem[]): void {
  names.forEach((name, index) => {
    if (names.indexOf(name) === index) return;
    problems.push({
      file,
      field: `${field}.${index}`,
      severity: "error",
      found: `${name} a second time`,
      expected: "each name once: rows are told apart by it; run the other one under a sweep of its own",
    });
  });
}

function unknownPerModel(file: string, sweep: SweepFile, problems: Problem[]): void {
  if (typeof sweep.limits.perModel !== "object") return;
  const known = sweep.models.map((model) => model.name);
  for (const name of Object.keys(sweep.limits.perModel)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    problems.push({
      file,
      field: `limits.perModel.${name}`,
      severity: "error",
      found: "a model that the sweep does not run",
      expected: near ? `\`${near}\`, the nearest of its models` : `one of ${known.join(", ")}`,
    });
  }
}

function resolveAgents(
  file: string,
  sweep: SweepFile,
  known: readonly KnownAgent[],
  problems: Problem[],
): AgentChoice[] {
  const add = (field: string, found: string, expected: string): void => {
    problems.push({ file, field, severity: "error", found, expected });
  };
  const references = sweep.agents.map((agent) => (typeof agent === "string" ? { name: agent, options: {} } : agent));
  sameNames(
    file,
    "agents",
    references.map((agent) => agent.name),
    problems,
  );
  return references.flatMap((reference, index): AgentChoice[] => {
    const field = typeof sweep.agents[index] === "string" ? `agents.${index}` : `agents.${index}.name`;
    const agent = known.find((candidate) => candidate.name === reference.name);
    if (!agent) {
      const near = nearest(
        reference.name,
        known.map((candidate) => candidate.name),
      );
      const all = known.map((candidate) => candidate.name).join(", ");
      add(
        field,
        `the unknown agent ${reference.name}`,
        near ? `\`${near}\`, the nearest known agent` : `one of ${all}`,
      );
      return [];
    }
    const version = "version" in reference ? reference.version : undefined;
    if (version !== undefined && version !== agent.version) {
      add(`agents.${index}.version`, version, `${agent.version}, the version of ${agent.name} that is here`);
    }
    const options = agent.options?.safeParse(reference.options);
    if (options && !options.success) {
      for (const issue of options.error.issues) {
        const at = ["agents", index, "options", ...issue.path].map(String).join(".");
        add(at, JSON.stringify(reference.options), `options of ${agent.name}: ${issue.message}`);
      }
    }
    return [{ name: agent.name, version: agent.version, options: reference.options }];
  });
}

function resolvePackages(
  file: string,
  sweep: SweepFile,
  context: SweepContext,
  problems: Problem[],
): LoadedFolder | null {
  const checksFolder = sweep.checks === undefined ? undefined : beside(file, sweep.checks);
  if (checksFolder !== undefined && !existsSync(checksFolder)) {
    const found = `no folder ${checksFolder}`;
    problems.push({
      file,
      field: "checks",
      severity: "error",
      found,
      expected: "the folder of <task id>.yaml files with checks",
    });
  }
  const folder = beside(file, sweep.packages);
  const loaded = loadPackages(folder, {
    env: context.env,
    ...(checksFolder === undefined ? {} : { checksFolder }),
    ...(context.parseChecks === undefined ? {} : { parseChecks: context.parseChecks }),
  });
  if (loaded === null) {
    const found = existsSync(folder) ? `${folder}, in which no tasks/ folder stands` : `no folder ${folder}`;
    const expected = "a folder with tasks/<category>/<file>.yaml and injection/<category>/<task id>/ in it";
    problems.push({ file, field: "packages", severity: "error", found, expected });
  }
  if (loaded !== null && checksFolder !== undefined && existsSync(checksFolder)) {
    warnOfMisnamedChecks(checksFolder, loaded, problems);
  }
  return loaded;
}

/** A file whose name is almost a task's id would be left out in silence, and its checkpoints judged by a model. */
function warnOfMisnamedChecks(checksFolder: string, loaded: LoadedFolder, problems: Problem[]): void {
  const ids = [...loaded.packages, ...loaded.broken].map(({ id }) => id);
  for (const name of readdirSync(checksFolder).sort()) {
    const task = name.replace(/\.ya?ml$/, "");
    if (task === name || (ids.includes(task) && name.endsWith(".yaml"))) continue;
    const near = ids.includes(task) ? task : nearest(task, ids);
    if (near === null || distance(task, near) > nearlyTheSame) continue;
    const found = `${name}, which is read for no task of this folder`;
    problems.push({
      file: join(checksFolder, name),
      field: "",
      severity: "warning",
      found,
      expected: `${near}.yaml, if it is meant for that task`,
    });
  }
}
/** Ids of sibling tasks differ by little too, so only a slip of the pen counts. */
const nearlyTheSame = 2;

function choose(file: string, sweep: SweepFile, folder: LoadedFolder, problems: Problem[]): TaskPackage[] {
  const { chosen, idle } = chooseTasks(folder.packages, sweep.tasks);
  // A broken task file that would have been chosen stops the sweep: a task is never left out in silence.
  const chosenBroken = chooseTasks(folder.broken, sweep.tasks);
  for (const task of chosenBroken.chosen) problems.push(...task.problems);
  for (const pkg of chosen) {
    // Missing privacy values are told by runnableProblems, as errors.
    problems.push(...pkg.problems.filter((problem) => problem.severity === "error"));
  }
  for (const glob of idle.filter((name) => chosenBroken.idle.includes(name))) {
    const bare = glob.replace(/^!/, "");
    const near = nearest(
      bare,
      folder.packages.flatMap((pkg) => [pkg.id, pkg.category]),
    );
    problems.push({
      file,
      field: `tasks.${sweep.tasks.indexOf(glob)}`,
      severity: glob.startsWith("!") ? "warning" : "error",
      found: `${glob}, which matches no task`,
      expected: near ? `\`${near}\`, the nearest task or category` : "a glob on task id or category",
    });
  }
  if (chosen.length === 0 && chosenBroken.chosen.length === 0 && idle.length === 0) {
    const expected = "globs that leave at least one task";
    problems.push({ file, field: "tasks", severity: "error", found: "no task", expected });
  }
  return chosen;
}

/** Checkpoints of a checks file that are left to a model. Only this much of its form is known here. */
const judgedCheckpoints = z.object({
  checkpoints: z.array(z.object({ id: z.string(), judge: z.unknown().optional() })),
});

function checkChosen(
  file: string,
  sweep: SweepFile,
  chosen: readonly TaskPackage[],
  agents: readonly AgentChoice[],
  context: SweepContext,
  problems: Problem[],
): void {
  const tasks = chosen.map((pkg) => plannedTask(pkg, ""));
  problems.push(...raisedLimits(file, tasks, sweep.limits));
  const { usd } = sweep.limits;
  if (usd !== null) {
    const own = tasks[0]?.limits ?? { turnSeconds: 1, totalSeconds: 1, maxFollowups: 0 };
    const { usdPerAttempt, usdJudging } = limitsInForce(own, sweep.limits);
    const judged = sweep.supervisor !== "checks" || sweep.userSimulator !== "none";
    const uncapped = usdPerAttempt === null ? "usdPerAttempt" : judged && usdJudging === null ? "usdJudging" : null;
    if (uncapped !== null) {
      const expected = "dollars: under limits.usd each attempt reserves its worst case";
      problems.push({ file, field: `limits.${uncapped}`, severity: "error", found: "no cap", expected });
    } else if ((usdPerAttempt ?? 0) + (judged ? (usdJudging ?? 0) : 0) > usd) {
      const found = `${usd}, less than the worst case of one attempt (usdPerAttempt ${usdPerAttempt}${judged ? `, usdJudging ${usdJudging}` : ""})`;
      problems.push({
        file,
        field: "limits.usd",
        severity: "error",
        found,
        expected: "enough for one attempt, or lower caps on it",
      });
    }
  }
  for (const pkg of chosen) {
    problems.push(...runnableProblems(pkg, context.env));
    for (const agent of agents) {
      const networks = context.agents.find((known) => known.name === agent.name)?.networks ?? [];
      if (networks.includes(pkg.network)) continue;
      const expected = `tasks with network ${networks.join(" or ")}, the ones that ${agent.name} works in`;
      problems.push({ file: pkg.file, field: "network", severity: "error", found: pkg.network, expected });
    }
    if (sweep.supervisor === "checks") undecidedCheckpoints(file, pkg, problems);
  }
}

function undecidedCheckpoints(file: string, pkg: TaskPackage, problems: Problem[]): void {
  const expected = "checks that decide every checkpoint, or a supervisor with a model";
  if (pkg.checks === null) {
    problems.push({ file, field: "supervisor", severity: "error", found: `checks, but ${pkg.id} has none`, expected });
    return;
  }
  const parsed = judgedCheckpoints.safeParse(pkg.checks.value);
  const judged = parsed.success ? parsed.data.checkpoints.filter((checkpoint) => checkpoint.judge === true) : [];
  if (judged.length === 0) return;
  const found = `checks, but ${pkg.checks.file} leaves ${judged.map((checkpoint) => checkpoint.id).join(", ")} to a judge`;
  problems.push({ file, field: "supervisor", severity: "error", found, expected });
}
