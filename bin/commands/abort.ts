/** `proctor abort <sweep>`: stops a sweep and all that it started. */

import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { CommandError, type CommandResult } from "../command.ts";
import { closeAbandoned } from "../sweeps/abandoned.ts";
import { isAlive } from "../sweeps/controller.ts";
import { findSweep } from "../sweeps/find-sweep.ts";

/** How long the process that runs the sweep has for stopping its executors and closing their rows. */
const patienceMs = 60_000;
const clock = new RealClock();

export default async function abort(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const { runs, record } = await findSweep(String(args[0]), String(options.runs));
  const { sweep } = record;
  try {
    const wasAlive = isAlive(record.controller, clock.now());
    await runs.scores.requestAbort(sweep);
    const giveUp = clock.now() + patienceMs;
    for (let alive = wasAlive; alive; ) {
      await clock.sleep(100);
      const now = await runs.scores.sweep(sweep);
      // A process that has started the sweep anew meanwhile was not told to stop.
      alive = now?.generation === record.generation && isAlive(now.controller, clock.now());
      if (alive && clock.now() > giveUp) {
        throw new CommandError(
          3,
          `process ${record.controller?.pid} was told to stop ${sweep} and has not in ${patienceMs / 1000} s`,
        );
      }
    }
    const reason = "aborted: no process ran this try any more";
    const closed = await closeAbandoned(runs, sweep, record.generation + 1, clock, { status: "cancelled", reason });
    const text =
      options.json === true
        ? JSON.stringify({ sweep, stoppedProcess: wasAlive, closedTries: closed })
        : `${sweep} ${wasAlive ? "is stopped" : "was not running"}${closed > 0 ? `; ${closed} open tries closed as cancelled` : ""}`;
    return { exitCode: 0, text };
  } finally {
    await runs.close();
  }
}
