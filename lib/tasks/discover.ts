/** Where the packages of a folder stand. */
import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Problem } from "./problem.ts";

export interface TaskLocation {
  /** Path of the YAML file. */
  file: string;
  /** Name of the folder that it stands in: its category. */
  category: string;
}

export interface Layout {
  /** Folder in which tasks/ and injection/ stand side by side. */
  root: string;
  files: TaskLocation[];
  problems: Problem[];
}

const optionalNumber = /^_*(?:task[_.-])?(?:\d+[_.-]+)*_*/i;

/**
 * True for folders and files that hold a template: `000_template`, `_template.yaml`, `task_template_example.yaml`. A task that
 * is about templates, `museum_exhibit_template` say, is none.
 */
function isTemplateName(name: string): boolean {
  const bare = name.replace(/\.ya?ml$/i, "").replace(optionalNumber, "");
  return /^templates?(?:[_.-](?:example|task|package))?$/i.test(bare);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Every task file below `folder`: a checkout with tasks/ and injection/ side by side, or its tasks/ folder. In the order of
 * categories and files, by code unit. `null`: there is no such layout.
 */
export function discover(folder: string): Layout | null {
  const inside = basename(folder) === "tasks" && !isFolder(join(folder, "tasks"));
  const root = inside ? dirname(folder) : folder;
  const tasks = join(root, "tasks");
  if (!isFolder(tasks)) return null;
  const layout: Layout = { root, files: [], problems: [] };
  const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  for (const entry of readdirSync(tasks, { withFileTypes: true }).sort(byName)) {
    if (isTemplateName(entry.name)) continue;
    if (!entry.isDirectory()) {
      if (/\.ya?ml$/i.test(entry.name)) {
        layout.problems.push({
          file: join(tasks, entry.name),
          field: "",
          severity: "warning",
          found: "a task file outside a category's folder; it is not loaded",
          expected: "tasks/<category>/<file>.yaml",
        });
      }
      continue;
    }
    for (const file of readdirSync(join(tasks, entry.name), { withFileTypes: true }).sort(byName)) {
      if (!/\.ya?ml$/i.test(file.name) || file.isDirectory() || isTemplateName(file.name)) continue;
      layout.files.push({ file: join(tasks, entry.name, file.name), category: entry.name });
    }
  }
  return layout;
}
