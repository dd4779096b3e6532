/** What every command shares: how it ends, and how it says that it could not. */

import { ProblemsError, problemJson } from "../lib/tasks/problem.ts";
import { harmless } from "./terminal-text.ts";

/** 0 done, 1 the result is a failure, 2 the call was wrong, 3 infrastructure. */
export type ExitCode = 0 | 1 | 2 | 3;

export interface CommandResult {
  exitCode: ExitCode;
  /** What is printed on standard output: text for people, or one JSON object with `--json`. */
  text: string;
}

/** A failure with a message for its user. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  constructor(
    readonly exitCode: Exclude<ExitCode, 0>,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Writes all of `text` before it sets the exit code, also into a pipe that is read slowly. */
export async function endProcess(result: CommandResult): Promise<void> {
  process.exitCode = result.exitCode;
  if (result.text !== "") await write(process.stdout, result.text.endsWith("\n") ? result.text : `${result.text}\n`);
}

export async function reportFailure(error: unknown, json: boolean): Promise<void> {
  process.exitCode = error instanceof CommandError ? error.exitCode : error instanceof ProblemsError ? 2 : 3;
  const message = error instanceof Error ? error.message : String(error);
  if (json) {
    const problems = error instanceof ProblemsError ? error.problems.map(problemJson) : [];
    // The problems say it all; beside them the message would say it twice.
    const said = problems.length > 0 ? `${problems.length} ${problems.length === 1 ? "problem" : "problems"}` : message;
    await write(process.stdout, `${JSON.stringify({ error: said, problems })}\n`);
  } else {
    await write(process.stderr, `${message}\n`);
    if (process.env.PROCTOR_DEBUG && error instanceof Error) await write(process.stderr, `${error.stack}\n`);
  }
}

/** A call that is not understood, after its words on standard error; `exitCode` 0: help or version, which is none. */
export async function reportUsage(exitCode: number, message: string, json: boolean): Promise<void> {
  process.exitCode = exitCode === 0 ? 0 : 2;
  if (exitCode === 0 || !json) return;
  const error =
    message === "(outputHelp)" ? "no command was named; --help lists them" : message.replace(/^error: /, "");
  await write(process.stdout, `${JSON.stringify({ error, problems: [] })}\n`);
}

/**
 * A reader of our output that goes away (`| head`) ends no sweep: what is written after that is dropped. Without this,
 * the next line of progress would be an exception.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

function write(to: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // A sign of a terminal becomes its escape, which inside of JSON is the same string.
    to.write(harmless(text), (error) => {
      // A reader that went away (`| head`) is no failure of ours.
      if (error && (error as NodeJS.ErrnoException).code !== "EPIPE") reject(error);
      else resolve();
    });
  });
}
