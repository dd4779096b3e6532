/**
 * One model call of the agent: admitted by the caps, sent to the provider, its answer passed on, its cost settled and the
 * whole of it recorded. What a provider may do wrong ends in a status, never in an exception.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type ProviderFault, providerFault, transportFault } from "../../attempt/provider-fault.ts";
import type { ModelCallStatus, Tokens, Usage } from "../../attempt/usage.ts";
import type { Clock, Random } from "../../platform/ports.ts";
import type { CallLog, ModelCallRecord } from "./call-log.ts";
import { estimateInput, estimateText } from "./estimate.ts";
import { CompletionAssembler, EventSplitter, EventTooLong, eventData, isUsageOnly } from "./event-stream.ts";
import type { Meter } from "./meter.ts";
import { refuse, sendError } from "./openai-errors.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

/** A request body, checked as far as the gateway looks into it. */
export interface ChatBody extends Record<string, unknown> {
  model: string;
  messages: unknown[];
}

/** What a turn's calls share. */
export interface CallWorld {
  turn: number;
  model: string;
  /** The parameter that limits output where a request names none. */
  outputParameter: "max_tokens" | "max_completion_tokens";
  upstream: Upstream;
  meter: Meter;
  log: CallLog;
  clock: Clock;
  random: Random;
  /** Aborted when the turn is closed. */
  closed: AbortSignal;
  /** Milliseconds since 1970: no wait for a provider goes beyond. */
  deadline: number;
  /** Milliseconds without a byte from the provider after which a call is a timeout. */
  silenceMs: number;
  /** Says that something happened: the watchdog's sign of life. */
  alive(): void;
  /** Resolves when another call has ended. */
  anotherEnd(): Promise<void>;
}

export const maxAnswerBytes = 64 * 1024 ** 2;
/** 429 is waited out so often, and so long in all, for one call; what remains is the agent's to see. */
export const maxRateLimitRetries = 8;
export const maxRateLimitWaitMs = 120_000;
/** A call that its caller gave up counts as the provider's timeout after that much silence. */
export const silentAfterMs = 60_000;

const noTokens: Tokens = { input: 0, cached: 0, output: 0 };

/** How one exchange with the provider ended. */
type Exchange =
  | { kind: "completed"; httpStatus: number; response: unknown; tokens: Tokens | null; text: string }
  | {
      kind: "fault";
      fault: ProviderFault;
      httpStatus: number | null;
      /** The error object of the provider's answer, for its code and type. */
      body: string;
      /** What had come of a stream; null when the client has seen nothing yet. */
      partial: { response: unknown; tokens: Tokens | null; text: string } | null;
    }
  | { kind: "cancelled"; response: unknown; tokens: Tokens | null; text: string };

