/**
 * A server of scripted models: OpenAI's chat completions API on a Unix socket, answered from files (script-files.ts), so
 * that agent, gateway, supervisor and simulator use the very path that they use with a provider. It can fail like one, too.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { z } from "zod";
import { headerText } from "../../attempt/scripted-headers.ts";
import type { Tokens } from "../../attempt/usage.ts";
import { ProblemsError } from "../../tasks/problem.ts";
import type { Clock } from "../ports.ts";
import { listenAt } from "./own-socket.ts";
import { NoScript, type ScriptAnswer, ScriptFiles } from "./script-files.ts";

const maxRequestBytes = 64 * 1024 ** 2;

export interface ScriptedModelsOptions {
  /** Path of the Unix socket, at most about 100 bytes. A stale file there is replaced. */
  socket: string;
  clock: Clock;
}

/** Starts the server. @throws Error when the socket cannot be made. */
export async function startScriptedModels(options: ScriptedModelsOptions): Promise<{ close(): Promise<void> }> {
  const scripts = new ScriptFiles();
  const faults = new Map<string, number>();
  const server = createServer((request, response) => {
    answer(request, response, { scripts, faults, clock: options.clock }).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, error instanceof Error ? error.message : String(error));
    });
  });
  server.keepAliveTimeout = 30_000;
  const close = await listenAt(server, options.socket);
  return {
    close() {
      const closed = close();
      server.closeAllConnections();
      return closed;
    },
  };
}

const wireContent = z.union([z.string(), z.array(z.looseObject({ text: z.string().optional() }))]).nullish();
const wireRequest = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string(), content: wireContent })).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});
type WireRequest = z.infer<typeof wireRequest>;

interface World {
  scripts: ScriptFiles;
  /** How often a fault with `times` was served, by call. */
  faults: Map<string, number>;
  clock: Clock;
}

interface Caller {
  script: string;
  role: string;
  task: string;
  attempt: string;
  turn: number;
}

async function answer(request: IncomingMessage, response: ServerResponse, world: World): Promise<void> {
  if (request.method !== "POST" || !/\/chat\/completions$/.test(request.url?.split("?")[0] ?? "")) {
    request.resume();
    return refuse(response, 404, `no ${request.method} ${request.url} here, only POST /v1/chat/completions`);
  }
  const caller = callerOf(request);
  if (typeof caller === "string") {
    request.resume();
    return refuse(response, 404, caller);
  }
  const body = wireRequest.safeParse(await jsonBody(request));
  if (!body.success) {
    const issue = body.error.issues[0];
    return refuse(response, 400, `no chat completion request: ${issue?.path.join(".") || "body"}: ${issue?.message}`);
  }
  const asked = body.data;
  const index = indexOf(asked, caller.role);
  const contents = asked.messages.map((message) => textOf(message.content)).join("\n");
  let scripted: ScriptAnswer;
  try {
    scripted = await world.scripts.answer({ ...caller, index, contents });
  } catch (error) {
    if (error instanceof NoScript) return refuse(response, 404, error.message);
    if (error instanceof ProblemsError) return refuse(response, 500, `broken script: ${error.message}`);
    throw error;
  }
  if (response.destroyed) return;
  if (scripted.delayMs) {
    // Closing the server closes its connections, so one signal says both.
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    await world.clock.sleep(scripted.delayMs, gone.signal);
    if (response.destroyed) return;
  }

  const call = [caller.attempt, caller.role, caller.task, caller.turn, index].join("/");
  if (scripted.fault) {
    const served = world.faults.get(call) ?? 0;
    if (scripted.fault.times === undefined || served < scripted.fault.times) {
      if (scripted.fault.times !== undefined) world.faults.set(call, served + 1);
      return fail(response, scripted.fault.kind, asked.stream === true);
    }
  }
  say(response, asked, completionOf(scripted, asked, contents, call, world.clock.now()));
}

/**
 * Which call of its turn this is, from the conversation alone: assistant messages after the last user message. Supervisor
 * and simulator begin a conversation for each turn and may be asked again in it, so theirs are counted from its start.
 */
function indexOf(asked: WireRequest, role: string): number {
  const roles = asked.messages.map((message) => message.role);
  const from = role === "executor" ? roles.lastIndexOf("user") : -1;
  return roles.slice(from + 1).filter((name) => name === "assistant").length;
}

function callerOf(request: IncomingMessage): Caller | string {
  const header = (name: string): string | null => {
    const value = request.headers[`x-proctor-${name}`];
    return typeof value === "string" && value !== "" ? headerText(value) : null;
  };
  const [script, role, task, attempt, turn] = ["script", "role", "task", "attempt", "turn"].map(header);
  const missing = Object.entries({ script, role, task, attempt, turn }).filter(([, value]) => !value);
  if (missing.length > 0) return `a scripted call needs header X-Proctor-${missing.map(([name]) => name).join(", -")}`;
  const number = Number(turn);
  if (!Number.isInteger(number) || number < 1)
    return `X-Proctor-Turn is ${JSON.stringify(turn)}, expected a turn from 1`;
  return { script: script!, role: role!, task: task!, attempt: attempt!, turn: number };
}

