/**
 * ModelClient over the chat completions API: supervisor and user simulator ask their models through it. A provider's
 * faults are answers (lib/attempt/provider-fault), never exceptions; nothing here repeats a call on its own, because
 * waiting and asking again belong to the role whose time it is.
 */
import OpenAI from "openai";
import { Agent, fetch as undiciFetch } from "undici";
import { z } from "zod";
import { type ProviderFault, providerFault, transportFault, withoutSecrets } from "../attempt/provider-fault.ts";
import { scriptedHeaders } from "../attempt/scripted-headers.ts";
import { costOf, estimatedTokens, type Tokens, toldTokens } from "../attempt/usage.ts";
import type { ChatMessage, ChatRequest, ChatResult, Clock, ModelChoice, ModelClient, Secrets } from "./ports.ts";

/** More than any completion that we ask for; a body beyond it is no completion. */
const maxBodyBytes = 16 * 1024 ** 2;

export interface OpenAiClientOptions {
  secrets: Secrets;
  clock: Clock;
}

/** What a completion has to look like for us; everything else in it is ignored. */
const completion = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({
          content: z.string().nullish(),
          tool_calls: z
            .array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))
            .nullish(),
        }),
      }),
    )
    .min(1),
  /** Read by toldTokens: odd counts must not cost the answer beside them. */
  usage: z.unknown(),
});
type Completion = z.infer<typeof completion>;

/** Parameters that some OpenAI-compatible providers do not know; a call refused for one is made again without it, once. */
const optionalParameters = ["reasoning_effort", "response_format", "max_completion_tokens"] as const;
type OptionalParameter = (typeof optionalParameters)[number];

/**
 * @example
 * const models = createModelClient({ secrets, clock });
 * const result = await models.chat(request);
 * if (result.status === "ok") use(result.content);
 */
export function createModelClient(options: OpenAiClientOptions): ModelClient & { close(): Promise<void> } {
  return new OpenAiClient(options);
}

class OpenAiClient implements ModelClient {
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  /** Connections by Unix socket; the empty name stands for TCP. */
  readonly #agents = new Map<string, Agent>();
  /** Parameters that a model's provider refused before. */
  readonly #refused = new Map<string, Set<OptionalParameter>>();

  constructor(options: OpenAiClientOptions) {
    this.#secrets = options.secrets;
    this.#clock = options.clock;
  }

  async chat(request: ChatRequest): Promise<ChatResult> {
    const started = this.#clock.now();
    const fault = (found: ProviderFault): ChatResult => ({ ...found, ms: this.#clock.now() - started });
    const key = await this.#key(request.model);
    if (!key.ok) return fault({ status: "bad_request", message: key.message, retryAfterMs: null });

    const refused = this.#refusedBy(request.model);
    for (;;) {
      // Calls at the same time learn of a refusal one after the other; each is answered by what it sent itself.
      const leftOut = new Set(refused);
      const answer = await this.#once(request, key.value, leftOut, request.timeoutMs - (this.#clock.now() - started));
      if (answer.kind === "completion") {
        const tokens = tokensOf(answer.completion, request);
        const message = answer.completion.choices[0]!.message;
        return {
          status: "ok",
          content: message.content ?? null,
          toolCalls: (message.tool_calls ?? []).map((call) => ({ id: call.id, ...call.function })),
          finishReason: answer.completion.choices[0]!.finish_reason ?? null,
          tokens,
          usd: costOf(tokens, request.model.price),
          ms: this.#clock.now() - started,
        };
      }
      const unknown = optionalParameters.find(
        (name) => answer.fault.status === "bad_request" && !leftOut.has(name) && answer.fault.message.includes(name),
      );
      if (!unknown) return fault(answer.fault);
      refused.add(unknown);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
    this.#agents.clear();
  }

  async #once(
    request: ChatRequest,
    key: string | null,
    refused: ReadonlySet<OptionalParameter>,
    timeoutMs: number,
  ): Promise<{ kind: "completion"; completion: Completion } | { kind: "fault"; fault: ProviderFault }> {
    const deadline = new AbortController();
    const answered = new AbortController();
    let late = false;
    void this.#clock.sleep(Math.max(0, timeoutMs), answered.signal).then(() => {
      if (answered.signal.aborted) return;
      late = true;
      deadline.abort();
    });
    let seen: ProviderFault | null = null;
    const client = new OpenAI({
      apiKey: key ?? "none",
      baseURL: request.model.api === "scripted" ? "http://scripted.invalid/v1" : request.model.baseUrl,
      organization: null,
      project: null,
      maxRetries: 0,
      logLevel: "off",
      fetch: async (url, init) => {
        const response = await undiciFetch(String(url), {
          method: init?.method ?? "POST",
          headers: [...new Headers(init?.headers)].filter(([name]) => key !== null || name !== "authorization"),
          body: init?.body as string,
          redirect: "manual",
          signal: deadline.signal,
          dispatcher: this.#agentFor(request.model),
        });
        const body = await limitedText(response.body);
        const headers = Object.fromEntries(response.headers);
        seen = asCaller(
          providerFault({ httpStatus: response.status, headers, body }, this.#clock.now()),
          response.status,
        );
        if (seen) throw new Error("the provider's answer is no completion");
        return new Response(body, { status: response.status, headers: { "content-type": "application/json" } });
      },
    });
    try {
      const raw: unknown = await client.chat.completions.create(parameters(request, refused), {
        signal: deadline.signal,
        headers: request.model.api === "scripted" ? scriptedHeaders(request.model.script, request.caller) : {},
      });
      const parsed = completion.safeParse(raw);
      if (parsed.success) return { kind: "completion", completion: parsed.data };
      return {
        kind: "fault",
        fault: {
          status: "unreadable",
          message: `a completion without a readable ${parsed.error.issues[0]?.path.join(".") || "body"}`,
          retryAfterMs: null,
        },
      };
    } catch (error) {
      if (late) return { kind: "fault", fault: timeoutFault(request.timeoutMs) };
      const fault = (seen as ProviderFault | null) ?? transportFault(error);
      return { kind: "fault", fault: { ...fault, message: withoutKey(fault.message, key) } };
    } finally {
      answered.abort();
    }
  }

  async #key(model: ModelChoice): Promise<{ ok: true; value: string | null } | { ok: false; message: string }> {
    if (model.api === "scripted") return { ok: true, value: null };
    if (model.api !== "chat") {
      return {
        ok: false,
        message: `provider ${model.provider} speaks \`${model.api}\`; supervisor and user simulator need \`api: chat\` or \`scripted\``,
      };
    }
    if (model.keyName === null) return { ok: true, value: null };
    const value = (await this.#secrets.get(model.keyName))?.trim();
    if (value) return { ok: true, value };
    return { ok: false, message: `no key ${model.keyName} for provider ${model.provider}: set it in the environment` };
  }

  #agentFor(model: ModelChoice): Agent {
    const socket = model.api === "scripted" ? model.socket : "";
    const known = this.#agents.get(socket);
    if (known) return known;
    // Our own deadline ends a call that is silent; the agent's would tell a slow model from a hung one no better.
    const made = new Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(socket === "" ? {} : { connect: { socketPath: socket } }),
    });
    this.#agents.set(socket, made);
    return made;
  }

  #refusedBy(model: ModelChoice): Set<OptionalParameter> {
    const name = `${model.provider}/${model.name}`;
    const known = this.#refused.get(name) ?? new Set();
    this.#refused.set(name, known);
    return known;
  }
}