export async function runCall(
  world: CallWorld,
  number: number,
  body: ChatBody,
  response: ServerResponse,
): Promise<void> {
  const started = world.clock.now();
  const stream = body.stream === true;
  const input = estimateInput(body);
  const record = (
    status: ModelCallStatus,
    rest: Pick<ModelCallRecord, "httpStatus" | "request" | "response" | "error" | "tokens" | "usd"> &
      Partial<Pick<ModelCallRecord, "waited" | "estimated">>,
  ): Promise<void> =>
    world.log.add({
      v: 1,
      call: number,
      turn: world.turn,
      model: world.model,
      started: new Date(started).toISOString(),
      ms: world.clock.now() - started,
      status,
      stream,
      waited: [],
      estimated: false,
      ...rest,
    });

  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort();
  });
  const cut = AbortSignal.any([gone.signal, world.closed]);

  const wanted = smallest(body.max_tokens, body.max_completion_tokens);
  const choices = typeof body.n === "number" && Number.isInteger(body.n) && body.n > 0 ? body.n : 1;
  let admission = world.meter.admit(input, wanted, choices);
  while (admission.kind === "wait" && !cut.aborted) {
    await Promise.race([world.anotherEnd(), onAbort(cut)]);
    admission = world.meter.admit(input, wanted, choices);
  }
  if (admission.kind !== "admitted") {
    const status = admission.kind === "capped" ? "capped" : "cancelled";
    await record(status, { httpStatus: null, request: body, response: null, error: null, tokens: noTokens, usd: 0 });
    if (status === "capped") refuse(response, "capped");
    return;
  }

  const request = upstreamBody(body, stream, admission.maxOutput, world.outputParameter);
  const text = JSON.stringify(request);
  const waited: ModelCallRecord["waited"] = [];
  let waitedMs = 0;
  let lastByte = started;
  const seen = (): void => {
    lastByte = world.clock.now();
    world.alive();
  };

  let exchange: Exchange;
  for (;;) {
    world.alive();
    exchange = await exchangeOnce(world, text, stream, body, response, cut, seen);
    if (exchange.kind !== "fault" || exchange.fault.status !== "rate_limited" || exchange.partial) break;
    const wait = exchange.fault.retryAfterMs ?? backOff(waited.length, world.random);
    const tooLate = world.clock.now() + wait >= world.deadline || waitedMs + wait > maxRateLimitWaitMs;
    if (waited.length >= maxRateLimitRetries || tooLate) break;
    await world.clock.sleep(wait, cut);
    if (cut.aborted) break;
    waited.push({ status: exchange.fault.status, ms: wait });
    waitedMs += wait;
  }

  const { status, used, estimated } = outcome(exchange, input.likely, world.clock.now() - lastByte);
  const usage: Usage = admission.settle(used);
  await record(status, {
    httpStatus: exchange.kind === "cancelled" ? null : exchange.httpStatus,
    request,
    response: exchange.kind === "fault" ? (exchange.partial?.response ?? null) : exchange.response,
    error: exchange.kind === "fault" ? exchange.fault.message : null,
    tokens: { input: usage.input, cached: usage.cached, output: usage.output },
    usd: usage.usd,
    waited,
    estimated,
  });
  world.alive();
  if (exchange.kind === "fault" && !cut.aborted) {
    if (response.headersSent) response.destroy();
    else sendError(response, exchange.fault, exchange.httpStatus, exchange.body);
  } else if (!response.writableEnded) {
    if (exchange.kind === "completed") response.end();
    else response.destroy();
  }
}

function outcome(
  exchange: Exchange,
  likelyInput: number,
  silentMs: number,
): { status: ModelCallStatus; used: Tokens; estimated: boolean } {
  const estimate = (part: { tokens: Tokens | null; text: string }) => ({
    used: part.tokens ?? { input: likelyInput, cached: 0, output: estimateText(part.text) },
    estimated: part.tokens === null,
  });
  switch (exchange.kind) {
    case "completed":
      return { status: "ok", ...estimate(exchange) };
    case "cancelled":
      return { status: silentMs >= silentAfterMs ? "timeout" : "cancelled", ...estimate(exchange) };
    case "fault":
      return exchange.partial
        ? { status: exchange.fault.status, ...estimate(exchange.partial) }
        : { status: exchange.fault.status, used: noTokens, estimated: false };
  }
}

/** Full jitter over a doubling interval: 1, 2, 4 … 30 s. */
function backOff(retry: number, random: Random): number {
  return Math.round(Math.min(30_000, 1000 * 2 ** retry) * (0.5 + 0.5 * random.unit()));
}

function smallest(...limits: unknown[]): number | null {
  const given = limits.filter((limit): limit is number => typeof limit === "number" && limit >= 1);
  return given.length === 0 ? null : Math.floor(Math.min(...given));
}

function upstreamBody(
  body: ChatBody,
  stream: boolean,
  maxOutput: number | null,
  outputParameter: CallWorld["outputParameter"],
): ChatBody {
  const request: ChatBody = { ...body };
  if (maxOutput !== null) {
    const given = (["max_tokens", "max_completion_tokens"] as const).filter((name) => typeof body[name] === "number");
    for (const name of given.length > 0 ? given : [outputParameter]) request[name] = maxOutput;
  }
  if (stream) {
    const options = typeof body.stream_options === "object" && body.stream_options !== null ? body.stream_options : {};
    request.stream_options = { ...options, include_usage: true };
  }
  return request;
}

