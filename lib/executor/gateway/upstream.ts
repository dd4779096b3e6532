/** The way to one provider: only the configured address, only chat completions. The provider's key is used here alone. */
import type { Dispatcher } from "undici";
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

class HttpUpstream implements Upstream {
  #pool: Promise<Dispatcher> | null = null;

  constructor(
    private readonly origin: string,
    private readonly socket: string | null,
    private readonly path: string,
    private readonly headers: Record<string, string>,
    private readonly key: string | null,
  ) {}

  redact(text: string): string {
    return this.key === null || this.key === "" ? text : text.replaceAll(this.key, "…");
  }

  async complete(body: string, signal: AbortSignal): Promise<UpstreamAnswer> {
    // Loaded with the first call: an agent that asks no model must not pay for the client.
    this.#pool ??= import("undici").then(
      ({ Pool }) =>
        new Pool(this.origin, {
          connections: 32,
          connect: { timeout: 30_000, ...(this.socket === null ? {} : { socketPath: this.socket }) },
          // Silence is watched by the gateway, with the clock that it is given.
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
    );
    const pool = await this.#pool;
    const answer = await pool.request({
      method: "POST",
      path: this.path,
      headers: {
        ...this.headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "proctor-gateway",
      },
      body,
      signal,
    });
    return { httpStatus: answer.statusCode, headers: answer.headers, body: answer.body };
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }
}