/**
 * Key, address and model are ours here, not an agent's: where the provider does not know them, asking again in a minute
 * gives the same, and a sweep would wait for nothing.
 */
function asCaller(fault: ProviderFault | null, httpStatus: number): ProviderFault | null {
  const ours = fault?.status === "provider_error" && [401, 403, 404, 405, 407].includes(httpStatus);
  return fault && ours ? { ...fault, status: "bad_request" } : fault;
}

function parameters(
  request: ChatRequest,
  refused: ReadonlySet<OptionalParameter>,
): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const maximum = request.maxOutputTokens;
  return {
    model: request.model.name,
    messages: request.messages.map(wireMessage),
    ...(request.tools.length === 0
      ? {}
      : { tools: request.tools.map((tool) => ({ type: "function" as const, function: { ...tool } })) }),
    ...(request.answerSchema === null || refused.has("response_format")
      ? {}
      : {
          response_format: { type: "json_schema" as const, json_schema: { ...request.answerSchema, strict: true } },
        }),
    ...(refused.has("reasoning_effort") ? {} : { reasoning_effort: request.effort }),
    ...(refused.has("max_completion_tokens") ? { max_tokens: maximum } : { max_completion_tokens: maximum }),
  };
}

function wireMessage(message: ChatMessage): OpenAI.ChatCompletionMessageParam {
  switch (message.role) {
    case "system":
    case "user":
      return { role: message.role, content: message.content };
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
    case "assistant":
      return {
        role: "assistant",
        content: message.content,
        ...(message.toolCalls && message.toolCalls.length > 0
          ? {
              tool_calls: message.toolCalls.map((call) => ({
                id: call.id,
                type: "function" as const,
                function: { name: call.name, arguments: call.arguments },
              })),
            }
          : {}),
      };
  }
}

/** Tokens as the provider counts them; where it counts none, a quarter of the characters, so that a call never costs nothing. */
function tokensOf(answer: Completion, request: ChatRequest): Tokens {
  const told = toldTokens(answer.usage);
  if (told !== null) return told;
  return {
    input: estimatedTokens(JSON.stringify(request.messages)),
    cached: 0,
    output: estimatedTokens(JSON.stringify(answer.choices[0]!.message)),
  };
}

async function limitedText(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function timeoutFault(timeoutMs: number): ProviderFault {
  return { status: "timeout", message: `no answer within ${Math.round(timeoutMs / 1000)} s`, retryAfterMs: null };
}

/** Providers echo keys in their errors, whole or in part; a whole one never leaves this file. */
function withoutKey(message: string, key: string | null): string {
  return withoutSecrets(key ? message.replaceAll(key, "…") : message);
}
