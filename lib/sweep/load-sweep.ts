/** From a sweep file to a plan with everything looked up, or to everything that is wrong, at once. Reads files, writes none. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { distance } from "fastest-levenshtein";
import { inParallel, type PackageContent, readContent } from "../tasks/digest.ts";
import { type LoadedFolder, loadPackages, type ParseChecks } from "../tasks/load.ts";
import type { TaskPackage } from "../tasks/package.ts";
import { nearest, type Problem, ProblemsError } from "../tasks/problem.ts";
import { readTextFile } from "../tasks/text-file.ts";
import { readYaml } from "../tasks/yaml-text.ts";
import { checkChosen } from "./check-chosen.ts";
import type { PlannedTask, SweepPlan } from "./expand.ts";
import { chooseTasks } from "./globs.ts";
import { type ModelsFile, readModelsFile } from "./models-file.ts";
import { type KnownAgent, resolveAgents, sameNames } from "./resolve-agents.ts";
import { type ResolvedModel, resolveModel } from "./resolve-model.ts";
import { type ModelReference, readSweepFile, type SweepFile } from "./sweep-file.ts";

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
  const tasks = chosen.map((pkg) => plannedTask(pkg, ""));
  checkChosen(file, sweep, { chosen, tasks }, agents, context, problems);
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
  const text = readTextFile(file, expected);
  if (typeof text !== "string") throw new ProblemsError([text]);
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
