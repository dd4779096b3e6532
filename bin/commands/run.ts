/** `proctor run <sweep.yaml>`: runs a sweep, or goes on with it. */

import { existsSync } from "node:fs";
import { adapters } from "../../lib/agents/registry.ts";
import type { HistoryEvent } from "../../lib/platform/local/interpreter/interpreter.ts";
import { openRuns, type Runs } from "../../lib/platform/local/open-runs.ts";
import { parseChecks } from "../../lib/roles/checks/schema.ts";
import { expandSweep } from "../../lib/sweep/expand.ts";
import { fixedProblems } from "../../lib/sweep/fixed.ts";
import { type LoadedSweep, loadSweep, sweepOf } from "../../lib/sweep/load-sweep.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { preambleHash } from "../../lib/tasks/preamble.ts";
import { problemLine } from "../../lib/tasks/problem.ts";
import { publish } from "../../lib/tasks/publish.ts";
import { CommandError, type CommandResult } from "../command.ts";
import { sweepSockets } from "../engine/sockets.ts";
import { runGeneration } from "../sweeps/generation.ts";
import { type ChosenLauncher, chooseLauncher } from "../sweeps/local-launcher.ts";
import { localPorts } from "../sweeps/local-ports.ts";
import { outcomeCode, outcomeOf, outcomeText, type SweepOutcome } from "../sweeps/outcome.ts";
import { refuseOnErrors, refuseWhatFails } from "../sweeps/refusals.ts";
import { tell } from "../terminal-text.ts";

export default async function run(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const file = String(args[0]);
  if (!existsSync(file) && !/\.ya?ml$/.test(file)) {
    throw new CommandError(
      2,
      `${file}: found no such file, expected a sweep file; a sweep that ran before is gone on with by its name with \`proctor retry ${file}\``,
    );
  }
  const outcome = await runSweepFile(file, {
    runs: String(options.runs),
    unisolated: options.unisolated === true,
    write: tell,
  });
  const text = options.json === true ? JSON.stringify(outcome) : outcomeText(outcome);
  return { exitCode: outcomeCode(outcome), text };
}

export interface SweepRun {
  runs: string;
  unisolated: boolean;
  write(text: string): void;
  /** How executors are kept apart; what this machine can do, unless given. */
  launcher?: ChosenLauncher;
  /** The sweep's name; the file's, unless given. */
  name?: string;
  /** Every event of every execution, for measurements. */
  onEvent?(event: HistoryEvent): void;
}

/** @throws ProblemsError with everything that is wrong with the call, before anything is started or written */
export async function runSweepFile(file: string, options: SweepRun): Promise<SweepOutcome> {
  const name = options.name ?? sweepOf(file).name;
  const sockets = sweepSockets(options.runs, name);
  const loaded = await loadSweep(file, { agents: adapters, socket: sockets.models, env: process.env, parseChecks });
  for (const warning of loaded.warnings) options.write(`${problemLine(warning)}\n`);
  const expansion = expandSweep({ ...loaded.plan, sweep: { ...loaded.plan.sweep, name } }, 1);
  // Both sides of an executor are started by this machine's launcher, whatever the network.
  const planned = expansion.lanes
    .flatMap((lane) => lane.lines)
    .map((line): ManifestLine => ({ ...line, placement: "one" }));
  refuseWhatFails(file, planned);
  const launcher = options.launcher ?? (await chooseLauncher(planned, options.unisolated));

  const runs = openRuns(options.runs, "operator");
  try {
    const record = await runs.scores.sweep(name);
    if (record) refuseOnErrors(fixedProblems(file, record.fixed, expansion.fixed));
    await publishAll(loaded, runs, options.write);
    const result = await runGeneration({
      ...localPorts(),
      runs,
      sockets,
      launcher,
      sweep: name,
      digest: expansion.digest,
      fixed: expansion.fixed,
      seed: loaded.plan.sweep.seed,
      preamble: preambleHash,
      capUsd: loaded.plan.sweep.limits.usd ?? null,
      lanes: expansion.lanes,
      concurrency: loaded.plan.sweep.limits.concurrency,
      planned,
      write: options.write,
      ...(options.onEvent === undefined ? {} : { onEvent: options.onEvent }),
    });
    return outcomeOf(name, planned, result);
  } finally {
    await runs.close();
  }
}

async function publishAll(loaded: LoadedSweep, runs: Runs, write: (text: string) => void): Promise<void> {
  let created = 0;
  for (const content of loaded.contents) created += (await publish(content, runs.objects)).created > 0 ? 1 : 0;
  if (created > 0) write(`published ${created} of ${loaded.contents.length} task packages\n`);
}
