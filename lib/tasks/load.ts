/** Loading every package of a folder, with everything that is wrong with any of them at once. Hashes nothing. */

import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { discover, type TaskLocation } from "./discover.ts";
import { type Inventory, takeInventory } from "./inventory.ts";
import { capabilityOf, clustersOf, counterpart, languageOf } from "./kinship.ts";
import { missingPrivacy, packageChecksFile, snapshotVariable, type TaskPackage } from "./package.ts";
import { readPrivacyFile } from "./privacy-file.ts";
import { nearest, type Problem } from "./problem.ts";
import { readTaskFile, type TaskFile } from "./task-file.ts";
import { readTextFile } from "./text-file.ts";
import { readYaml } from "./yaml-text.ts";

/** Reads a file of checks. The format's schema belongs to the roles; without a reader the YAML's data is kept as it is. */
export type ParseChecks = (text: string, file: string) => { value: unknown } | Problem[];

export interface LoadOptions {
  /** Folder of `<task id>.yaml` files with checks; one of them replaces the package's own. */
  checksFolder?: string;
  parseChecks?: ParseChecks;
  /** Where privacy values and SNAPSHOT_MODE are looked up. */
  env: Readonly<Record<string, string | undefined>>;
}

export interface LoadedFolder {
  root: string;
  /** Every package whose YAML could be read, ok or not, in the order of their files. */
  packages: TaskPackage[];
  /** Everything found, in the order of files; those of packages are in here too. */
  problems: Problem[];
  /** Task files of which no package could be made, under the id, or else the file's name, that they would have had. */
  broken: { id: string; category: string; file: string; problems: Problem[] }[];
  /** Task files found: the packages there are, readable or not. */
  found: number;
  ok: number;
  byCategory: Record<string, { packages: number; ok: number }>;
}

/**
 * Loads a folder in UniClawBench's layout: a checkout's root, or its tasks/ folder.
 * @returns null when the folder has no such layout.
 */
export function loadPackages(folder: string, options: LoadOptions): LoadedFolder | null {
  const layout = discover(folder);
  if (layout === null) return null;
  const drafts = layout.files.map((location) => readDraft(layout.root, location, options));
  refuseSameIds(drafts);
  const known = drafts.flatMap(({ id, task }) => (id === null ? [] : [{ id, named: task?.twin ?? null }]));
  const ids = new Set(known.map(({ id }) => id));
  const twinOf = (id: string, named: string | null): string | null => {
    if (named !== null) return named;
    const other = counterpart(id);
    return other !== null && ids.has(other) ? other : null;
  };
  const clusters = clustersOf(known.map(({ id, named }) => ({ id, twin: named })));

  const packages: TaskPackage[] = [];
  const broken: LoadedFolder["broken"] = [];
  const byCategory = new Map<string, { packages: number; ok: number }>();
  let ok = 0;
  for (const draft of drafts) {
    const { id, task } = draft;
    const counts = byCategory.get(draft.category) ?? { packages: 0, ok: 0 };
    byCategory.set(draft.category, counts);
    counts.packages++;
    if (id === null || task === null) {
      const name = id ?? basename(draft.file).replace(/\.ya?ml$/i, "");
      broken.push({ id: name, category: draft.category, file: draft.file, problems: draft.problems });
      continue;
    }
    if (task.twin !== undefined && !ids.has(task.twin)) {
      const near = nearest(task.twin, [...ids]);
      draft.problems.push({
        file: draft.file,
        field: "twin",
        severity: "warning",
        found: `${task.twin}, which is not in this folder`,
        expected: near ? `a task of this folder, \`${near}\` say` : "the id of a task of this folder",
      });
    }
    const fine = !draft.problems.some((problem) => problem.severity === "error");
    if (fine) {
      ok++;
      counts.ok++;
    }
    const twin = twinOf(id, task.twin ?? null);
    packages.push({
      id,
      category: task.category,
      capability: capabilityOf(task.category),
      language: languageOf(task.category, task.task),
      cluster: clusters.get(id) ?? id,
      twin: twin !== null && ids.has(twin) ? twin : null,
      network: task.network,
      task,
      file: draft.file,
      folder: draft.folder,
      files: draft.inventory?.files ?? [],
      privacy: draft.privacy,
      snapshot: draft.privacy.includes(snapshotVariable) && options.env[snapshotVariable] === "1",
      checks: draft.checks,
      problems: draft.problems,
      ok: fine,
    });
  }
  const problems = [...layout.problems, ...drafts.flatMap((draft) => draft.problems)];
  return {
    root: layout.root,
    packages,
    broken,
    problems,
    found: drafts.length,
    ok,
    byCategory: Object.fromEntries(byCategory),
  };
}

