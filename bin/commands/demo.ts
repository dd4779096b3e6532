/** `proctor demo`: a small sweep of real task packages with scripted models, from the packages to the scores. */

import { join } from "node:path";
import { installationRoot } from "../../lib/platform/local/launcher/bundles.ts";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import type { CommandResult } from "../command.ts";
import { outcomeCode } from "../sweeps/outcome.ts";
import { tell } from "../terminal-text.ts";
import report from "./report.ts";
import { runSweepFile } from "./run.ts";

export default async function demo(_args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const started = new Date(new RealClock().now());
  // A name of its own for each demo, so that it always runs from the start.
  const name = `demo-${started
    .toISOString()
    .replace(/[-:]|\..*$/g, "")
    .toLowerCase()}-${process.pid}`;
  tell("The models of this demo are scripted: files of turns. Their scores say nothing about any model.\n");
  const outcome = await runSweepFile(join(installationRoot(), "sweeps", "demo", "sweep.yaml"), {
    runs: String(options.runs),
    unisolated: false,
    write: tell,
    name,
  });
  const { planned, valid, statuses, elapsedMs } = outcome;
  const exitCode = outcomeCode(outcome);
  if (options.json === true) return { exitCode, text: JSON.stringify({ planned, valid, statuses, elapsedMs }) };
  const table = await report([name], options);
  const took = `${(elapsedMs / 1000).toFixed(1)} s`;
  const where = `${valid} of ${planned} attempts valid in ${took}. The sweep is ${name} in ${String(options.runs)}/.`;
  // A demo starts anew each time; what was interrupted is gone on with by its name.
  const next = exitCode === 0 ? "" : `\n\`proctor retry ${name}\` goes on with it.`;
  return { exitCode, text: `${table.text}\n\n${where}${next}` };
}
