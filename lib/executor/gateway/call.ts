/**
 * One model call of the agent: admitted by the caps, sent to the provider, its answer passed on, its cost settled and the
 * whole of it recorded. What a provider may do wrong ends in a status, never in an exception.
 */
import type { ServerResponse } from "node:http";
import type { ModelCallStatus, Tokens, Usage } from "../../attempt/usage.ts";
import type { Random } from "../../platform/ports.ts";
import type { CallLog, ModelCallRecord } from "./call-log.ts";
import { estimateInput, estimateText } from "./estimate.ts";
import { type ChatBody, type Exchange, type ExchangeWorld, exchangeOnce } from "./exchange.ts";
import type { Meter } from "./meter.ts";
import { refuse, sendError } from "./openai-errors.ts";

/** What a turn's calls share. */
export interface CallWorld extends ExchangeWorld {
  turn: number;
  model: string;
  /** The parameter that limits output where a request names none. */
  outputParameter: "max_tokens" | "max_completion_tokens";
  meter: Meter;
  log: CallLog;
  random: Random;
  /** Aborted when the turn is closed. */
  closed: AbortSignal;
  /** Milliseconds since 1970: no wait for a provider goes beyond. */
  deadline: number;
  /** Says that something happened: the watchdog's sign of life. */
  alive(): void;
  /** Resolves when another call has ended. */
  anotherEnd(): Promise<void>;
}

/** 429 is waited out so often, and so long in all, for one call; what remains is the agent's to see. */
const maxRateLimitRetries = 8;
const maxRateLimitWaitMs = 120_000;
/** A provider that asks for less, 0 say, is not asked again at once: all retries would be gone before anything changed. */
const leastWaitMs = 500;
/**
 * A call that the agent itself gave up counts as the provider's timeout after that much silence. One that the end of the
 * turn cut does not: its answer might have come.
 */
const silentAfterMs = 60_000;

/** A bound of the gateway's own that a provider finds too large is halved down to this. */
const leastOutput = 1024;

const noTokens: Tokens = { input: 0, cached: 0, output: 0 };

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

  let maxOutput = admission.maxOutput;
  let request = upstreamBody(body, stream, maxOutput, world.outputParameter);
  let text = JSON.stringify(request);
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
    if (exchange.kind !== "fault" || exchange.partial) break;
    if (wanted === null && maxOutput !== null && maxOutput > leastOutput && refusesBound(exchange)) {
      maxOutput = Math.max(leastOutput, Math.floor(maxOutput / 2));
      request = upstreamBody(body, stream, maxOutput, world.outputParameter);
      text = JSON.stringify(request);
      continue;
    }
    if (exchange.fault.status !== "rate_limited") break;
    const asked = exchange.fault.retryAfterMs;
    const wait = asked === null || asked < leastWaitMs ? backOff(waited.length, world.random) : asked;
    const tooLate = world.clock.now() + wait >= world.deadline || waitedMs + wait > maxRateLimitWaitMs;
    if (waited.length >= maxRateLimitRetries || tooLate) break;
    await world.clock.sleep(wait, cut);
    if (cut.aborted) break;
    waited.push({ status: exchange.fault.status, ms: wait });
    waitedMs += wait;
  }

  const silentMs = world.closed.aborted ? 0 : world.clock.now() - lastByte;
  const { status, used, estimated } = outcome(exchange, input.likely, silentMs);
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

/** Whether a request was refused for its bound on output: beyond the model's own, or too much for its context beside the input. */
function refusesBound(exchange: Extract<Exchange, { kind: "fault" }>): boolean {
  return (
    exchange.fault.status === "bad_request" &&
    /max_(completion_|output_|new_)?tokens|context.?(length|window)/i.test(exchange.body)
  );
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
    // One that is no number is replaced too: a lenient provider would take "100000" for more than was set aside.
    const given = (["max_tokens", "max_completion_tokens"] as const).filter((name) => (body[name] ?? null) !== null);
    for (const name of given.length > 0 ? given : [outputParameter]) request[name] = maxOutput;
  }
  if (stream) {
    const options = typeof body.stream_options === "object" && body.stream_options !== null ? body.stream_options : {};
    request.stream_options = { ...options, include_usage: true };
  }
  return request;
}

function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
