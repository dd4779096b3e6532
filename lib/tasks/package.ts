/** A task package as it was loaded: what its YAML says, what stands in its injection folder, and what is wrong with it. */
import type { Language, Network } from "../attempt/vocabulary.ts";
import type { Problem } from "./problem.ts";
import type { TaskFile } from "./task-file.ts";

/** A regular file below a package's injection folder, or a link to one. */
export interface PackageFile {
  /** Below the injection folder, with `/` between its parts: `sources/puzzle.txt`. */
  path: string;
  bytes: number;
  executable: boolean;
}

export interface TaskPackage {
  id: string;
  category: string;
  capability: string;
  language: Language;
  /** Tasks of one cluster belong together in the statistics. */
  cluster: string;
  /** The same task in the other language, if it was loaded too. */
  twin: string | null;
  network: Network;
  task: TaskFile;
  /** Path of the YAML file. */
  file: string;
  /** Path of the injection folder. */
  folder: string;
  /** Every file of the injection folder, by path in code-unit order. */
  files: readonly PackageFile[];
  /** Names of environment variables that the task needs. */
  privacy: readonly string[];
  /** True when the task runs on its frozen snapshot: SNAPSHOT_MODE is declared and "1". */
  snapshot: boolean;
  /** Checkpoints decided by code, parsed; null: none. */
  checks: { file: string; value: unknown } | null;
  problems: readonly Problem[];
  /** No errors: runnable with what is in the folder. */
  ok: boolean;
}

/** Files of a package below one of its folders, `sources/` say. */
export function filesBelow(pkg: Pick<TaskPackage, "files">, prefix: string): PackageFile[] {
  return pkg.files.filter((file) => file.path.startsWith(prefix));
}

/** What goes to the agent: all of sources/, but in live mode not the frozen answers of the services it is to ask. */
export function injectedSources(pkg: Pick<TaskPackage, "files" | "privacy" | "snapshot">): PackageFile[] {
  const withheld = pkg.privacy.includes(snapshotVariable) && !pkg.snapshot;
  return filesBelow(pkg, "sources/").filter((file) => !(withheld && file.path.endsWith("_snapshot.json")));
}

/** A flag among the privacy names: "1" chooses the frozen snapshot, nothing or anything else the live service. */
export const snapshotVariable = "SNAPSHOT_MODE";

/** Declared values that the environment does not have. The snapshot flag may be missing: that chooses live mode. */
export function missingPrivacy(names: readonly string[], env: Readonly<Record<string, string | undefined>>): string[] {
  return names.filter((name) => name !== snapshotVariable && (env[name] ?? "") === "");
}

/** Where the checks of a package stand inside it. */
export const packageChecksFile = "references/checks.yaml";

/** Files that are published as hidden references. The checks are published apart, parsed. */
export function referenceFiles(pkg: Pick<TaskPackage, "files">): PackageFile[] {
  return filesBelow(pkg, "references/").filter((file) => file.path !== packageChecksFile);
}
