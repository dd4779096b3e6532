/** A leaderboard as text for a terminal. */
import Table from "cli-table3";
import type { Computed } from "./computed.ts";
import { decimals } from "./decimals.ts";
import type { Cell, Counts, Estimate, Leaderboard } from "./leaderboard.ts";

/** One table: for each system its overall row, then a row for each capability. */
export function leaderboardTable(board: Leaderboard): string {
  const agents = new Set(board.systems.map((system) => `${system.agent} ${system.agentVersion}`));
  const table = new Table({
    head: [
      "model",
      ...(agents.size > 1 ? ["agent"] : []),
      "capability",
      "planned",
      "valid",
      "errors",
      "PR",
      "AS",
      "err=0",
      "err=1",
    ],
    style: { head: [], border: [], compact: true },
    colAligns: ["left", ...(agents.size > 1 ? (["left"] as const) : []), "left", "right", "right", "left"],
  });
  for (const system of board.systems) {
    const named = [system.model, ...(agents.size > 1 ? [`${system.agent} ${system.agentVersion}`] : [])];
    table.push([...named, "all", ...cellTexts(system.overall)]);
    for (const capability of board.capabilities) {
      const cell = system.byCapability[capability];
      if (cell) table.push([...named.map(() => ""), capability, ...cellTexts(cell)]);
    }
  }
  return [table.toString(), "", ...legend(board)].join("\n");
}

function cellTexts(cell: Cell): string[] {
  return [
    String(cell.planned),
    String(cell.valid),
    errorsText(cell),
    estimateText(cell.passRate.validOnly),
    estimateText(cell.averageScore),
    valueText(cell.passRate.errorsAsFailures),
    valueText(cell.passRate.errorsAsPasses),
  ];
}

/** `2 infra_error, 1 unjudged`, with what is pending. */
export function errorsText(counts: Counts): string {
  const kinds = Object.entries(counts.errorsByKind).map(([kind, n]) => `${n} ${kind}`);
  if (counts.pending > 0) kinds.push(`${counts.pending} pending`);
  return kinds.length === 0 ? "0" : kinds.join(", ");
}

/** `0.750 [0.301, 0.954]`, or the value and why it has no interval: `0.750 – one pair`. */
export function estimateText(estimate: Computed<Estimate>): string {
  if (estimate.value === null) return `– ${estimate.reason}`;
  const { value, interval } = estimate.value;
  const number = decimals(value, 3);
  if (interval.value === null) return `${number} – ${interval.reason}`;
  return `${number} [${decimals(interval.value.low, 3)}, ${decimals(interval.value.high, 3)}]`;
}

function valueText(estimate: Computed<Estimate>): string {
  return estimate.value === null ? "–" : decimals(estimate.value.value, 3);
}

function legend(board: Leaderboard): string[] {
  const lines = [
    "PR: share of valid attempts that passed; AS: their mean score; both over task means, [95 % interval over tasks,",
    "clustered by twin]. err=0, err=1: PR with errors counted as failures, as passes.",
  ];
  if (board.unplanned > 0) {
    lines.push(
      `${board.unplanned} attempts of earlier forms of this sweep are not planned any more and count nowhere.`,
    );
  }
  return lines;
}
