/**
 * Whether a process with this number runs, ours or another user's. A number may be another process's by now: whoever
 * needs to know that it is the same one asks for more.
 */
export function processAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
