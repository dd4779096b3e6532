/**
 * A sweep's results: the planned attempts held against the rows that exist, by model and agent, overall and by capability.
 * An attempt counts with its first valid try, never with the best of several. What cannot be computed is null with a
 * reason.
 */
import { type ReportStatus, reportStatus } from "../attempt/vocabulary.ts";
import type { ManifestLine } from "../sweep/manifest-line.ts";
import { rowsByAttempt, standingRow } from "../sweep/resume.ts";
import { type Computed, computed, notComputed } from "./computed.ts";
import type { ScoreRow } from "./score-row.ts";
import { clusteredMean, type Interval, meanInterval, passRateInterval, taskMeanRateInterval } from "./statistics.ts";

export interface Leaderboard {
  /** All planned attempts by status; a status that none has is left out. */
  statuses: Partial<Record<ReportStatus, number>>;
  overall: Counts;
  /** Best pass rate first, then best score, then by name; systems without a result last. */
  systems: SystemResults[];
  /** Capabilities in alphabetical order. */
  capabilities: string[];
  /** Attempts that have rows and are not planned any more: the sweep was edited. They count nowhere. */
  unplanned: number;
}

/** One agent with one model. */
export interface SystemResults {
  agent: string;
  agentVersion: string;
  model: string;
  overall: Cell;
  byCapability: Record<string, Cell>;
  /** Means over the attempts that count. */
  executorSeconds: Computed<number>;
  executorTokens: Computed<{ input: number; output: number }>;
  /** Dollars of all tries, by role. */
  usd: { executor: number; supervisor: number; simulator: number };
}

/** planned = valid + pending + errors. */
export interface Counts {
  planned: number;
  valid: number;
  /** Without a row that ended, while the sweep runs. */
  pending: number;
  errors: number;
  /** Errors by kind; under `compat` an executor_incomplete is one, as in the original. */
  errorsByKind: Partial<Record<ReportStatus, number>>;
}

export interface Estimate {
  value: number;
  /** 95 %, two-sided. */
  interval: Computed<Interval>;
}

export interface Cell extends Counts {
  /** Tasks and clusters with a valid result. */
  tasks: number;
  clusters: number;
  /** PR three ways. Pending attempts are in none of them. */
  passRate: {
    validOnly: Computed<Estimate>;
    errorsAsFailures: Computed<Estimate>;
    errorsAsPasses: Computed<Estimate>;
  };
  /** AS over valid results. */
  averageScore: Computed<Estimate>;
}

/** What stands for a planned attempt. */
interface Standing {
  line: ManifestLine;
  row: ScoreRow | null;
  kind: "valid" | "pending" | "error";
  status: ReportStatus;
  /** All tries, for what they cost. */
  tries: readonly ScoreRow[];
}

/** @param running whether somebody runs the sweep now: what has no end yet is pending then, and missing otherwise */
export function leaderboard(planned: readonly ManifestLine[], rows: Iterable<ScoreRow>, running: boolean): Leaderboard {
  const tries = rowsByAttempt(rows);
  const standings = planned.map((line) => standingOf(line, tries.get(line.attempt) ?? [], running));
  const plannedIds = new Set(planned.map((line) => line.attempt));
  return {
    statuses: count(standings.map(({ status }) => status)),
    overall: countsOf(standings),
    systems: groupBy(standings, ({ line }) => JSON.stringify([line.agent.name, line.agent.version, line.model.name]))
      .map(systemOf)
      .sort(byResult),
    capabilities: [...new Set(planned.map((line) => line.capability))].sort(),
    unplanned: [...tries.keys()].filter((attempt) => !plannedIds.has(attempt)).length,
  };
}

function standingOf(line: ManifestLine, tries: readonly ScoreRow[], running: boolean): Standing {
  const row = standingRow(tries);
  const of = { line, row, tries };
  if (row === null || row.status === "running") {
    return running ? { ...of, kind: "pending", status: "pending" } : { ...of, kind: "error", status: "missing" };
  }
  return { ...of, kind: row.valid ? "valid" : "error", status: row.status };
}

