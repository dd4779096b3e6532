/**
 * The model gateway: the agent's only way to a model. An HTTP server on a Unix socket that speaks the chat completions
 * API; it holds the provider's key, which never leaves it but towards the provider, keeps the caps of the attempt, and
 * writes the authoritative record of every call. It lives as long as its try; calls belong to the turn that is open.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Usage, UsageLine } from "../../attempt/usage.ts";
import type { Clock, Random } from "../../platform/ports.ts";
import type { ModelChoice } from "../../sweep/manifest-line.ts";
import { type CallWorld, runCall } from "./call.ts";
import { CallLog, type CallOutcome } from "./call-log.ts";
import type { ChatBody } from "./exchange.ts";
import { type Caps, Meter } from "./meter.ts";
import { refuse, refuseRequest } from "./openai-errors.ts";
import { type Upstream, upstreamOf } from "./upstream.ts";

export interface GatewayOptions {
  /** Unix socket to listen on. */
  socket: string;
  /** The key that the agent has to show, made for this try. */
  agentKey: string;
  /** The provider's; null where it needs none. */
  providerKey: string | null;
  clock: Clock;
  random: Random;
  /** Folder for records of calls; made when the first is written. */
  spool: () => Promise<string>;
}

export interface GatewayTurnOptions {
  turn: number;
  task: string;
  attempt: string;
  model: ModelChoice;
  caps: Caps;
  /** Milliseconds since 1970. */
  deadline: number;
  /** Milliseconds without a byte from the provider after which a call has failed. */
  silenceMs: number;
}

/** Signs of life of the agent's model calls, for the watchdog. */
export interface ModelLife {
  /** When something last happened in a call (it began, a byte came, it ended); null before the first. */
  lastAt: number | null;
  calls: number;
  pending: number;
}

export interface ClosedTurn {
  usage: Usage;
  lines: UsageLine[];
  /** In the order in which the calls ended. */
  outcomes: CallOutcome[];
  capReached: boolean;
  /** The record, model-calls.jsonl, in the spool folder; null when there was no call. */
  record: string | null;
  /** Set when the record could not be written whole. */
  recordFault: Error | null;
}

/** Larger requests are refused. */
export const maxRequestBytes = 64 * 1024 ** 2;
/** Calls in flight at once. */
const maxConcurrentCalls = 32;
/** Bytes of the requests of all calls in flight; each is held several times over while it is passed on and recorded. */
const maxHeldBytes = 2 * maxRequestBytes;
/** Connections at once: each call has one, and some rest. */
const maxConnections = 256;

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #keyHash: Buffer;
  #turn: GatewayTurn | null = null;

  private constructor(options: GatewayOptions) {
    this.#options = options;
    this.#keyHash = hash(options.agentKey);
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => {
        if (response.headersSent) response.destroy();
        else refuseRequest(response, "proctor_fault", "the gateway failed to handle the request", 500);
      });
    });
    this.#server.keepAliveTimeout = 60_000;
    this.#server.requestTimeout = 0;
    this.#server.maxConnections = maxConnections;
  }

  /** @throws Error when the socket cannot be made */
  static async start(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options);
    await rm(options.socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      gateway.#server.once("error", reject);
      gateway.#server.listen(options.socket, () => {
        gateway.#server.off("error", reject);
        resolve();
      });
    });
    return gateway;
  }

  /** Opens a turn. @throws UnsupportedModel; Error when a turn is open */
  openTurn(options: GatewayTurnOptions): GatewayTurn {
    if (this.#turn) throw new Error("a turn is open already");
    this.#turn = new GatewayTurn(options, this.#options, () => {
      this.#turn = null;
    });
    return this.#turn;
  }

  async close(): Promise<void> {
    await this.#turn?.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#knows(request.headers.authorization)) {
      request.resume();
      return refuse(response, "key");
    }
    const path = (request.url ?? "").split("?")[0];
    if (path === "/v1/models" || path?.startsWith("/v1/models/")) {
      request.resume();
      if (request.method !== "GET") return refuse(response, "method");
      return this.#models(path, response);
    }
    if (path !== "/v1/chat/completions") {
      request.resume();
      return refuse(response, "not_found");
    }
    if (request.method !== "POST") {
      request.resume();
      return refuse(response, "method");
    }
    const turn = this.#turn;
    if (!turn) {
      request.resume();
      return refuse(response, "no_turn");
    }
    if (turn.life.pending >= maxConcurrentCalls) {
      request.resume();
      return refuse(response, "too_many");
    }
    await turn.take(request, response);
  }

  #knows(authorization: string | undefined): boolean {
    const shown = /^bearer (.*)$/i.exec(authorization ?? "")?.[1] ?? "";
    return timingSafeEqual(hash(shown), this.#keyHash);
  }

  #models(path: string, response: ServerResponse): void {
    const model = this.#turn?.model;
    if (model === undefined) {
      refuse(response, "no_turn");
      return;
    }
    const entry = { id: model, object: "model", created: 0, owned_by: "proctor" };
    const asked = path === "/v1/models" ? null : path.slice("/v1/models/".length);
    if (asked !== null && safeDecode(asked) !== model) {
      refuseRequest(response, "model_not_found", `the only model here is ${JSON.stringify(model)}`, 404);
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(asked === null ? { object: "list", data: [entry] } : entry));
  }
}

