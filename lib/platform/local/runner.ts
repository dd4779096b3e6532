/** The runner with this machine's store, sockets, time and randomness: as a function, and for the process of its own. */
import { type RunnerEnd, runRunner } from "../../executor/runner/runner.ts";
import type { RunnerInput, RunRunner } from "../../executor/runner-input.ts";
import { openFileStore } from "./file-store.ts";
import { RealClock } from "./real-clock.ts";
import { systemRandom } from "./system-random.ts";
import { tokenClient } from "./token-client.ts";

/** Runs a runner to its end. `interrupt` stands for SIGTERM: the turn is ended and its evidence written. */
export async function runLocally(
  input: RunnerInput,
  stop: AbortSignal,
  log: (line: string) => void,
  interrupt?: AbortSignal,
): Promise<RunnerEnd> {
  const tokens = tokenClient(input.tokens);
  try {
    return await runRunner(
      input,
      { openObjects: openFileStore, openTokens: () => tokens, clock: new RealClock(), random: systemRandom, log },
      stop,
      interrupt,
    );
  } finally {
    tokens.close();
  }
}

/** For a launcher that runs runners in its own process. */
export const localRunner =
  (log: (line: string) => void = () => undefined): RunRunner =>
  async (input, stop) => {
    const end = await runLocally(input, stop, log);
    if (end === "failed") throw new Error("the runner failed");
  };
