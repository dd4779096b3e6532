/** A leaderboard as text for a terminal. */
import Table from "cli-table3";
import type { Computed } from "./computed.ts";
import { decimals } from "./decimals.ts";
import type { Cell, Counts, Estimate, Leaderboard } from "./leaderboard.ts";

/**
 * For each system its overall row, then a row for each capability.
 * @param columns width of the terminal; a table that is wider is written as blocks instead. Null: there is no such limit.
 */
export function leaderboardTable(board: Leaderboard, columns: number | null = null): string {
  const rows = rowsOf(board);
  const several = new Set(board.systems.map((system) => `${system.agent} ${system.agentVersion}`)).size > 1;
  const table = new Table({
    head: [
      "model",
      ...(several ? ["agent"] : []),
      "capability",
      "planned",
      "valid",
      "errors",
      "PR",
      "AS",
      "err=0",
      "err=1",
    ],
    style: { head: [], border: [], compact: true, "padding-left": 0, "padding-right": 1 },
    chars: borderless,
    colAligns: ["left", ...(several ? (["left"] as const) : []), "left", "right", "right", "left"],
  });
  for (const { model, agent, capability, cell, first } of rows) {
    const named = first ? [model, ...(several ? [agent] : [])] : ["", ...(several ? [""] : [])];
    table.push([...named, capability, ...cellTexts(cell)]);
  }
  const text = table.toString();
  const wide = columns !== null && Math.max(...text.split("\n").map((line) => line.trimEnd().length)) > columns;
  return [wide ? blocks(rows, several) : text, "", ...legend(board)].join("\n");
}

interface TableRow {
  model: string;
  agent: string;
  capability: string;
  cell: Cell;
  /** First row of its system. */
  first: boolean;
}

function rowsOf(board: Leaderboard): TableRow[] {
  return board.systems.flatMap((system) => {
    const of = { model: system.model, agent: `${system.agent} ${system.agentVersion}` };
    // One capability is all there is: its row says it by its name, once.
    const capabilities = board.capabilities.flatMap((capability) => {
      const cell = system.byCapability[capability];
      return cell ? [{ ...of, capability, cell, first: board.capabilities.length === 1 }] : [];
    });
    return board.capabilities.length === 1
      ? capabilities
      : [{ ...of, capability: "all", cell: system.overall, first: true }, ...capabilities];
  });
}

const edges = ["top", "top-mid", "top-left", "top-right", "bottom", "bottom-mid", "bottom-left", "bottom-right"];
const sides = ["left", "left-mid", "mid", "mid-mid", "right", "right-mid"];
const borderless: Record<string, string> = {
  ...Object.fromEntries([...edges, ...sides].map((name) => [name, ""])),
  middle: " ",
};

/** The same for a narrow terminal: three lines a row. */
function blocks(rows: readonly TableRow[], several: boolean): string {
  return rows
    .map(({ model, agent, capability, cell }) => {
      const [planned, valid, errors, passRate, averageScore, asFailures, asPasses] = cellTexts(cell);
      return [
        `${model}${several ? `, ${agent}` : ""}, ${capability}: ${valid} of ${planned} valid, errors: ${errors}`,
        `  PR ${passRate}  err=0 ${asFailures}  err=1 ${asPasses}`,
        `  AS ${averageScore}`,
      ].join("\n");
    })
    .join("\n");
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
    "PR, pass rate: share of valid attempts that passed. AS, average score: their mean score.",
    "Both over task means, with a 95 % interval over tasks, a task and its twin as one cluster.",
    "err=0, err=1: the pass rate with errors counted as failures, as passes.",
  ];
  if (board.unplanned > 0) {
    lines.push(
      `${board.unplanned} attempts of earlier forms of this sweep are not planned any more and count nowhere.`,
    );
  }
  return lines;
}
