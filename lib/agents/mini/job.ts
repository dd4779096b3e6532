/** What mini's process is started with: a file, since a message can be longer than an argument may be. */
import { z } from "zod";

export const miniVersion = "1";
export const miniTranscript = "mini.jsonl";

export const miniOptions = z.strictObject({
  /** Answers are streamed. */
  stream: z.boolean().default(false),
  /** Model calls in one turn at most. */
  maxSteps: z.number().int().min(1).max(500).default(80),
  /** Seconds that one command may run when the model names none. */
  bashTimeoutSeconds: z.number().positive().max(3600).default(120),
  /** Characters of a tool's output that the model gets; the middle of longer ones is left out. */
  maxOutputChars: z.number().int().min(200).max(400_000).default(20_000),
  /** Passed to the API when given. */
  temperature: z.number().min(0).max(2).optional(),
  reasoningEffort: z.enum(["low", "medium", "high"]).optional(),
});

export const miniJob = z.object({
  turn: z.number().int().positive(),
  message: z.string(),
  model: z.string(),
  workspace: z.string(),
  state: z.string(),
  options: miniOptions,
});
export type MiniJob = z.infer<typeof miniJob>;

/** Variables of mini's environment. */
export const miniEnv = { baseUrl: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" } as const;
