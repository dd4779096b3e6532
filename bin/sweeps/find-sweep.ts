/** A sweep that was named on the command line, by its name or by its file. */
import { existsSync } from "node:fs";
import { openRuns, type Runs } from "../../lib/platform/local/open-runs.ts";
import type { SweepRecord } from "../../lib/platform/ports.ts";
import { sweepOf } from "../../lib/sweep/load-sweep.ts";
import { nearest } from "../../lib/tasks/problem.ts";
import { CommandError } from "../command.ts";

/** Opens a folder of runs, and makes none. @throws CommandError when it is not there */
export function openExistingRuns(folder: string): Runs {
  if (existsSync(folder)) return openRuns(folder, "operator");
  throw new CommandError(2, `there is no folder ${folder}, so no sweep has run here; --runs names another folder`);
}

/** Opens the runs and finds the sweep's record. The caller closes the runs. @throws CommandError when there is none */
export async function findSweep(named: string, folder: string): Promise<{ runs: Runs; record: SweepRecord }> {
  const runs = openExistingRuns(folder);
  try {
    const name = /\.ya?ml$/.test(named) && existsSync(named) ? sweepOf(named).name : named;
    const record = await runs.scores.sweep(name);
    if (record !== null) return { runs, record };
    const known = (await runs.scores.sweeps()).map(({ sweep }) => sweep);
    const near = nearest(name, known);
    const hint = near ? `; did you mean ${near}?` : known.length > 0 ? `; there are ${known.join(", ")}` : "";
    throw new CommandError(2, `there is no sweep ${name} in ${folder}${hint}`);
  } catch (error) {
    await runs.close();
    throw error;
  }
}
