/** `proctor report <sweep>`: pass rates and scores by model and capability, also while the sweep runs. */

import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { errorReasons } from "../../lib/results/error-reasons.ts";
import { leaderboard } from "../../lib/results/leaderboard.ts";
import { provenanceOf, provenanceText } from "../../lib/results/provenance.ts";
import { reportJson } from "../../lib/results/report-json.ts";
import { leaderboardTable } from "../../lib/results/terminal-table.ts";
import type { CommandResult } from "../command.ts";
import { isAlive } from "../sweeps/controller.ts";
import { findSweep } from "../sweeps/find-sweep.ts";
import { allRows } from "../sweeps/rows.ts";
import { latestGeneration } from "../sweeps/stored.ts";

export default async function report(args: string[], options: Record<string, unknown>): Promise<CommandResult> {
  const { runs, record } = await findSweep(String(args[0]), String(options.runs));
  try {
    const { sweep, planned } = await latestGeneration(runs.objects, record);
    const rows = await allRows(runs.scores, record.sweep);
    const running = isAlive(record.controller, new RealClock().now());
    const board = leaderboard(planned, rows, running);
    const provenance = provenanceOf(sweep, planned, rows);
    const head = { sweep: record.sweep, generation: sweep.generation, running };
    if (options.json === true) return { exitCode: 0, text: JSON.stringify(reportJson(head, board, provenance)) };
    const { valid, planned: count, pending } = board.overall;
    return {
      exitCode: 0,
      text: [
        `sweep ${head.sweep}, generation ${head.generation}: ${valid} of ${count} attempts valid${running ? `, ${pending} pending` : ""}`,
        ...provenanceText(provenance),
        "",
        leaderboardTable(board, process.stdout.isTTY ? process.stdout.columns : null),
        ...errorReasons(planned, rows),
      ].join("\n"),
    };
  } finally {
    await runs.close();
  }
}