interface Draft {
  file: string;
  category: string;
  /** Null where the YAML does not say one that could be an id. */
  id: string | null;
  task: TaskFile | null;
  folder: string;
  inventory: Inventory | null;
  privacy: string[];
  checks: TaskPackage["checks"];
  problems: Problem[];
}

function readDraft(root: string, location: TaskLocation, options: LoadOptions): Draft {
  const { file } = location;
  const draft: Draft = {
    ...location,
    id: null,
    task: null,
    folder: "",
    inventory: null,
    privacy: [],
    checks: null,
    problems: [],
  };
  const text = readTextFile(file, "a readable file");
  if (typeof text !== "string") {
    draft.problems.push(text);
    return draft;
  }
  const yaml = readYaml(text, file);
  if (!yaml.ok) {
    draft.problems.push(yaml.problem);
    return draft;
  }
  const read = readTaskFile(yaml.value, file);
  draft.task = read.task;
  draft.problems.push(...read.problems);
  // The folder is looked at even when another field is wrong, so that all problems are told at once.
  const wrong = new Set(
    read.problems.filter((problem) => problem.severity === "error").map((problem) => problem.field),
  );
  const { task_id: id, category } = (yaml.value ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || typeof category !== "string" || wrong.has("task_id") || wrong.has("category"))
    return draft;
  draft.id = id;
  if (category !== location.category) {
    draft.problems.push({
      file,
      field: "category",
      severity: "error",
      found: category,
      expected: `${location.category}, the folder in which the file stands`,
    });
  }
  draft.folder = join(root, "injection", category, id);
  readInjection(draft, options);
  return draft;
}

function readInjection(draft: Draft, options: LoadOptions): void {
  const { folder, problems, task } = draft;
  const add = (
    path: string,
    field: string,
    found: string,
    expected: string,
    severity: Problem["severity"] = "error",
  ): void => {
    problems.push({ file: path === "" ? folder : join(folder, path), field, severity, found, expected });
  };
  if (!existsSync(folder)) {
    add("", "", "no such folder", "the package's injection folder, with references/eval_rule.md in it");
    return;
  }
  const inventory = takeInventory(folder);
  draft.inventory = inventory;
  for (const fault of inventory.faults) add(fault.path, "", fault.found, fault.expected);
  const files = new Set(inventory.files.map((file) => file.path));
  const there = (path: string): boolean => files.has(path) || inventory.folders.has(path);

  if (!files.has("references/eval_rule.md")) {
    add("references/eval_rule.md", "", "no rubric", "the rubric: checkpoints with weights in §5, caps in §6");
  } else if (inventory.files.some((file) => file.path === "references/eval_rule.md" && file.bytes === 0)) {
    add("references/eval_rule.md", "", "an empty rubric", "checkpoints with weights in §5, caps in §6");
  }
  if (files.has(".privacy")) {
    const text = readTextFile(join(folder, ".privacy"), "a readable file");
    if (typeof text !== "string") problems.push(text);
    else {
      const privacy = readPrivacyFile(text, join(folder, ".privacy"));
      draft.privacy = privacy.names;
      problems.push(...privacy.problems);
      const missing = missingPrivacy(privacy.names, options.env);
      if (missing.length > 0) {
        const found = `no value for ${missing.join(", ")}`;
        add(".privacy", "", found, "these variables in the environment of a run", "warning");
      }
    }
  }
  if (task !== null) missingAssets(task, draft, there, add);
  const injected = [
    ...["references/", "sources/"],
    ...(task?.skills ?? []).map((name) => `skills/${name}/`),
    ...(task?.services ?? []).map((service) => `services/${service.path}/`),
    ...(task?.pre_exec ?? []),
  ];
  for (const path of inventory.pointers) {
    if (!injected.some((prefix) => path.startsWith(prefix))) continue;
    add(path, "", "a Git LFS pointer", "the file itself: run `git lfs pull` in the checkout it came from");
  }
  readChecks(draft, files.has(packageChecksFile), options);
}

