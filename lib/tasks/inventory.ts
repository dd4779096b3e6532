/** What stands in a package's injection folder. Reads names and sizes, and the first bytes of files as small as an LFS pointer. */
import { closeSync, lstatSync, openSync, readdirSync, readSync, realpathSync, statSync } from "node:fs";
import type { PackageFile } from "./package.ts";

export interface Fault {
  /** Below the folder; empty for the folder itself. */
  path: string;
  found: string;
  expected: string;
}

export interface Inventory {
  files: PackageFile[];
  /** Every folder, without a trailing slash. */
  folders: Set<string>;
  /** Files that are unresolved LFS pointers, by path. */
  pointers: Set<string>;
  /** Links that lead out, special files, unreadable ones, by path. */
  faults: Fault[];
}

/** Longest path of a file below the package: the published key has room for it and the store's own limit of 1,024 bytes. */
const maxPathBytes = 600;
const pointerStart = Buffer.from("version https://git-lfs.github.com/spec/");
/** By the LFS specification a pointer has fewer bytes than this. */
const maxPointerBytes = 1024;
const minPointerBytes = 100;

/** Everything below `folder`. Never throws: what cannot be read is a fault. */
export function takeInventory(folder: string): Inventory {
  const inventory: Inventory = { files: [], folders: new Set(), pointers: new Set(), faults: [] };
  const fault = (path: string, found: string, expected: string): void => {
    inventory.faults.push({ path, found, expected });
  };
  const link = (path: string): PackageFile | null => {
    const expected = "a file, or a link to a file of the same folder of this package";
    try {
      const root = realpathSync(folder);
      const target = realpathSync(`${folder}/${path}`);
      if (!target.startsWith(`${root}/`)) {
        fault(path, "a link that leaves the package", expected);
        return null;
      }
      // A link from sources/ to references/ would carry the hidden half to the agent.
      const inside = target.slice(root.length + 1);
      if (inside.split("/")[0] !== path.split("/")[0]) {
        fault(path, `a link to ${inside}`, expected);
        return null;
      }
      const stat = statSync(target);
      if (stat.isFile()) return { path, bytes: stat.size, executable: (stat.mode & 0o100) !== 0 };
      fault(path, "a link to something that is no file", expected);
    } catch {
      fault(path, "a link to nothing", expected);
    }
    return null;
  };
  const walk = (below: string): void => {
    let entries: import("node:fs").Dirent[];
    try {
      entries = readdirSync(below === "" ? folder : `${folder}/${below}`, { withFileTypes: true });
    } catch (error) {
      fault(below, `a folder that cannot be read (${codeOf(error)})`, "a readable folder");
      return;
    }
    for (const entry of entries) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) {
        inventory.folders.add(path);
        walk(path);
        continue;
      }
      if (Buffer.byteLength(path) > maxPathBytes) {
        fault(path, `a path of ${Buffer.byteLength(path)} bytes`, `at most ${maxPathBytes} bytes`);
        continue;
      }
      try {
        const file = entry.isSymbolicLink() ? link(path) : regular(folder, path);
        if (file === null) {
          if (!entry.isSymbolicLink()) fault(path, "a device, socket or pipe", "a regular file");
          continue;
        }
        inventory.files.push(file);
        if (isPointer(`${folder}/${path}`, file.bytes)) inventory.pointers.add(path);
      } catch (error) {
        fault(path, `a file that cannot be read (${codeOf(error)})`, "a readable file");
      }
    }
  };
  walk("");
  inventory.files.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return inventory;
}

function regular(folder: string, path: string): PackageFile | null {
  const stat = lstatSync(`${folder}/${path}`);
  return stat.isFile() ? { path, bytes: stat.size, executable: (stat.mode & 0o100) !== 0 } : null;
}

const head = Buffer.alloc(pointerStart.length);

/** True for a file whose content Git LFS still has to bring. */
function isPointer(path: string, bytes: number): boolean {
  if (bytes < minPointerBytes || bytes >= maxPointerBytes) return false;
  const handle = openSync(path, "r");
  try {
    return readSync(handle, head, 0, head.length, 0) === head.length && head.equals(pointerStart);
  } finally {
    closeSync(handle);
  }
}

export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
