/** What the null agent does in one turn: a process of its own calls it, and so does the in-process launcher. */
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { z } from "zod";

export const nullVersion = "1";
export const transcriptName = "null.jsonl";

export const nullOptions = z.strictObject({
  /** Its only message; without it, it says nothing. */
  message: z.string().optional(),
  /** A file to write, `path` below the workspace. */
  writeFile: z.strictObject({ path: z.string().min(1), content: z.string() }).optional(),
  exitCode: z.number().int().min(0).max(255).default(0),
  /** Seconds that it waits before it ends. */
  sleepSeconds: z.number().nonnegative().max(86_400).default(0),
});

export const nullJobSchema = z.object({
  turn: z.number().int().positive(),
  message: z.string(),
  workspace: z.string(),
  state: z.string(),
  options: nullOptions,
});
export type NullJob = z.infer<typeof nullJobSchema>;

/**
 * Runs one turn.
 * @param say takes what a process would print on standard output
 * @returns the exit code
 */
export async function runNull(job: NullJob, say: (text: string) => void, signal?: AbortSignal): Promise<number> {
  const { options } = job;
  const lines = [{ ts: Date.now(), role: "user", text: job.message }];
  if (options.writeFile) {
    const { path, content } = options.writeFile;
    const target = isAbsolute(path) ? path : join(job.workspace, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
  if (options.message !== undefined) {
    lines.push({ ts: Date.now(), role: "assistant", text: options.message });
    say(`${options.message}\n`);
  }
  await appendFile(join(job.state, transcriptName), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  if (options.sleepSeconds > 0 && !signal?.aborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, options.sleepSeconds * 1000);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  return options.exitCode;
}
