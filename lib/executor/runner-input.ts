/**
 * What a runner is started with: one line of JSON on its standard input. Secrets reach a runner this way alone, never by
 * its arguments or environment. The runner leaves when its standard input ends: so the end of the process that started
 * it, however sudden, is the runner's end too.
 */
import { z } from "zod";
import { isolation } from "../attempt/vocabulary.ts";

export const runnerInput = z.strictObject({
  v: z.literal(1),
  try: z.strictObject({ attempt: z.string().min(1), try: z.number().int().positive() }),
  /** Root folder of the object store. */
  objects: z.string().min(1),
  /** The random part of the mailbox's keys. */
  mailbox: z.string().min(1),
  /** base64, 32 bytes: opens the sealed messages of this try. */
  sealKey: z.string().min(1),
  /** What runner and turn server show each other. */
  turnSecret: z.string().min(1),
  /** Unix socket on which the turn server listens already. */
  turnServer: z.string().min(1),
  /** Unix socket that the runner's model gateway shall listen on; its folder exists, the socket does not. */
  gatewaySocket: z.string().min(1),
  /** The same socket as the turn server sees it, `unix:<path>`: goes into a turn request as `gateway.baseUrl`. */
  gatewayBaseUrl: z.string().startsWith("unix:/"),
  /** The executor provider's key; null where none is needed. */
  providerKey: z.string().nullable(),
  /** Unix socket that takes answers to turn tokens. */
  tokens: z.string().min(1),
  isolation,
});
export type RunnerInput = z.infer<typeof runnerInput>;

/**
 * A runner as a function, for launchers that run it in their own process. It resolves when its executor has nothing
 * more to do, and soon after `stop` is aborted; that stands for the end of standard input.
 */
export type RunRunner = (input: RunnerInput, stop: AbortSignal) => Promise<void>;
