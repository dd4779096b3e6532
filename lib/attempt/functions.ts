/**
 * What goes into each function of the state machines and what comes out: ids, keys and counts, never content.
 * The .asl.json files are written against these schemas; a handler parses its event with them.
 */
import { z } from "zod";
import { manifestLine } from "../sweep/manifest-line.ts";
import { turnReport } from "../trajectory/turn-report.ts";
import { attemptState, rowStatus, verdict } from "./vocabulary.ts";

const v = z.literal(1);
const tryNumber = z.number().int().positive();
const turnNumber = z.number().int().positive();

/** `round`: which try of this execution, from 1; it makes a redelivered call answer with the try it opened before. */
export const prepareEvent = z.object({ v, line: manifestLine, round: z.number().int().positive() });
export const prepareResult = z.discriminatedUnion("next", [
  z.object({
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
  }),
  /** Nothing to launch: `done` has a valid row already; `refused` wrote the row that says why. */
  z.object({ v, next: z.enum(["done", "refused"]), try: tryNumber.nullable(), status: rowStatus, reason: z.string() }),
]);

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
  waitedSeconds: z.number().nonnegative(),
});

/** `turn`: the one that ended; the message opens the next. The four fields of a decision and nothing else of it. */
export const simulateEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  turn: turnNumber,
  verdict,
  attempt_state: attemptState,
  recoverable: z.boolean(),
  score: z.number().min(0).max(1),
  waitedSeconds: z.number().nonnegative(),
});
export const simulateResult = z.object({
  v,
  next: z.enum(["more", "turn"]),
  followUpKey: z.string().nullable(),
  fallback: z.boolean(),
  waitedSeconds: z.number().nonnegative(),
});

/** `fault`: what a Catch caught, or the names below that the machine itself gives. */
export const recordEvent = z.object({
  v,
  line: manifestLine,
  try: tryNumber,
  /** Turns that were opened. */
  turns: z.number().int().nonnegative(),
  fault: z.object({ error: z.string(), cause: z.string().max(2000) }).nullable(),
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

export const preflightEvent = z.object({
  v,
  sweep: z.string(),
  generation: z.number().int().positive(),
  lanes: z.array(z.object({ lane: z.string(), manifestKey: z.string(), concurrency: z.number().int().positive() })),
});
export const preflightResult = z.object({
  v,
  lanes: z.array(
    z.object({
      lane: z.string(),
      manifestKey: z.string(),
      concurrency: z.number().int().positive(),
      attempts: z.number().int().nonnegative(),
    }),
  ),
});

export const compactEvent = z.object({ v, sweep: z.string(), generation: z.number().int().positive() });
export const compactResult = z.object({
  v,
  compaction: z.number().int().positive(),
  rows: z.number().int().nonnegative(),
});

export type PrepareEvent = z.infer<typeof prepareEvent>;
export type PrepareResult = z.infer<typeof prepareResult>;
export type OpenTurnEvent = z.infer<typeof openTurnEvent>;
export type SuperviseEvent = z.infer<typeof superviseEvent>;
export type SuperviseResult = z.infer<typeof superviseResult>;
export type SimulateEvent = z.infer<typeof simulateEvent>;
export type SimulateResult = z.infer<typeof simulateResult>;
export type RecordEvent = z.infer<typeof recordEvent>;
export type RecordResult = z.infer<typeof recordResult>;
export type PreflightEvent = z.infer<typeof preflightEvent>;
export type PreflightResult = z.infer<typeof preflightResult>;
export type CompactEvent = z.infer<typeof compactEvent>;
export type CompactResult = z.infer<typeof compactResult>;
/** What the Turn state gives: the runner's answer to the token. */
export const turnResult = turnReport;
