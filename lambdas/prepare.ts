/**
 * Prepare: opens the next try of an attempt, or says why nothing is to be launched.
 *
 * Each round of an execution has exactly one row of its generation, so the round-th row of the generation is what an
 * earlier delivery of the same event did, and the answer is taken from there.
 */
import { closedWithoutResult, openRow } from "../lib/attempt/attempt-row.ts";
import {
  type PrepareEvent,
  type PrepareResult,
  prepareEnds,
  prepareEvent,
  prepareResult,
} from "../lib/attempt/functions.ts";
import { worstCaseUsd } from "../lib/attempt/reservation.ts";
import { isValidStatus } from "../lib/attempt/vocabulary.ts";
import type { Clock, Lease, ObjectStore, Random, ScoreRow, ScoreTable } from "../lib/platform/ports.ts";
import type { AgentChoice, ManifestLine } from "../lib/sweep/manifest-line.ts";
import { base32 } from "../lib/tasks/canonical.ts";
import type { RunnerPart } from "../lib/tasks/published.ts";
import type { CloseLeftOpen } from "./close-left-open.ts";
import { functionError } from "./function-error.ts";
import { type PublishedLookup, publishedPackages } from "./published-package.ts";

export interface PrepareDeps {
  store: ObjectStore;
  scores: ScoreTable;
  clock: Clock;
  random: Random;
  /** For tries that an earlier generation left open. */
  closeLeftOpen: CloseLeftOpen;
  /** The agent's image by digest, locally its bundle's version; null for an agent that cannot be launched here. */
  imageOf(agent: AgentChoice): string | null;
  /** Seconds that the Turn state may last beyond the turn itself: start of the executor, collecting, the answer. */
  turnMarginSeconds: number;
  /** Longest silence of a runner, from the opening of a turn on: so it includes the executor's start. */
  heartbeatSeconds: number;
  /** Seconds after which a lease is dropped, if all else failed. */
  leaseSeconds: number;
}

const secretBytes = 32;
const mailboxBytes = 16;

/** @throws Proctor.AlreadyDone, Proctor.Refused: nothing is to be launched; StoreError */
export function prepareHandler(deps: PrepareDeps): (event: unknown) => Promise<PrepareResult> {
  const published = publishedPackages(deps.store);
  return async (event) => {
    const asked = prepareEvent.parse(event);
    // Two deliveries at once may want the same try number; the one that comes second looks again.
    for (let look = 0; look < 5; look++) {
      const result = await prepareOnce(deps, published, asked);
      if (result !== "lost_race") return prepareResult.parse(result);
    }
    throw new Error(`tries of ${asked.line.attempt} are opened faster than they can be counted`);
  };
}

async function prepareOnce(
  deps: PrepareDeps,
  published: PublishedLookup,
  asked: PrepareEvent,
): Promise<PrepareResult | "lost_race"> {
  const { line, round } = asked;
  const tries = await deps.scores.tries(line.sweep, line.attempt);
  refuseWhatIsDone(tries);
  const later = tries.find((row) => row.generation > line.generation);
  if (later) {
    throw functionError(prepareEnds.refused, `generation ${later.generation} runs this attempt already`);
  }

  const before = tries.filter((row) => row.generation === line.generation)[round - 1];
  if (before) {
    const lease = before.status === "running" ? await deps.scores.lease(line.attempt, before.try) : null;
    if (lease) return launchResult(deps, line, lease, before.digests.image ?? "");
    if (before.status !== "running") throw functionError(prepareEnds.refused, before.reason);
  }
  for (const open of tries.filter((row) => row.status === "running")) {
    await deps.closeLeftOpen(open, line, {
      status: "infra_error",
      reason: "interrupted: the run that opened this try ended",
    });
    // It may have been finished, but for its row.
    const closed = (await deps.scores.tries(line.sweep, line.attempt)).filter((row) => row.try === open.try);
    refuseWhatIsDone(closed);
    if (closed.some((row) => row.status === "unjudged")) {
      throw functionError(prepareEnds.refused, `try ${open.try} needs a judge, not another run`);
    }
  }
  return openNext(deps, published, asked, (tries.at(-1)?.try ?? 0) + 1);
}

