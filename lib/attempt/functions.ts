/**
 * What goes into each function of the state machines and what comes out: ids, keys and counts, never content.
 * The .asl.json files are written against these schemas; a handler parses its event with them.
 */
import { z } from "zod";
import { crossing } from "../roles/decision.ts";
import { manifestLine } from "../sweep/manifest-line.ts";
import { attemptState, rowStatus, verdict } from "./vocabulary.ts";

const v = z.literal(1);
const tryNumber = z.number().int().positive();
const turnNumber = z.number().int().positive();

/** `round`: which try of this execution, from 1; it makes a redelivered call answer with the try it opened before. */
export const prepareEvent = z.object({ v, line: manifestLine, round: z.number().int().positive() });
export const prepareResult = z.object({
  v,
  next: z.literal("launch"),
  try: tryNumber,
  mailbox: z.string(),
  sealKey: z.string(),
  turnSecret: z.string(),
  /** Image by digest in the cloud, the bundle's version locally. */
  image: z.string(),
  keyName: z.string().nullable(),
  /** How long the Turn state may last: the turn's own seconds and what surrounds it. */
  turnTimeoutSeconds: z.number().int().positive(),
  heartbeatSeconds: z.number().int().positive(),
});
/**
 * Errors by which Prepare says that there is nothing to launch. They are names, not results, so that an attempt that is
 * launched needs no Choice for them.
 */
export const prepareEnds = {
  /** The attempt has a valid row already. */
  alreadyDone: "Proctor.AlreadyDone",
  /** It cannot succeed, or must not be paid for: the row that says why is written. */
  refused: "Proctor.Refused",
} as const;

export const openTurnEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  turn: turnNumber,
  taskToken: z.string().min(1).max(2048),
  /** What earlier turns of this try used. */
  secondsUsed: z.number().nonnegative(),
  usdUsed: z.number().nonnegative(),
  tokensUsed: z.number().nonnegative(),
  /** The launcher's name of the executor. */
  executor: z.string(),
});

/** What open-turn gives is not what Turn gives: that is the runner's answer to the token, a turn report. */
const openTurnResult = z.object({ v, turn: turnNumber });
/** Errors of open-turn. */
export const openTurnErrors = {
  /** The message of that turn stands in the mailbox already: somebody opened it before. An infra fault. */
  turnExists: "Proctor.TurnExists",
  /** The user simulator has not written the message yet: it is asked again. */
  followUpNotReady: "Proctor.FollowUpNotReady",
  /** The try was closed meanwhile. */
  tryClosed: "Proctor.TryClosed",
  /** A privacy value of the package is not set. */
  privacyValueMissing: "Proctor.PrivacyValueMissing",
} as const;

export const superviseEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  turn: turnNumber,
  /** Seconds that this turn's supervision has waited for models so far. */
  waitedSeconds: z.number().nonnegative(),
});
export const superviseResult = z.object({
  v,
  /** more: call again. continue: a follow-up comes. stop: to Record. */
  next: z.enum(["more", "continue", "stop"]),
  /** Null while there is no decision: `more`, and turns that are not supervised. */
  verdict: verdict.nullable(),
  attempt_state: attemptState.nullable(),
  recoverable: z.boolean(),
  score: z.number().min(0).max(1).nullable(),
  decisionKey: z.string().nullable(),
  /** The event's, and what this call waited. */
  waitedSeconds: z.number().nonnegative(),
});

/** `turn`: the one that ended; the message opens the next. The four fields of a decision and nothing else of it. */
export const simulateEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  turn: turnNumber,
  ...crossing.shape,
  waitedSeconds: z.number().nonnegative(),
});
export const simulateResult = z.object({
  v,
  next: z.enum(["more", "turn"]),
  followUpKey: z.string().nullable(),
  fallback: z.boolean(),
  /** The event's, and what this call waited. */
  waitedSeconds: z.number().nonnegative(),
});

