/** mini's three tools. What goes wrong in one is a result for the model, never an exception. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, stat, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { mapPlaces, type PlaceMap } from "../place-map.ts";

export interface ToolPlace {
  workspace: string;
  map: PlaceMap | null;
  bashTimeoutSeconds: number;
  maxOutputChars: number;
  /** Environment of commands. */
  env: Record<string, string>;
}

export interface ToolResult {
  text: string;
  isError: boolean;
}

const bashArguments = z.object({ command: z.string(), timeout_seconds: z.number().positive().max(3600).optional() });
const readArguments = z.object({
  path: z.string().min(1),
  offset: z.number().int().positive().optional(),
  limit: z.number().int().positive().optional(),
});
const writeArguments = z.object({ path: z.string().min(1), content: z.string() });

/** Runs one tool call. `argumentText` is the JSON text that the model gave. */
export async function callTool(name: string, argumentText: string, place: ToolPlace): Promise<ToolResult> {
  const map = (value: string): string => mapPlaces(value, place.map);
  try {
    switch (name) {
      case "bash": {
        const { command, timeout_seconds } = bashArguments.parse(parseArguments(argumentText));
        return await bash(map(command), timeout_seconds ?? place.bashTimeoutSeconds, place);
      }
      case "read": {
        const { path, offset, limit } = readArguments.parse(parseArguments(argumentText));
        return await readText(resolve(place.workspace, map(path)), offset ?? 1, limit ?? null, place.maxOutputChars);
      }
      case "write": {
        const { path, content } = writeArguments.parse(parseArguments(argumentText));
        const target = resolve(place.workspace, map(path));
        await mkdir(dirname(target), { recursive: true });
        await writeFile(target, map(content));
        return { text: `wrote ${Buffer.byteLength(map(content))} bytes to ${path}`, isError: false };
      }
      default:
        return { text: `there is no tool ${JSON.stringify(name)}; there are bash, read and write`, isError: true };
    }
  } catch (error) {
    const message =
      error instanceof z.ZodError
        ? error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`).join("; ")
        : error instanceof Error
          ? error.message
          : String(error);
    return { text: capped(message, place.maxOutputChars), isError: true };
  }
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    throw new Error("the arguments of the call are not JSON");
  }
}

/** Bytes of a command's output that are kept on each side of the cut, whatever the model may see of them. */
const keptBytes = 512 * 1024;

/** Runs a command in a process group of its own and ends the group when the time is over. */
function bash(command: string, timeoutSeconds: number, place: ToolPlace): Promise<ToolResult> {
  return new Promise((resolveResult) => {
    const shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
    const child = spawn(shell, ["-c", command], {
      cwd: place.workspace,
      env: place.env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const head: Buffer[] = [];
    let tail: Buffer = Buffer.alloc(0);
    let headBytes = 0;
    let dropped = 0;
    const take = (chunk: Buffer): void => {
      if (headBytes < keptBytes) {
        head.push(chunk);
        headBytes += chunk.length;
        return;
      }
      const joined = Buffer.concat([tail, chunk]);
      tail = joined.subarray(Math.max(0, joined.length - keptBytes));
      dropped += joined.length - tail.length;
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
    }, timeoutSeconds * 1000);
    let finished = false;
    const finish = (ending: string, isError: boolean): void => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      child.stdout.destroy();
      child.stderr.destroy();
      const middle = dropped > 0 ? `\n[${dropped} bytes left out]\n` : "";
      const output = Buffer.concat(head).toString("utf8") + middle + tail.toString("utf8");
      resolveResult({ text: `${capped(output, place.maxOutputChars)}${ending}`, isError });
    };
    child.on("error", (error) => finish(`the command could not be started: ${error.message}`, true));
    const ended = (code: number | null, signal: NodeJS.Signals | null): void => {
      if (timedOut) finish(`\n[killed after ${timeoutSeconds} s]`, true);
      else if (code === 0) finish("", false);
      else finish(`\n[exit code ${code ?? signal}]`, true);
    };
    child.on("close", ended);
    // A background process that keeps the pipes open must not keep the turn: after the shell's end it has a moment.
    child.on("exit", (code, signal) => setTimeout(() => ended(code, signal), timedOut ? 0 : 500));
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
}

/** Bytes of a file that `read` looks at; a longer one is read with bash. */
const maxReadBytes = 16 * 1024 ** 2;

async function readText(path: string, offset: number, limit: number | null, maxChars: number): Promise<ToolResult> {
  if (!(await stat(path)).isFile()) return { text: `${path} is no regular file`, isError: true };
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(Math.min((await file.stat()).size, maxReadBytes));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    const text = buffer.subarray(0, bytesRead).toString("utf8");
    if (offset === 1 && limit === null) return { text: capped(text, maxChars), isError: false };
    const lines = text.split("\n");
    const end = limit === null ? lines.length : offset - 1 + limit;
    return { text: capped(lines.slice(offset - 1, end).join("\n"), maxChars), isError: false };
  } finally {
    await file.close();
  }
}

/** Head and tail of a text that is too long, never cut inside a surrogate pair. */
export function capped(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const isLow = (at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  const headEnd = isLow(half) ? half - 1 : half;
  const tailStart = isLow(text.length - half) ? text.length - half + 1 : text.length - half;
  return `${text.slice(0, headEnd)}\n[${tailStart - headEnd} characters left out]\n${text.slice(tailStart)}`;
}
