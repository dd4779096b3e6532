/**
 * One exchange with a provider: a request out, its answer relayed to the agent, whole or as a stream, and what it came to.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type ProviderFault, parseObject, providerFault, transportFault } from "../../attempt/provider-fault.ts";
import { type Tokens, toldTokens } from "../../attempt/usage.ts";
import type { Clock } from "../../platform/ports.ts";
import { CompletionAssembler, EventSplitter, EventTooLong, eventData, isUsageOnly } from "./event-stream.ts";
import { Silence } from "./silence.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

/** A longer answer is no completion. */
export const maxAnswerBytes = 64 * 1024 ** 2;

/** What an exchange needs of its turn. */
export interface ExchangeWorld {
  upstream: Upstream;
  clock: Clock;
  /** Milliseconds without a byte from the provider after which it has failed. */
  silenceMs: number;
}

/** A request body, checked as far as the gateway looks into it. */
export interface ChatBody extends Record<string, unknown> {
  model: string;
  messages: unknown[];
}

/** How one exchange with the provider ended. */
export type Exchange =
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

/**
 * Sends `text` and relays the answer. A fault before the agent has seen anything is left to the caller to tell; an answer
 * is written but not ended.
 * @param seen called with every sign of life of the provider's
 */
export async function exchangeOnce(
  world: ExchangeWorld,
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
    received.tokens = toldTokens(assembler.usage);
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
  world: ExchangeWorld,
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
  const told = { httpStatus: answer.httpStatus, headers: answer.headers, body: world.upstream.redact(body) };
  const fault = providerFault(told, world.clock.now());
  if (fault) return { kind: "fault", fault, httpStatus: answer.httpStatus, body: told.body, partial: null };
  const completion = JSON.parse(body) as Record<string, unknown>;
  // Without a length the client waits for the end, which comes when the call is on record.
  response.writeHead(200, { "content-type": "application/json" });
  // An answer that is all there is paid for as the provider says, also where the client no longer takes it.
  await pass(raw).catch(() => undefined);
  return {
    kind: "completed",
    httpStatus: answer.httpStatus,
    response: completion,
    tokens: toldTokens(completion.usage),
    text: textOf(completion),
  };
}

async function relayStream(
  world: ExchangeWorld,
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
    tokens: toldTokens(assembler.usage),
    text: assembler.text(),
  });
  const faulty = (fault: ProviderFault, text: string): Exchange => ({
    kind: "fault",
    fault,
    httpStatus: answer.httpStatus,
    body: world.upstream.redact(text),
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
      const json = parseObject(data);
      if (!json || json.error !== undefined || !(Array.isArray(json.choices) || json.usage)) {
        // The pure table tells an error object from garbage.
        const fault = providerFault(
          { httpStatus: 200, headers: answer.headers, body: world.upstream.redact(data) },
          world.clock.now(),
        );
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

function textOf(completion: Record<string, unknown>): string {
  return JSON.stringify(completion.choices ?? "");
}

async function passOn(response: ServerResponse, bytes: Buffer, cut: AbortSignal): Promise<void> {
  if (cut.aborted || response.destroyed) throw new Error("the client went away");
  if (!response.write(bytes)) await once(response, "drain", { signal: cut });
}
