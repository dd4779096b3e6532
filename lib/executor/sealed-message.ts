/** What open-turn puts into a try's mailbox, before it is sealed (AES-256-GCM, the try's key). */
import { z } from "zod";
import { agentChoice, modelChoice } from "../sweep/manifest-line.ts";

/** Access for one turn of one try. `local`: folders of this machine, opened through the matrix's guard. */
const turnCredentials = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("local"),
    /** Root of the object store. */
    objects: z.string(),
    /** Unix socket that takes answers to tokens. */
    tokens: z.string(),
  }),
  z.object({
    kind: z.literal("aws"),
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    sessionToken: z.string(),
    region: z.string(),
  }),
]);
export type TurnCredentials = z.infer<typeof turnCredentials>;

export const sealedMessage = z.object({
  v: z.literal(1),
  sweep: z.string(),
  attempt: z.string(),
  try: z.number().int().positive(),
  turn: z.number().int().positive(),
  epoch: z.number().int().positive(),
  /** ISO 8601: when the runner has to have answered at the latest. */
  deadline: z.iso.datetime(),
  request: z.object({ kind: z.enum(["task", "followup"]), text: z.string().min(1) }),
  agent: agentChoice,
  model: modelChoice,
  package: z.object({ task: z.string(), digest: z.string() }),
  /** Privacy values by name. */
  env: z.record(z.string(), z.string()),
  credentials: turnCredentials,
  taskToken: z.string(),
  agentAddress: z.string().optional(),
  limits: z.object({
    /** Seconds that this turn may take: the lesser of the turn's and what is left of the total. */
    turnSeconds: z.number().positive(),
    /** True when `turnSeconds` is what was left of the total: passing it is a global timeout. */
    totalBinds: z.boolean(),
    noStartSeconds: z.number().positive(),
    stallSeconds: z.number().positive(),
    /** Dollars and tokens left for the executor in this attempt; null: no cap. */
    usd: z.number().nonnegative().nullable(),
    tokens: z.number().int().nonnegative().nullable(),
  }),
  secondsUsed: z.number().nonnegative(),
});
export type SealedMessage = z.infer<typeof sealedMessage>;
