/** A folder of this machine's sweeps: `objects/`, `scores.sqlite`, and a marker that says that it is one. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { type Identity, type ObjectStore, type Role, type ScoreTable, StoreError } from "../ports.ts";
import { openFileStore, removeLeftovers } from "./file-store.ts";
import { guardScores } from "./guarded-scores.ts";
import { openScoreTable } from "./score-table.ts";

export interface Runs {
  /** Root of the object store, for grants that are opened elsewhere. */
  readonly objectsRoot: string;
  readonly objects: ObjectStore;
  readonly scores: ScoreTable;
  /** The same folder for another role, through the same open files. */
  as(identity: Identity): { objects: ObjectStore; scores: ScoreTable };
  /** Ends everything that came from it. */
  close(): Promise<void>;
}

const markerFile = "proctor-runs.json";
const marker = z.object({ v: z.number().int() });

/**
 * Opens the folder as `role`; makes it when it is not there or empty. Several processes may have it open.
 * @throws StoreError unavailable for a folder that holds something else or is of a later version, no_space
 */
export function openRuns(folder: string, role: Exclude<Role, "turn-grant">): Runs {
  claim(folder);
  const objectsRoot = join(fs.realpathSync.native(folder), "objects");
  const open = (identity: Identity): ObjectStore => openFileStore(objectsRoot, identity);
  const objects = open({ role });
  removeLeftovers(objectsRoot);
  const scoresPath = join(folder, "scores.sqlite");
  refuseLostScores(scoresPath, objectsRoot);
  const table = openScoreTable(scoresPath);
  return {
    objectsRoot,
    objects,
    scores: guardScores(table, role),
    as: (identity) => ({ objects: open(identity), scores: guardScores(table, identity.role) }),
    close: () => table.close(),
  };
}

/** Objects of sweeps without a row are not a new folder: its scores were lost, and a sweep would run all over again. */
function refuseLostScores(scoresPath: string, objectsRoot: string): void {
  if (fs.existsSync(scoresPath) && fs.statSync(scoresPath).size > 0) return;
  const sweeps = join(objectsRoot, "results", "sweeps");
  if (!fs.existsSync(sweeps) || fs.readdirSync(sweeps).length === 0) return;
  throw new StoreError(
    "unavailable",
    `${scoresPath} is gone or empty, and ${objectsRoot} holds sweeps; put back a copy of it, or begin anew in another folder with --runs`,
  );
}

function claim(folder: string): void {
  try {
    makeFolder(resolve(folder));
    const path = join(folder, markerFile);
    if (!fs.existsSync(path)) {
      const others = fs.readdirSync(folder).filter((name) => !name.startsWith(markerFile) && !name.startsWith("."));
      // Another process may have made the marker between the two looks, and gone on.
      if (others.length > 0 && !fs.existsSync(path)) {
        throw new StoreError(
          "unavailable",
          `${folder} holds something else (${others.slice(0, 3).join(", ")}) and no ${markerFile}; choose an empty or new folder with --runs`,
        );
      }
      placeMarker(path);
    }
    const found = marker.safeParse(parseJson(fs.readFileSync(path, "utf8")));
    if (!found.success || found.data.v !== 1) {
      const what = found.success ? `form ${found.data.v}` : "no form that can be read";
      throw new StoreError(
        "unavailable",
        `${path} names ${what}, and this Proctor knows form 1; update Proctor, or choose another folder with --runs`,
      );
    }
  } catch (error) {
    if (error instanceof StoreError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "ENOTDIR") {
      throw new StoreError("unavailable", `${folder} is a file, not a folder; choose another with --runs`, {
        cause: error,
      });
    }
    const full = code === "ENOSPC" || code === "EDQUOT";
    throw new StoreError(full ? "no_space" : "unavailable", `${folder} can not be used: ${message}`, { cause: error });
  }
}

/** Step by step: Node's own recursive mkdir never comes back from a place that takes no folders, /proc say. */
function makeFolder(folder: string): void {
  if (fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    fs.mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it just now.
    if (!fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** Whole or not at all, and no matter who else does it. */
function placeMarker(path: string): void {
  const made = `${path}.${process.pid}`;
  try {
    fs.writeFileSync(made, `${JSON.stringify({ v: 1 })}\n`);
    fs.linkSync(made, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    fs.rmSync(made, { force: true });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
