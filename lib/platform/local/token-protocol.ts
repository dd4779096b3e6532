/** How a runner answers its turn's token on one machine: JSON over HTTP on a Unix socket, one POST for each answer. */
import { z } from "zod";

/** Largest body: a turn report is 4 KB at most, a cause 32 KB in Step Functions. */
export const maxTokenBody = 64 * 1024;

const token = z.string().min(1).max(2048);
export const tokenCalls = {
  "/succeed": z.strictObject({ token, output: z.unknown() }),
  "/fail": z.strictObject({ token, error: z.string().max(256), cause: z.string().max(32_768) }),
  "/heartbeat": z.strictObject({ token }),
} as const;
export type TokenPath = keyof typeof tokenCalls;

export const tokenAnswer = z.object({ answer: z.enum(["accepted", "closed"]) });
