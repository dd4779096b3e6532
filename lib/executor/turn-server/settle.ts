/** Waiting until an agent's files stop changing, before they are collected. */
import { lstatSync, opendirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const stepMs = 100;
const entriesAtMost = 5000;

/**
 * Resolves when the files below `paths` stayed as they were for a step, or after `atMostMs`. Where nothing lives that
 * could change them, at once.
 */
export async function settled(paths: string[], anythingLeft: () => Promise<boolean>, atMostMs: number): Promise<void> {
  const until = performance.now() + atMostMs;
  let before: string | null = null;
  while (performance.now() < until && (await anythingLeft())) {
    const now = snapshot(paths);
    if (now === before) return;
    before = now;
    await sleep(stepMs);
  }
}

function snapshot(paths: string[]): string {
  const seen: string[] = [];
  const look = (path: string, depth: number): void => {
    if (seen.length >= entriesAtMost || depth > 32) return;
    try {
      const stat = lstatSync(path);
      seen.push(`${path}\0${stat.size}\0${stat.mtimeMs}`);
      if (!stat.isDirectory()) return;
      const folder = opendirSync(path);
      try {
        for (let entry = folder.readSync(); entry !== null && seen.length < entriesAtMost; entry = folder.readSync()) {
          look(join(path, entry.name), depth + 1);
        }
      } finally {
        folder.closeSync();
      }
    } catch {
      // It went away while we looked: a change like any other.
      seen.push(`${path}\0gone`);
    }
  };
  for (const path of paths) look(path, 0);
  return seen.join("\n");
}
