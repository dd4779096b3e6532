/** The way to one provider: only the configured address, only chat completions. The provider's key is used here alone. */
import { Agent, type ClientRequest, request as httpRequest, type RequestOptions } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { type ScriptedCaller, scriptedHeaders } from "../../attempt/scripted-headers.ts";
import type { ModelChoice } from "../../sweep/manifest-line.ts";

export interface UpstreamAnswer {
  httpStatus: number;
  headers: Record<string, string | string[] | undefined>;
  body: AsyncIterable<Buffer>;
}

/** A model that the gateway has no way to. */
export class UnsupportedModel extends Error {
  override readonly name = "Proctor.UnsupportedModel";
}

export interface Upstream {
  /** Sends a chat completions request. Rejects when no answer came. */
  complete(body: string, signal: AbortSignal): Promise<UpstreamAnswer>;
  /** A text of the provider's without its key, should it have echoed it. */
  redact(text: string): string;
  close(): Promise<void>;
}

/**
 * @param key the provider's; null where it needs none
 * @param caller goes into the headers of calls of scripted models, and of no others
 * @throws UnsupportedModel for the responses and messages APIs
 */
export function upstreamOf(model: ModelChoice, key: string | null, caller: ScriptedCaller): Upstream {
  switch (model.api) {
    case "chat": {
      const base = new URL(model.baseUrl);
      const prefix = base.pathname.replace(/\/+$/, "");
      return new HttpUpstream(
        base.origin,
        null,
        `${prefix}/chat/completions${base.search}`,
        {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        },
        key,
      );
    }
    case "scripted":
      return new HttpUpstream(
        "http://scripted.invalid",
        model.socket,
        "/v1/chat/completions",
        scriptedHeaders(model.script, caller),
        null,
      );
    case "responses":
    case "messages":
      throw new UnsupportedModel(
        `model ${model.name}: provider ${model.provider} has api ${JSON.stringify(model.api)}, expected "chat" or "scripted": the gateway speaks the chat completions API only; give the provider's OpenAI-compatible address with \`api: chat\` in models.yaml`,
      );
  }
}

const mostConnections = 32;
const connectMs = 30_000;
/** A provider may close a connection that nobody uses; one that has rested for longer is not used again. */
const restMs = 4000;

/**
 * By Node's own client: each try has a process of its own, and loading another client would cost it as much as its whole
 * start. Silence is watched by the gateway, with the clock that it is given; here only connecting has a limit.
 */
class HttpUpstream implements Upstream {
  readonly #tls: boolean;
  readonly #agent: Agent;

  constructor(
    private readonly origin: string,
    private readonly socket: string | null,
    private readonly path: string,
    private readonly headers: Record<string, string>,
    private readonly key: string | null,
  ) {
    this.#tls = socket === null && origin.startsWith("https:");
    const options = { keepAlive: true, maxSockets: mostConnections, timeout: restMs };
    this.#agent = this.#tls ? new TlsAgent(options) : new Agent(options);
  }

  redact(text: string): string {
    return this.key === null || this.key === "" ? text : text.replaceAll(this.key, "…");
  }

  complete(body: string, signal: AbortSignal): Promise<UpstreamAnswer> {
    const options: RequestOptions = {
      method: "POST",
      agent: this.#agent,
      signal,
      headers: {
        ...this.headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        accept: "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "proctor-gateway",
      },
      ...(this.socket === null ? {} : { socketPath: this.socket }),
    };
    return new Promise((resolve, reject) => {
      const send = this.#tls ? tlsRequest : httpRequest;
      const sent = send(new URL(`${this.origin}${this.path}`), options, (response) => {
        resolve({ httpStatus: response.statusCode ?? 0, headers: response.headers, body: response });
      });
      // Stays for what comes after the answer has begun: the body's reader hears of that too.
      sent.on("error", reject);
      this.#limitConnecting(sent);
      sent.end(body);
    });
  }

  #limitConnecting(sent: ClientRequest): void {
    sent.once("socket", (socket) => {
      if (!socket.connecting) return;
      const why = `no connection within ${connectMs / 1000} s`;
      const timer = setTimeout(() => sent.destroy(new Error(why)), connectMs);
      const clear = (): void => clearTimeout(timer);
      socket.once(this.#tls ? "secureConnect" : "connect", clear).once("close", clear);
    });
  }

  async close(): Promise<void> {
    this.#agent.destroy();
  }
}