function systemOf(standings: readonly Standing[]): SystemResults {
  const [{ line }] = standings as [Standing];
  const valid = standings.flatMap(({ kind, row }) => (kind === "valid" && row ? [row] : []));
  const rows = standings.flatMap(({ tries }) => tries);
  const mean = (of: (row: ScoreRow) => number): number => sum(valid.map(of)) / valid.length;
  const usd = (role: keyof ScoreRow["usd"]): number => Math.round(sum(rows.map((row) => row.usd[role])) * 1e8) / 1e8;
  return {
    agent: line.agent.name,
    agentVersion: line.agent.version,
    model: line.model.name,
    overall: cellOf(standings),
    byCapability: Object.fromEntries(
      groupBy(standings, (standing) => standing.line.capability).map((group) => [
        group[0]!.line.capability,
        cellOf(group),
      ]),
    ),
    executorSeconds: valid.length === 0 ? noResults : computed(mean((row) => row.executor_seconds)),
    executorTokens:
      valid.length === 0
        ? noResults
        : computed({
            input: mean((row) => row.tokens.executor.input),
            output: mean((row) => row.tokens.executor.output),
          }),
    usd: { executor: usd("executor"), supervisor: usd("supervisor"), simulator: usd("simulator") },
  };
}

const noResults = notComputed("no valid results");

function cellOf(standings: readonly Standing[]): Cell {
  const valid = standings.filter(({ kind }) => kind === "valid");
  const ended = standings.filter(({ kind }) => kind !== "pending");
  const passed = ({ row }: Standing): number => (row?.passed ? 1 : 0);
  const clusters = clustersOf(valid, passed);
  return {
    ...countsOf(standings),
    tasks: clusters.reduce((total, cluster) => total + cluster.length, 0),
    clusters: clusters.length,
    passRate: {
      validOnly: rate(valid, passed),
      errorsAsFailures: rate(ended, (standing) => (standing.kind === "valid" ? passed(standing) : 0)),
      errorsAsPasses: rate(ended, (standing) => (standing.kind === "valid" ? passed(standing) : 1)),
    },
    averageScore: score(valid),
  };
}

function rate(standings: readonly Standing[], value: (standing: Standing) => number): Computed<Estimate> {
  const clusters = clustersOf(standings, value);
  const estimate = clusteredMean(clusters);
  if (estimate.value === null) return noResults;
  // With one result a task the values are 0 or 1 and Wilson holds; means over epochs lie between.
  const once = standings.length === estimate.value.n;
  const wilson = once ? passRateInterval(clusters) : null;
  const interval = wilson === null ? taskMeanRateInterval(clusters) : ciOf(wilson);
  return computed({ value: estimate.value.mean, interval });
}

function ciOf(rateInterval: ReturnType<typeof passRateInterval>): Computed<Interval> {
  return rateInterval.value === null ? rateInterval : computed(rateInterval.value.ci95);
}

function score(standings: readonly Standing[]): Computed<Estimate> {
  const clusters = clustersOf(standings, ({ row }) => row?.score ?? 0);
  const estimate = clusteredMean(clusters);
  if (estimate.value === null) return noResults;
  // Scores lie in [0, 1], and so does their mean: an interval says nothing of what is outside.
  const interval = meanInterval(clusters);
  return computed({
    value: estimate.value.mean,
    interval:
      interval.value === null
        ? interval
        : computed({ low: Math.max(0, interval.value.low), high: Math.min(1, interval.value.high) }),
  });
}

/** Task means over epochs, in their clusters. */
function clustersOf(standings: readonly Standing[], value: (standing: Standing) => number): number[][] {
  return groupBy(standings, ({ line }) => line.cluster).map((cluster) =>
    groupBy(cluster, ({ line }) => line.task).map((epochs) => sum(epochs.map(value)) / epochs.length),
  );
}

function countsOf(standings: readonly Standing[]): Counts {
  const errors = standings.filter(({ kind }) => kind === "error");
  return {
    planned: standings.length,
    valid: standings.filter(({ kind }) => kind === "valid").length,
    pending: standings.filter(({ kind }) => kind === "pending").length,
    errors: errors.length,
    errorsByKind: count(errors.map(({ status }) => status)),
  };
}

/** In the order of the vocabulary. */
function count(statuses: readonly ReportStatus[]): Partial<Record<ReportStatus, number>> {
  const counts: Partial<Record<ReportStatus, number>> = {};
  for (const status of reportStatus.options) {
    const here = statuses.filter((one) => one === status).length;
    if (here > 0) counts[status] = here;
  }
  return counts;
}

function byResult(a: SystemResults, b: SystemResults): number {
  const rank = (of: Computed<Estimate>): number => of.value?.value ?? -1;
  return (
    rank(b.overall.passRate.validOnly) - rank(a.overall.passRate.validOnly) ||
    rank(b.overall.averageScore) - rank(a.overall.averageScore) ||
    byName(a.model, b.model) ||
    byName(a.agent, b.agent)
  );
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function groupBy<T>(items: readonly T[], key: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return [...groups.values()];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