async function exchangeOnce(
  world: CallWorld,
  text: string,
  stream: boolean,
  body: ChatBody,
  response: ServerResponse,
  cut: AbortSignal,
  seen: () => void,
): Promise<Exchange> {
  const silence = new Silence(world.clock, world.silenceMs, cut);
  const received = { text: "", response: null as unknown, tokens: null as Tokens | null, committed: false };
  const assembler = new CompletionAssembler();
  try {
    const answer = await world.upstream.complete(text, silence.signal);
    silence.reset();
    seen();
    const heard = {
      ...answer,
      body: (async function* () {
        for await (const chunk of answer.body) {
          silence.reset();
          seen();
          yield chunk;
        }
      })(),
    };
    const ok = answer.httpStatus >= 200 && answer.httpStatus < 300;
    const pass = async (bytes: Buffer): Promise<void> => {
      received.committed = true;
      // A client that reads slowly is no silence of the provider's.
      silence.pause();
      await passOn(response, bytes, cut);
      silence.reset();
    };
    return ok && stream
      ? await relayStream(world, heard, assembler, body, response, pass)
      : await relayWhole(world, heard, response, pass);
  } catch (error) {
    const partialText = assembler.text();
    received.text = partialText;
    received.tokens = tokensOf(assembler.usage);
    received.response = received.committed ? assembler.completion() : null;
    // The answer was all there: what broke after it (a client that had enough, a late reset) changes nothing.
    if (received.committed && assembler.finished) return { kind: "completed", httpStatus: 200, ...received };
    if (cut.aborted && !silence.expired) return { kind: "cancelled", ...received };
    const fault: ProviderFault = silence.expired
      ? {
          status: "timeout",
          message: `the provider was silent for ${Math.round(world.silenceMs / 1000)} s`,
          retryAfterMs: null,
        }
      : error instanceof TooLong || error instanceof EventTooLong
        ? { status: "unreadable", message: error.message, retryAfterMs: null }
        : transportFault(error);
    return { kind: "fault", fault, httpStatus: null, body: "", partial: received.committed ? received : null };
  } finally {
    silence.end();
  }
}

class TooLong extends Error {}