interface Said {
  id: string;
  created: number;
  content: string | null;
  tools: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  finish: string;
  tokens: Tokens;
}

function completionOf(scripted: ScriptAnswer, asked: WireRequest, contents: string, call: string, now: number): Said {
  const hash = createHash("sha256").update(`${call}\n${asked.model}`).digest("hex");
  const content = scripted.json === undefined ? (scripted.text ?? null) : JSON.stringify(scripted.json);
  const tools = (scripted.tools ?? []).map((tool, number) => ({
    id: `call_${hash.slice(0, 16)}_${number}`,
    type: "function" as const,
    function: {
      name: tool.name,
      arguments: typeof tool.arguments === "string" ? tool.arguments : JSON.stringify(tool.arguments ?? {}),
    },
  }));
  const output = (content ?? "") + tools.map((tool) => tool.function.name + tool.function.arguments).join("");
  return {
    id: `chatcmpl-${hash.slice(0, 24)}`,
    created: Math.floor(now / 1000),
    content,
    tools,
    finish: scripted.finish ?? (tools.length > 0 ? "tool_calls" : "stop"),
    tokens: scripted.tokens
      ? { ...scripted.tokens, cached: scripted.tokens.cached ?? 0 }
      : { input: Math.ceil(contents.length / 4), cached: 0, output: Math.ceil(output.length / 4) },
  };
}

function usageOf({ tokens }: Said): Record<string, unknown> {
  return {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    total_tokens: tokens.input + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached },
  };
}

function say(response: ServerResponse, asked: WireRequest, said: Said): void {
  const head = { id: said.id, created: said.created, model: asked.model };
  if (asked.stream !== true) {
    const message = {
      role: "assistant",
      content: said.content,
      ...(said.tools.length > 0 ? { tool_calls: said.tools } : {}),
    };
    const choices = [{ index: 0, message, finish_reason: said.finish }];
    json(response, 200, { ...head, object: "chat.completion", choices, usage: usageOf(said) });
    return;
  }
  const chunk = (choices: unknown[], more: Record<string, unknown> = {}): void => {
    response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`);
  };
  const delta = (part: Record<string, unknown>, finish: string | null = null): void =>
    chunk([{ index: 0, delta: part, finish_reason: finish }]);
  response.writeHead(200, { "content-type": "text/event-stream" });
  delta({ role: "assistant", content: said.content === null ? null : "" });
  for (const piece of pieces(said.content ?? "")) delta({ content: piece });
  said.tools.forEach((tool, number) => {
    delta({ tool_calls: [{ index: number, ...tool, function: { name: tool.function.name, arguments: "" } }] });
    for (const piece of pieces(tool.function.arguments)) {
      delta({ tool_calls: [{ index: number, function: { arguments: piece } }] });
    }
  });
  delta({}, said.finish);
  if (asked.stream_options?.include_usage) chunk([], { usage: usageOf(said) });
  response.end("data: [DONE]\n\n");
}

/** A text in a few chunks, without cutting a pair of surrogates. */
function pieces(text: string): string[] {
  const size = Math.max(64, Math.ceil(text.length / 16));
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + size);
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1]!)) end += 1;
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

function fail(response: ServerResponse, kind: NonNullable<ScriptAnswer["fault"]>["kind"], stream: boolean): void {
  const error = (status: number, code: string, message: string): void =>
    json(response, status, { error: { message, type: code, code } });
  switch (kind) {
    case "rate_limit":
      error(429, "rate_limit_exceeded", "Too many requests.");
      return;
    case "quota":
      error(402, "insufficient_quota", "The account has no credit left.");
      return;
    case "server_error":
      error(500, "server_error", "Something broke.");
      return;
    case "html":
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<!doctype html><html><body><h1>Service unavailable</h1></body></html>");
      return;
    case "empty":
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      response.end();
      return;
    case "garbage":
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      response.end(stream ? 'data: {"choices": [{"delta": {"cont\n\n' : '{"choices": [{"message": {"content": "ha');
      return;
    case "disconnect":
      if (!stream) {
        response.destroy();
        return;
      }
      // Dropped in the middle, where a stream hurts most.
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(
        `data: ${JSON.stringify({ id: "chatcmpl-cut", object: "chat.completion.chunk", choices: [{ index: 0, delta: { role: "assistant", content: "I beg" }, finish_reason: null }] })}\n\n`,
        () => response.destroy(),
      );
      return;
    case "hang":
      // Until the caller leaves or the server closes.
      return;
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  json(response, status, { error: { message, type: "scripted_model", code: status === 404 ? "no_script" : null } });
}

function json(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxRequestBytes) throw new Error(`a request of more than ${maxRequestBytes} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined;
  }
}

function textOf(content: z.infer<typeof wireContent>): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("\n");
}