/** @throws Proctor.AlreadyDone */
function refuseWhatIsDone(tries: readonly ScoreRow[]): void {
  const valid = tries.find((row) => isValidStatus(row.status));
  if (valid) throw functionError(prepareEnds.alreadyDone, `try ${valid.try} has the valid status ${valid.status}`);
}

async function openNext(
  deps: PrepareDeps,
  published: PublishedLookup,
  { line, round }: PrepareEvent,
  tryNumber: number,
): Promise<PrepareResult | "lost_race"> {
  const image = deps.imageOf(line.agent);
  const found = await published(line.task, line.digest);
  const row = openRow(line, tryNumber, {
    now: deps.clock.now(),
    isolation: null,
    image,
    loweredLimits: found.kind === "published" ? loweredLimits(line, found.runner) : {},
  });
  if (found.kind === "unusable") return refuse(deps, row, "infra_error", found.reason);
  if (image === null) {
    return refuse(
      deps,
      row,
      "infra_error",
      `the agent ${line.agent.name} ${line.agent.version} cannot be launched here`,
    );
  }
  const usd = worstCaseUsd(line);
  if (!(await deps.scores.reserve(line.sweep, usd))) {
    return refuse(
      deps,
      row,
      "cost_stopped",
      `$${usd} more would pass the sweep's cap; raise limits.usd and run it again`,
    );
  }
  const lease: Lease = {
    sweep: line.sweep,
    attempt: line.attempt,
    try: tryNumber,
    generation: line.generation,
    round,
    mailbox: base32(deps.random.bytes(mailboxBytes)),
    sealKey: Buffer.from(deps.random.bytes(secretBytes)).toString("base64"),
    turnSecret: Buffer.from(deps.random.bytes(secretBytes)).toString("base64url"),
    turnToken: null,
    reservedUsd: usd,
    executor: null,
    expiresAt: new Date(deps.clock.now() + deps.leaseSeconds * 1000).toISOString(),
  };
  let opened = false;
  try {
    opened = await deps.scores.openTry(row, lease);
  } finally {
    // From here on the lease holds the dollars; without one nobody would give them back.
    if (!opened) await deps.scores.reserve(line.sweep, -usd);
  }
  return opened ? launchResult(deps, line, lease, image) : "lost_race";
}

/** Writes the row that says why, then refuses. */
async function refuse(
  deps: PrepareDeps,
  row: ScoreRow,
  status: "infra_error" | "cost_stopped",
  reason: string,
): Promise<"lost_race"> {
  const written = await deps.scores.closeTry(closedWithoutResult(row, status, reason, deps.clock.now()));
  if (!written) return "lost_race";
  throw functionError(prepareEnds.refused, reason);
}

function launchResult(deps: PrepareDeps, line: ManifestLine, lease: Lease, image: string): PrepareResult {
  const { limits, model } = line;
  const turnTimeoutSeconds = Math.ceil(Math.min(limits.turnSeconds, limits.totalSeconds) + deps.turnMarginSeconds);
  return {
    v: 1,
    next: "launch",
    try: lease.try,
    mailbox: lease.mailbox,
    sealKey: lease.sealKey,
    turnSecret: lease.turnSecret,
    image,
    keyName: model.api === "scripted" ? null : model.keyName,
    turnTimeoutSeconds,
    // Step Functions refuses a heartbeat that is not shorter than the timeout.
    heartbeatSeconds: Math.min(deps.heartbeatSeconds, Math.max(1, turnTimeoutSeconds - 1)),
  };
}

/** Limits that the sweep set below the package's own, by their name in the line. */
function loweredLimits({ limits }: ManifestLine, own: RunnerPart): Record<string, number> {
  const lowered: Record<string, number> = {};
  if (limits.turnSeconds < own.timeoutSeconds) lowered.turnSeconds = limits.turnSeconds;
  if (limits.totalSeconds < own.maxTotalSeconds) lowered.totalSeconds = limits.totalSeconds;
  return lowered;
}
