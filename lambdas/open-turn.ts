/**
 * Open turn: seals the next message and puts it into the try's mailbox; the runner then works and answers the token.
 *
 * The token is kept in the lease before the message is posted, so that whoever sees the executor die can fail the turn.
 */
import { type OpenTurnEvent, type OpenTurnResult, openTurnErrors, openTurnEvent } from "../lib/attempt/functions.ts";
import { seal, sealIvBytes } from "../lib/executor/seal.ts";
import type { SealedMessage, TurnCredentials } from "../lib/executor/sealed-message.ts";
import { followUpFileKey, mailboxKey, packageFile, type TryName, turnFolder } from "../lib/firewall/keys.ts";
import {
  type Clock,
  type ObjectStore,
  type Random,
  type ScoreTable,
  type Secrets,
  StoreError,
} from "../lib/platform/ports.ts";
import { followUp } from "../lib/roles/follow-up.ts";
import type { ManifestLine } from "../lib/sweep/manifest-line.ts";
import { publishedFiles, runnerPart } from "../lib/tasks/published.ts";
import { functionError } from "./function-error.ts";

export interface OpenTurnDeps {
  store: ObjectStore;
  scores: ScoreTable;
  clock: Clock;
  random: Random;
  /** Privacy values by name. */
  secrets: Secrets;
  /** Credentials for one turn of one try, cut down to it. */
  grantFor(of: TryName, from: { task: string; digest: string }): Promise<TurnCredentials>;
  /** The same as Prepare's: when the runner has to have answered. */
  turnMarginSeconds: number;
}

/** @throws Proctor.FollowUpNotReady, Proctor.TurnExists, Proctor.TryClosed, Proctor.PrivacyValueMissing, StoreError */
export function openTurnHandler(deps: OpenTurnDeps): (event: unknown) => Promise<OpenTurnResult> {
  return async (event) => {
    const asked = openTurnEvent.parse(event);
    const { line, turn, taskToken } = asked;
    const of = { attempt: line.attempt, try: asked.try };
    const lease = await deps.scores.lease(of.attempt, of.try);
    if (lease === null) throw tryClosed(of);

    const text = await requestText(deps.store, line, of, turn);
    const message = await turnMessage(deps, asked, of, text);
    const sealed = seal(lease.sealKey, message, deps.random.bytes(sealIvBytes));

    const kept = await deps.scores.updateLease(of.attempt, of.try, { turnToken: taskToken, executor: asked.executor });
    if (!kept) throw tryClosed(of);
    try {
      await deps.store.create(mailboxKey(lease.mailbox, turn), sealed);
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "already_exists")) throw error;
      // With this token in the lease it was posted by an earlier delivery of this event.
      if (lease.turnToken !== taskToken) {
        throw functionError(openTurnErrors.turnExists, `turn ${turn} of ${of.attempt} try ${of.try} was opened before`);
      }
    }
    return { v: 1, turn };
  };
}

async function requestText(store: ObjectStore, line: ManifestLine, of: TryName, turn: number): Promise<string> {
  if (turn === 1) {
    const bytes = await store.get(packageFile(line.task, line.digest, "agent", publishedFiles.request));
    return Buffer.from(bytes).toString("utf8");
  }
  try {
    const bytes = await store.get(followUpFileKey(of, `${turnFolder(turn)}.json`));
    return followUp.parse(JSON.parse(Buffer.from(bytes).toString("utf8"))).message;
  } catch (error) {
    if (!(error instanceof StoreError && error.code === "not_found")) throw error;
    throw functionError(openTurnErrors.followUpNotReady, `the message that opens turn ${turn} is not written yet`);
  }
}

async function turnMessage(
  deps: OpenTurnDeps,
  asked: OpenTurnEvent,
  of: TryName,
  text: string,
): Promise<SealedMessage> {
  const { line } = asked;
  const { limits } = line;
  // Supervision ends an attempt whose seconds are used up; a second is left to an answer that crossed it.
  const secondsLeft = Math.max(1, limits.totalSeconds - asked.secondsUsed);
  const turnSeconds = Math.min(limits.turnSeconds, secondsLeft);
  const from = { task: line.task, digest: line.digest };
  return {
    v: 1,
    sweep: line.sweep,
    attempt: of.attempt,
    try: of.try,
    turn: asked.turn,
    epoch: line.epoch,
    deadline: new Date(deps.clock.now() + (turnSeconds + deps.turnMarginSeconds) * 1000).toISOString(),
    request: { kind: asked.turn === 1 ? "task" : "followup", text },
    agent: line.agent,
    model: line.model,
    package: from,
    env: await privacyValues(deps, line),
    credentials: await deps.grantFor(of, from),
    taskToken: asked.taskToken,
    limits: {
      turnSeconds,
      totalBinds: secondsLeft <= limits.turnSeconds,
      noStartSeconds: limits.noStartSeconds,
      stallSeconds: limits.stallSeconds,
      usd: limits.usdPerAttempt === null ? null : Math.max(0, limits.usdPerAttempt - asked.usdUsed),
      tokens: limits.tokensPerAttempt === null ? null : Math.max(0, limits.tokensPerAttempt - asked.tokensUsed),
    },
    secondsUsed: asked.secondsUsed,
  };
}

async function privacyValues(deps: OpenTurnDeps, line: ManifestLine): Promise<Record<string, string>> {
  const bytes = await deps.store.get(packageFile(line.task, line.digest, "runner", publishedFiles.runner));
  const { privacy } = runnerPart.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  const values: Record<string, string> = {};
  for (const name of privacy) {
    const value = await deps.secrets.get(name);
    if (value === null) {
      throw functionError(
        openTurnErrors.privacyValueMissing,
        `${line.task} needs the value of ${name}, which is not set; see proctor doctor`,
      );
    }
    values[name] = value;
  }
  return values;
}

function tryClosed(of: TryName): Error {
  return functionError(openTurnErrors.tryClosed, `${of.attempt} try ${of.try} has no lease: it was closed`);
}
