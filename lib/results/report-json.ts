/** A report as one JSON object: flat enough to read with jq. A null stands beside its reason. */
import type { Computed } from "./computed.ts";
import type { Cell, Estimate, Leaderboard } from "./leaderboard.ts";
import type { Provenance } from "./provenance.ts";

export interface ReportHead {
  sweep: string;
  generation: number;
  running: boolean;
}

export function reportJson(head: ReportHead, board: Leaderboard, provenance: Provenance): Record<string, unknown> {
  return {
    v: 1,
    ...head,
    ...board.overall,
    statuses: board.statuses,
    unplanned: board.unplanned,
    provenance,
    capabilities: board.capabilities,
    systems: board.systems.map((system) => ({
      agent: system.agent,
      agentVersion: system.agentVersion,
      model: system.model,
      overall: cellJson(system.overall),
      byCapability: Object.fromEntries(
        Object.entries(system.byCapability).map(([capability, cell]) => [capability, cellJson(cell)]),
      ),
      executorSeconds: system.executorSeconds,
      executorTokens: system.executorTokens,
      usd: system.usd,
    })),
  };
}

function cellJson(cell: Cell): Record<string, unknown> {
  const { passRate, averageScore, ...counts } = cell;
  return {
    ...counts,
    passRate: {
      validOnly: estimateJson(passRate.validOnly),
      errorsAsFailures: estimateJson(passRate.errorsAsFailures),
      errorsAsPasses: estimateJson(passRate.errorsAsPasses),
    },
    averageScore: estimateJson(averageScore),
  };
}

/** `ci95`: [low, high]. */
function estimateJson(estimate: Computed<Estimate>): Record<string, unknown> {
  if (estimate.value === null) {
    return { value: null, reason: estimate.reason, ci95: null, ci95Reason: estimate.reason };
  }
  const { value, interval } = estimate.value;
  const ci95 = interval.value === null ? null : [interval.value.low, interval.value.high];
  return { value, reason: null, ci95, ci95Reason: interval.reason };
}