/** `fault`: what a Catch caught, or the names below that the machine itself gives. */
export const recordEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  /** Turns that were opened. */
  turns: z.number().int().nonnegative(),
  /** The machines cut a cause at 2,000 characters as JSONata counts them: code points, up to two of our units each. */
  fault: z.object({ error: z.string(), cause: z.string().max(4000) }).nullable(),
  /** True in the judge machine: the executor is gone, so no turn can follow. */
  executorGone: z.boolean(),
});
/** Fault names that the machine gives itself. */
export const machineFaults = {
  /** Supervision waited its 20 minutes. */
  unjudged: "Proctor.Unjudged",
  /** The user simulator stayed silent for 20 minutes. */
  simulatorSilent: "Proctor.SimulatorSilent",
  launchFailed: "Proctor.LaunchFailed",
  cancelled: "Proctor.Cancelled",
  /** The sweep's own cap held the attempt back. */
  costStopped: "Proctor.CostStopped",
  /** A package's pre_exec failed before the first turn. */
  preExecFailed: "Proctor.PreExecFailed",
} as const;
export const recordResult = z.object({
  v,
  status: rowStatus,
  /** retry: a new try is to run after `delaySeconds`. */
  next: z.enum(["retry", "done"]),
  delaySeconds: z.number().int().nonnegative(),
});

/** Input of the attempt machine is a manifest line; this is what the judge machine gets. `turns`: the last turn that ran. */
const judgeInput = z.object({ v, line: manifestLine, try: tryNumber, turns: turnNumber });

const laneOfSweep = z.object({
  /** Name of the lane: one for each model. */
  lane: z.string(),
  manifestKey: z.string(),
  concurrency: z.number().int().positive(),
});
/** Input of the sweep machine, and of Preflight. */
export const preflightEvent = z.object({
  v,
  sweep: z.string(),
  generation: z.number().int().positive(),
  lanes: z.array(laneOfSweep).min(1),
});
/** Error of a sweep that must not start. */
export const preflightRefused = "Proctor.PreflightRefused";
export const preflightResult = z.object({
  v,
  lanes: z.array(laneOfSweep.extend({ attempts: z.number().int().nonnegative() })),
});

export const compactEvent = z.object({ v, sweep: z.string(), generation: z.number().int().positive() });
const compactResult = z.object({
  v,
  compaction: z.number().int().positive(),
  rows: z.number().int().nonnegative(),
});

/** An executor ended, whoever ended it: ECS's "Task State Change" in the cloud, the launcher's word locally. */
export const taskStoppedEvent = z.object({
  v,
  executor: z.string(),
  startedBy: z.string(),
  /** Exit code of the runner or, where it is the one that failed, the agent; null when a signal or the platform ended it. */
  code: z.number().int().nullable(),
  signal: z.string().nullable(),
  /** ECS's stopCode; null locally. */
  stopCode: z.string().nullable(),
  reason: z.string(),
});
const taskStoppedResult = z.object({ v, answered: z.enum(["failed", "closed", "no_open_turn"]) });

/** An execution of the attempt machine ended without success. */
export const executionEndedEvent = z.object({
  v,
  name: z.string(),
  status: z.enum(["FAILED", "TIMED_OUT", "ABORTED"]),
  error: z.string().nullable(),
  cause: z.string().nullable(),
  /** The execution's input; null when the event had no room for it. */
  line: manifestLine.nullable(),
});
const executionEndedResult = z.object({
  v,
  closed: z.number().int().nonnegative(),
  stopped: z.number().int().nonnegative(),
});

export type PrepareEvent = z.infer<typeof prepareEvent>;
export type PrepareResult = z.infer<typeof prepareResult>;
export type OpenTurnEvent = z.infer<typeof openTurnEvent>;
export type OpenTurnResult = z.infer<typeof openTurnResult>;
export type SuperviseEvent = z.infer<typeof superviseEvent>;
export type SuperviseResult = z.infer<typeof superviseResult>;
export type SimulateEvent = z.infer<typeof simulateEvent>;
export type SimulateResult = z.infer<typeof simulateResult>;
export type RecordEvent = z.infer<typeof recordEvent>;
export type RecordResult = z.infer<typeof recordResult>;
export type PreflightResult = z.infer<typeof preflightResult>;
export type JudgeInput = z.infer<typeof judgeInput>;
export type TaskStoppedEvent = z.infer<typeof taskStoppedEvent>;
export type TaskStoppedResult = z.infer<typeof taskStoppedResult>;
export type ExecutionEndedEvent = z.infer<typeof executionEndedEvent>;
export type ExecutionEndedResult = z.infer<typeof executionEndedResult>;
export type CompactResult = z.infer<typeof compactResult>;
