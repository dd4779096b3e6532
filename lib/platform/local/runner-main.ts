/**
 * A runner as a process: its input is the first line of standard input, and the end of standard input is its end, so it
 * never outlives the process that started it, however that ended. SIGTERM ends the turn and keeps its evidence.
 */
import { createInterface } from "node:readline";
import { runnerInput } from "../../executor/runner-input.ts";
import { runLocally } from "./runner.ts";

const stop = new AbortController();
const interrupt = new AbortController();
process.on("SIGTERM", () => interrupt.abort());
// A Ctrl-C at the terminal reaches the whole process group; whether to stop is for the process that runs the sweep.
process.on("SIGINT", () => undefined);

const lines = createInterface({ input: process.stdin });
const first = new Promise<string>((resolve, reject) => {
  lines.once("line", resolve);
  lines.once("close", () => reject(new Error("standard input ended before the runner's input came")));
});
lines.on("close", () => {
  stop.abort();
  // What hangs in spite of that must not stay.
  setTimeout(() => process.exit(1), 2000).unref();
});

try {
  const input = runnerInput.parse(JSON.parse(await first));
  const end = await runLocally(input, stop.signal, (line) => process.stderr.write(`${line}\n`), interrupt.signal);
  process.exit(end === "failed" ? 1 : 0);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