function missingAssets(
  task: TaskFile,
  draft: Draft,
  there: (path: string) => boolean,
  add: (path: string, field: string, found: string, expected: string, severity?: Problem["severity"]) => void,
): void {
  const need = (field: string, path: string, expected: string): void => {
    if (!there(path)) add(path, field, "no such file or folder", expected);
  };
  task.references.forEach((path, index) => {
    const field = `references.${index}`;
    if (!path.startsWith("references/")) add(path, field, path, "a path below references/");
    // The rubric is told of already.
    else if (path !== "references/eval_rule.md") need(field, path, "the reference that the task file lists");
  });
  task.sources.forEach((path, index) => {
    need(`sources.${index}`, `sources/${path}`, "the source that the task file lists");
  });
  task.skills.forEach((name, index) => {
    need(`skills.${index}`, `skills/${name}`, "the folder of the skill that the task file lists");
  });
  task.services.forEach((service, index) => {
    need(`services.${index}`, `services/${service.path}`, `the folder of the service ${service.name}`);
  });
  task.pre_exec.forEach((path, index) => {
    need(`pre_exec.${index}`, path, "the script that the task file lists");
  });
  if (task.task_snapshot !== undefined && !draft.privacy.includes(snapshotVariable)) {
    draft.problems.push({
      file: draft.file,
      field: "task_snapshot",
      severity: "warning",
      found: "a request that is never used",
      expected: `${snapshotVariable} in .privacy, which chooses it`,
    });
  }
}

function readChecks(draft: Draft, own: boolean, options: LoadOptions): void {
  const beside = options.checksFolder === undefined ? null : join(options.checksFolder, `${draft.id}.yaml`);
  const file = beside !== null && existsSync(beside) ? beside : own ? join(draft.folder, packageChecksFile) : null;
  if (file === null) return;
  const text = readTextFile(file, "a readable file");
  if (typeof text !== "string") {
    draft.problems.push(text);
    return;
  }
  const parsed = (options.parseChecks ?? plainChecks)(text, file);
  if (Array.isArray(parsed)) draft.problems.push(...parsed);
  else draft.checks = { file, value: parsed.value };
}

const plainChecks: ParseChecks = (text, file) => {
  const yaml = readYaml(text, file);
  return yaml.ok ? { value: yaml.value } : [yaml.problem];
};

/** Ids are names of folders and keys: on a file system that folds case, two that differ in case alone are one. */
function refuseSameIds(drafts: readonly Draft[]): void {
  const byFolded = new Map<string, Draft[]>();
  for (const draft of drafts) {
    if (draft.id === null) continue;
    const folded = draft.id.toLowerCase();
    byFolded.set(folded, [...(byFolded.get(folded) ?? []), draft]);
  }
  for (const same of byFolded.values()) {
    if (same.length < 2) continue;
    for (const draft of same) {
      const others = same.filter((other) => other !== draft);
      const differs = others.some((other) => other.id !== draft.id);
      draft.problems.push({
        file: draft.file,
        field: "task_id",
        severity: "error",
        found: `${draft.id}, and ${others.map((other) => `${other.id} in ${other.file}`).join(", ")}`,
        expected: differs ? "ids that differ in more than upper and lower case" : "an id that no other task has",
      });
    }
  }
}