async function relayWhole(
  world: CallWorld,
  answer: UpstreamAnswer,
  response: ServerResponse,
  pass: (bytes: Buffer) => Promise<void>,
): Promise<Exchange> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new TooLong(`an answer of more than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  const raw = Buffer.concat(chunks);
  const body = raw.toString("utf8");
  const fault = providerFault({ httpStatus: answer.httpStatus, headers: answer.headers, body }, world.clock.now());
  if (fault) return { kind: "fault", fault, httpStatus: answer.httpStatus, body, partial: null };
  const completion = JSON.parse(body) as Record<string, unknown>;
  // Without a length the client waits for the end, which comes when the call is on record.
  response.writeHead(200, { "content-type": "application/json" });
  await pass(raw);
  return {
    kind: "completed",
    httpStatus: answer.httpStatus,
    response: completion,
    tokens: tokensOf(completion.usage),
    text: textOf(completion),
  };
}

async function relayStream(
  world: CallWorld,
  answer: UpstreamAnswer,
  assembler: CompletionAssembler,
  body: ChatBody,
  response: ServerResponse,
  pass: (bytes: Buffer) => Promise<void>,
): Promise<Exchange> {
  const askedForUsage = (body.stream_options as { include_usage?: unknown } | undefined)?.include_usage === true;
  const splitter = new EventSplitter();
  let bytes = 0;
  let done = false;
  let ahead = "";
  const partial = () => ({
    response: assembler.completion(),
    tokens: tokensOf(assembler.usage),
    text: assembler.text(),
  });
  const faulty = (fault: ProviderFault, text: string): Exchange => ({
    kind: "fault",
    fault,
    httpStatus: answer.httpStatus,
    body: text,
    partial: response.headersSent ? partial() : null,
  });
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new TooLong(`an answer of more than ${maxAnswerBytes} bytes`);
    if (ahead.length < 4096) ahead += chunk.toString("utf8").slice(0, 4096);
    for (const event of splitter.push(chunk)) {
      const data = eventData(event);
      if (data === null) {
        if (response.headersSent) await pass(event);
        continue;
      }
      if (data === "[DONE]") {
        done = true;
        if (response.headersSent) await pass(event);
        continue;
      }
      const json = objectOf(data);
      if (!json || json.error !== undefined || !(Array.isArray(json.choices) || json.usage)) {
        // The pure table tells an error object from garbage.
        const fault = providerFault({ httpStatus: 200, headers: answer.headers, body: data }, world.clock.now());
        if (fault) return faulty(fault, data);
      }
      assembler.push(json ?? {});
      if (json && isUsageOnly(json) && !askedForUsage) continue;
      if (!response.headersSent) {
        response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
      }
      await pass(event);
    }
  }
  if (!done && !assembler.finished) {
    if (response.headersSent) {
      return faulty(
        { status: "disconnected", message: "the provider's stream ended before the answer did", retryAfterMs: null },
        "",
      );
    }
    const fault = providerFault({ httpStatus: 200, headers: answer.headers, body: ahead }, world.clock.now());
    return faulty(
      fault ?? { status: "unreadable", message: "a whole answer where a stream was asked for", retryAfterMs: null },
      ahead,
    );
  }
  if (!response.headersSent) {
    return faulty({ status: "unreadable", message: "a stream without an answer", retryAfterMs: null }, "");
  }
  return { kind: "completed", httpStatus: answer.httpStatus, ...partial() };
}

/** Tokens as a provider tells them; null when it does not, or tells nonsense. */
export function tokensOf(usage: unknown): Tokens | null {
  if (typeof usage !== "object" || usage === null) return null;
  const told = usage as {
    prompt_tokens?: unknown;
    completion_tokens?: unknown;
    prompt_tokens_details?: { cached_tokens?: unknown } | null;
  };
  const count = (value: unknown): number | null =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
  const input = count(told.prompt_tokens);
  const output = count(told.completion_tokens);
  if (input === null || output === null) return null;
  return { input, output, cached: Math.min(input, count(told.prompt_tokens_details?.cached_tokens) ?? 0) };
}

function textOf(completion: Record<string, unknown>): string {
  return JSON.stringify(completion.choices ?? "");
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

async function passOn(response: ServerResponse, bytes: Buffer, cut: AbortSignal): Promise<void> {
  if (cut.aborted || response.destroyed) throw new Error("the client went away");
  if (!response.write(bytes)) await once(response, "drain", { signal: cut });
}

function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Aborts when nothing was heard for a while, or when the call is cut. */
class Silence {
  readonly #abort = new AbortController();
  readonly #end = new AbortController();
  #lastHeard: number;
  #paused = false;
  expired = false;

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
    private readonly cut: AbortSignal,
  ) {
    this.#lastHeard = clock.now();
    if (cut.aborted) this.#abort.abort();
    cut.addEventListener("abort", this.#onCut);
    void this.#watch();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly #onCut = (): void => this.#abort.abort();

  /** One timer for the whole call, however many pieces its answer comes in. */
  async #watch(): Promise<void> {
    for (;;) {
      await this.clock.sleep(Math.max(1, this.#lastHeard + this.ms - this.clock.now()), this.#end.signal);
      if (this.#end.signal.aborted || this.#abort.signal.aborted) return;
      if (this.#paused) this.#lastHeard = this.clock.now();
      else if (this.clock.now() - this.#lastHeard >= this.ms) {
        this.expired = true;
        this.#abort.abort();
        return;
      }
    }
  }

  reset(): void {
    this.#paused = false;
    this.#lastHeard = this.clock.now();
  }

  pause(): void {
    this.#paused = true;
  }

  end(): void {
    this.#end.abort();
    this.cut.removeEventListener("abort", this.#onCut);
  }
}
