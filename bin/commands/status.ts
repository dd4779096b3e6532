/** `proctor status [sweep]`: how far a sweep is, also beside the process that runs it; without a name, which there are. */

import { errorStatus } from "../../lib/attempt/vocabulary.ts";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { type Leaderboard, leaderboard } from "../../lib/results/leaderboard.ts";
import type { CommandResult } from "../command.ts";
import { isAlive } from "../sweeps/controller.ts";
import { findSweep, openExistingRuns } from "../sweeps/find-sweep.ts";
import { allRows } from "../sweeps/rows.ts";
import { latestGeneration } from "../sweeps/stored.ts";

export default async function status(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  if (args[0] === undefined) return listSweeps(options);
  const { runs, record } = await findSweep(String(args[0]), String(options.runs));
  try {
    const rows = await allRows(runs.scores, record.sweep);
    const controller = isAlive(record.controller, new RealClock().now()) ? record.controller : null;
    // A first generation that has just started has not stored its plan yet: then all of it is pending.
    const starting = controller !== null && record.generation === 1 && rows.length === 0;
    const planned = starting ? [] : (await latestGeneration(runs.objects, record)).planned;
    const running = rows.filter((row) => row.status === "running" && row.generation === record.generation).length;
    const statuses = starting ? { pending: record.planned } : leaderboard(planned, rows, controller !== null).statuses;
    const result = {
      sweep: record.sweep,
      generation: record.generation,
      planned: starting ? record.planned : planned.length,
      statuses,
      running: controller === null ? 0 : running,
      usd: { spent: record.spentUsd, reserved: record.reservedUsd, cap: record.capUsd },
      controller:
        controller === null ? null : { pid: controller.pid, host: controller.host, startedAt: controller.startedAt },
      abortRequested: record.abortRequested,
    };
    if (options.json === true) return { exitCode: 0, text: JSON.stringify(result) };
    const cap = record.capUsd === null ? "no cap" : `cap $${record.capUsd}`;
    return {
      exitCode: 0,
      text: [
        `sweep ${result.sweep}, generation ${result.generation}: ${result.planned} attempts planned`,
        controller === null
          ? doneText(statuses)
          : `process ${controller.pid} on ${controller.host} runs it, ${running} tries open`,
        ...Object.entries(statuses).map(([name, count]) => `  ${name.padEnd(20)} ${count}`),
        `$${record.spentUsd.toFixed(4)} spent, $${record.reservedUsd.toFixed(4)} reserved, ${cap}`,
      ].join("\n"),
    };
  } finally {
    await runs.close();
  }
}

function doneText(statuses: Leaderboard["statuses"]): string {
  const left = errorStatus.options.reduce((sum, status) => sum + (statuses[status] ?? 0), 0);
  return left === 0 ? "done" : `no process runs it; ${left} without a valid result`;
}

async function listSweeps(options: Record<string, unknown>): Promise<CommandResult> {
  const runs = openExistingRuns(String(options.runs));
  try {
    const now = new RealClock().now();
    const sweeps = (await runs.scores.sweeps()).map(({ sweep, generation, planned, controller }) => ({
      sweep,
      generation,
      planned,
      running: isAlive(controller, now),
    }));
    if (options.json === true) return { exitCode: 0, text: JSON.stringify({ sweeps }) };
    const lines = sweeps.map(
      ({ sweep, generation, planned, running }) =>
        `${sweep}  generation ${generation}, ${planned} planned${running ? ", running" : ""}`,
    );
    return { exitCode: 0, text: lines.length === 0 ? `no sweep in ${String(options.runs)}` : lines.join("\n") };
  } finally {
    await runs.close();
  }
}