/** The calls of one turn. */
export class GatewayTurn {
  readonly #options: GatewayTurnOptions;
  readonly #world: CallWorld;
  readonly #upstream: Upstream;
  readonly #closed = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** Calls that wait for another one's end. */
  readonly #waiting: (() => void)[] = [];
  readonly #life: ModelLife = { lastAt: null, calls: 0, pending: 0 };
  /** Bytes of the requests of calls that have not ended. */
  #heldBytes = 0;
  #result: Promise<ClosedTurn> | null = null;

  constructor(
    options: GatewayTurnOptions,
    gateway: GatewayOptions,
    private readonly onClose: () => void,
  ) {
    const { model, turn, task, attempt } = options;
    this.#options = options;
    this.#upstream = upstreamOf(model, gateway.providerKey, { role: "executor", task, attempt, turn });
    this.#world = {
      turn,
      model: model.name,
      // OpenAI's own newer models know this name alone; servers that imitate the API mostly know the older one.
      outputParameter:
        model.api === "chat" && /(^|\.)openai\.(com|azure\.com)$/.test(new URL(model.baseUrl).hostname)
          ? "max_completion_tokens"
          : "max_tokens",
      upstream: this.#upstream,
      meter: new Meter(options.caps, model.price),
      log: new CallLog(gateway.spool, turn),
      clock: gateway.clock,
      random: gateway.random,
      closed: this.#closed.signal,
      deadline: options.deadline,
      silenceMs: options.silenceMs,
      alive: () => {
        this.#life.lastAt = gateway.clock.now();
      },
      anotherEnd: () => new Promise((resolve) => this.#waiting.push(resolve)),
    };
  }

  get model(): string {
    return this.#options.model.name;
  }

  get life(): Readonly<ModelLife> {
    return this.#life;
  }

  get capReached(): boolean {
    return this.#world.meter.reached;
  }

  /** Handles one request for a completion. */
  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#life.pending++;
    let held = 0;
    try {
      const text = await readBody(request, (bytes) => {
        if (this.#heldBytes + bytes > maxHeldBytes) return false;
        held += bytes;
        this.#heldBytes += bytes;
        return true;
      });
      if (typeof text !== "string") return refuse(response, text.refused);
      const body = this.#checked(text, response);
      if (!body) return;
      if (this.#closed.signal.aborted) return refuse(response, "no_turn");
      const call = runCall(this.#world, ++this.#life.calls, body, response);
      this.#running.add(call);
      try {
        await call;
      } finally {
        this.#running.delete(call);
        for (const resolve of this.#waiting.splice(0)) resolve();
      }
    } finally {
      this.#life.pending--;
      this.#heldBytes -= held;
    }
  }

  /** Ends all calls that still run, because the turn is over: none of them is anybody's fault. */
  endCalls(): void {
    this.#closed.abort();
  }

  /** Ends all calls that still run and gives what there was. Calls that come later are refused. */
  close(): Promise<ClosedTurn> {
    this.#result ??= this.#close();
    return this.#result;
  }

  async #close(): Promise<ClosedTurn> {
    this.#closed.abort();
    this.onClose();
    await Promise.allSettled([...this.#running]);
    const { log, meter } = this.#world;
    const record = await log.close();
    await this.#upstream.close();
    return {
      usage: meter.spent,
      lines: log.usage,
      outcomes: log.outcomes,
      capReached: meter.reached,
      record,
      recordFault: log.fault,
    };
  }

  #checked(text: string, response: ServerResponse): ChatBody | null {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      refuseRequest(response, "invalid_json", "the body is not JSON");
      return null;
    }
    if (typeof body !== "object" || body === null || Array.isArray(body)) {
      refuseRequest(response, "invalid_body", "the body is no JSON object");
      return null;
    }
    const { model, messages } = body as { model?: unknown; messages?: unknown };
    if (!Array.isArray(messages) || messages.length === 0) {
      refuseRequest(response, "invalid_messages", "`messages` is no list with at least one message");
      return null;
    }
    if (model !== this.model) {
      refuseRequest(response, "model_not_found", `the only model here is ${JSON.stringify(this.model)}`, 404);
      return null;
    }
    return body as ChatBody;
  }
}

/**
 * A request's body as text, or why there is no room for it.
 * @param hold asked before so many bytes more are kept
 */
async function readBody(
  request: IncomingMessage,
  hold: (bytes: number) => boolean,
): Promise<string | { refused: "too_large" | "too_many" }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let refused: "too_large" | "too_many" | null = null;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxRequestBytes) refused = "too_large";
    else if (refused === null && !hold(chunk.length)) refused = "too_many";
    // What is refused is read to its end, so that the client hears why, but not kept.
    if (refused === null) chunks.push(chunk);
    else chunks.length = 0;
    if (bytes > 4 * maxRequestBytes) request.destroy();
  }
  return refused === null ? Buffer.concat(chunks).toString("utf8") : { refused };
}

function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
