/**
 * HTTP between runner and turn server. Each request carries the try's secret in `authorization: Bearer <secret>`, and so
 * does each response in `x-proctor-secret`; what comes from the agent's side is hostile and parsed with limits.
 *
 *     PUT  /package          tar of the package's agent/ part       -> {files, bytes}
 *     POST /turn             turnRequest                            -> NDJSON of turnOutput; 409 while one runs
 *     GET  /results?turn=N   tar of transcript/**, then results/**; last entry `_end.json`
 *     POST /stop             ends the agent's process group          -> {}
 *     GET  /health           -> {}
 */
import { z } from "zod";

const v = z.literal(1);

export const turnRequest = z.object({
  v,
  turn: z.number().int().positive(),
  message: z.string().min(1),
  /** The same for all turns of a try: the agent's conversation. */
  sessionId: z.string(),
  timeoutSeconds: z.number().positive(),
  agent: z.object({ name: z.string(), options: z.record(z.string(), z.unknown()) }),
  /** Name of the model as the agent shall ask the gateway for it. */
  model: z.string(),
  /** `baseUrl` of the gateway as the turn server reaches it; `unix:<path>` is forwarded to a loopback port. */
  gateway: z.object({ baseUrl: z.string(), key: z.string() }),
  env: z.record(z.string(), z.string()),
});
export type TurnRequest = z.infer<typeof turnRequest>;

/** A line of the answer to POST /turn. `t`: milliseconds since the turn began. */
export const turnOutput = z.union([
  z.object({ t: z.number(), stream: z.enum(["out", "err"]), text: z.string() }),
  z.object({ t: z.number(), event: z.literal("started") }),
  z.object({
    t: z.number(),
    event: z.literal("exit"),
    code: z.number().int().nullable(),
    signal: z.string().nullable(),
  }),
]);
export type TurnOutput = z.infer<typeof turnOutput>;

export const packageAnswer = z.object({ v, files: z.number().int(), bytes: z.number().int() });

/** Last entry of GET /results: without it the stream was cut. */
export const resultsEnd = z.object({
  v,
  files: z.number().int().nonnegative(),
  bytes: z.number().int().nonnegative(),
  skipped: z.array(z.object({ path: z.string(), reason: z.string() })),
});
export type ResultsEnd = z.infer<typeof resultsEnd>;
export const resultsEndName = "_end.json";

/** Limits on what a runner takes from an agent. Results and transcript have each their own: neither costs the other. */
export const collectLimits = {
  /** Files of results/. */
  files: 20_000,
  /** Bytes of results/ together. */
  bytes: 2 * 1024 ** 3,
  transcriptFiles: 100,
  /** Bytes of a turn's transcript files together; a runner holds them in memory. */
  transcriptBytes: 64 * 1024 ** 2,
  /** Bytes of one file. */
  fileBytes: 512 * 1024 ** 2,
  depth: 32,
  nameBytes: 800,
  outputLineBytes: 64 * 1024,
  outputBytes: 64 * 1024 ** 2,
} as const;
export type CollectLimits = Record<keyof typeof collectLimits, number>;
