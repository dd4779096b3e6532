/** Copies packages out of a checkout of UniClawBench, whole: the YAML file and all of the injection folder, dotfiles too. */
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { chooseTasks } from "../sweep/globs.ts";
import { hashFile, inParallel } from "./digest.ts";
import { type Inventory, takeInventory } from "./inventory.ts";
import type { LoadedFolder } from "./load.ts";
import type { TaskPackage } from "./package.ts";
import { nearest, type Problem, ProblemsError } from "./problem.ts";

export interface ImportResult {
  /** Packages that were asked for. */
  chosen: number;
  copied: number;
  /** There already, with the same content. */
  unchanged: number;
  refused: number;
  /** Files and bytes that this call copied. */
  files: number;
  bytes: number;
  /** Errors say why a package was refused; warnings what is wrong with a copied one. */
  problems: Problem[];
}

export interface ImportOptions {
  /** Glob on task id or category; null: every package. */
  only: string | null;
  /** Folder that gets tasks/ and injection/. */
  out: string;
  /** Called after each package. */
  onProgress?: (done: number, total: number, task: string) => void;
}

/**
 * Each package appears whole or not at all: its folder is copied aside and renamed, its YAML, by which it is found, comes
 * last. A call that was cut off is completed by the next. Content that differs is never overwritten.
 * @throws ProblemsError when nothing matches `only`
 */
export async function importUniclawbench(checkout: LoadedFolder, options: ImportOptions): Promise<ImportResult> {
  const globs = options.only === null ? ["*"] : [options.only];
  const { chosen } = chooseTasks(checkout.packages, globs);
  const broken = chooseTasks(checkout.broken, globs).chosen;
  if (chosen.length + broken.length === 0) throw nothingChosen(checkout, options.only);
  const result: ImportResult = {
    chosen: chosen.length + broken.length,
    copied: 0,
    unchanged: 0,
    refused: broken.length,
    files: 0,
    bytes: 0,
    problems: broken.flatMap((task) => task.problems),
  };
  let done = broken.length;
  for (const pkg of chosen) {
    const problems = await importPackage(pkg, options.out, result);
    if (problems.length > 0) result.refused++;
    // What is wrong with the package itself is no reason to leave it behind: it came over as it was.
    const own =
      problems.length > 0 ? [] : pkg.problems.map((problem): Problem => ({ ...problem, severity: "warning" }));
    result.problems.push(...problems, ...own);
    options.onProgress?.(++done, result.chosen, pkg.id);
  }
  await copyLicence(checkout.root, options.out);
  return result;
}

/** @returns why it was refused; empty when the package is there now */
async function importPackage(pkg: TaskPackage, out: string, result: ImportResult): Promise<Problem[]> {
  const inventory = takeInventory(pkg.folder);
  if (inventory.faults.length > 0) {
    return inventory.faults.map((fault) => ({
      file: join(pkg.folder, fault.path),
      field: "",
      severity: "error",
      found: fault.found,
      expected: fault.expected,
    }));
  }
  const folder = join(out, "injection", pkg.category, pkg.id);
  const yaml = join(out, "tasks", pkg.category, basename(pkg.file));
  const differs = [...(await folderDiffers(pkg.folder, inventory, folder)), ...(await fileDiffers(pkg.file, yaml))];
  if (differs.length > 0) {
    return differs.map((file) => ({
      file,
      field: "",
      severity: "error",
      found: "other content than the checkout's",
      expected: "nothing, or the same content: move it away, or import into another folder",
    }));
  }
  const copied = [await copyFolder(pkg.folder, inventory, folder, out), await copyWhole(pkg.file, yaml, out)];
  if (copied.every((files) => files === 0)) {
    result.unchanged++;
    return [];
  }
  result.copied++;
  result.files += copied.reduce((sum, files) => sum + files, 0);
  if (copied[0]) result.bytes += inventory.files.reduce((sum, file) => sum + file.bytes, 0);
  if (copied[1]) result.bytes += (await lstat(yaml)).size;
  return [];
}

const exists = async (path: string): Promise<boolean> => (await lstat(path).catch(() => null)) !== null;

/** Files below `there` that differ from the inventory of `from`, or are not in it; none when there is no such folder. */
async function folderDiffers(from: string, inventory: Inventory, there: string): Promise<string[]> {
  if (!(await exists(there))) return [];
  const other = takeInventory(there);
  const names = new Set([...inventory.files, ...other.files].map((file) => file.path));
  const found = new Map(other.files.map((file) => [file.path, file.bytes]));
  const wanted = new Map(inventory.files.map((file) => [file.path, file.bytes]));
  const differing = await inParallel([...names], async (path) => {
    if (wanted.get(path) !== found.get(path)) return join(there, path);
    return (await sameContent(join(from, path), join(there, path), found.get(path))) ? null : join(there, path);
  });
  return differing.filter((path) => path !== null);
}

async function fileDiffers(from: string, there: string): Promise<string[]> {
  if (!(await exists(there))) return [];
  return (await sameContent(from, there)) ? [] : [there];
}

async function sameContent(a: string, b: string, bytes?: number): Promise<boolean> {
  const [one, other] = await Promise.all([hashFile(a, bytes), hashFile(b, bytes)]);
  return one.sha256 === other.sha256;
}

/** @returns files copied; 0 when the folder was there */
async function copyFolder(from: string, inventory: Inventory, to: string, out: string): Promise<number> {
  if (await exists(to)) return 0;
  await aside(out, async (stage) => {
    const copy = join(stage, "package");
    await mkdir(copy);
    for (const folder of [...inventory.folders].sort()) await mkdir(join(copy, folder), { recursive: true });
    await inParallel(inventory.files, (file) => copyFile(join(from, file.path), join(copy, file.path)));
    await mkdir(dirname(to), { recursive: true });
    await rename(copy, to);
  });
  return inventory.files.length;
}

/** @returns 1, or 0 when the file was there */
async function copyWhole(from: string, to: string, out: string): Promise<number> {
  if (await exists(to)) return 0;
  await aside(out, async (stage) => {
    const copy = join(stage, "file");
    await copyFile(from, copy);
    await mkdir(dirname(to), { recursive: true });
    await rename(copy, to);
  });
  return 1;
}

/** A folder on the same file system, so that a rename out of it is atomic. */
async function aside(out: string, work: (stage: string) => Promise<void>): Promise<void> {
  await mkdir(out, { recursive: true });
  const stage = await mkdtemp(join(out, ".importing-"));
  try {
    await work(stage);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** Other people's packages keep their licence beside them; one that is there already stays. */
async function copyLicence(root: string, out: string): Promise<void> {
  const licence = join(root, "LICENSE");
  if (!(await exists(licence))) return;
  await copyFile(licence, join(out, "LICENSE"), constants.COPYFILE_EXCL).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

function nothingChosen(checkout: LoadedFolder, only: string | null): ProblemsError {
  const near = nearest(only ?? "", [...new Set(checkout.packages.flatMap((pkg) => [pkg.id, pkg.category]))]);
  return new ProblemsError([
    {
      file: checkout.root,
      field: only === null ? "" : "--only",
      severity: "error",
      found: only === null ? "no task packages" : `${only}, which matches no task`,
      expected: near ? `\`${near}\`, the nearest task or category` : "a glob on task id or category",
    },
  ]);
}
