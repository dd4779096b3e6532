/** Looking at processes, and waiting for what they bring about. */
import { readFileSync } from "node:fs";

/** For tests of what the kernel of Linux alone does, or shows. */
export const onLinux = process.platform === "linux";

/** Whether a process runs; a zombie does not. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !onLinux || !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** Resolves when `condition` holds. @throws when it does not within `seconds` */
export async function until(condition: () => boolean, seconds = 10): Promise<void> {
  for (let round = 0; round < seconds * 100 && !condition(); round++) await new Promise((done) => setTimeout(done, 10));
  if (!condition()) throw new Error("it did not happen");
}
