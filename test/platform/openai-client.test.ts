import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { createModelClient } from "../../lib/platform/openai-client.ts";
import type { ChatRequest, ModelChoice } from "../../lib/platform/ports.ts";

const key = "sk-very-secret-key-0123456789";
let server: Server;
let answer: (body: Record<string, unknown>, request: IncomingMessage, response: ServerResponse) => void;
const client = createModelClient({
  secrets: { get: async (name) => (name === "JUDGE_KEY" ? key : null) },
  clock: new RealClock(),
});

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => answer(JSON.parse(Buffer.concat(chunks).toString()), request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

function model(change: Record<string, unknown> = {}): ModelChoice {
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    name: "gpt-x",
    provider: "lab",
    api: "chat",
    baseUrl,
    keyName: "JUDGE_KEY",
    price: { input: 2, output: 8 },
    ...change,
  } as ModelChoice;
}

const request = (change: Partial<ChatRequest> = {}): ChatRequest => ({
  model: model(),
  messages: [
    { role: "system", content: "s" },
    { role: "user", content: "u" },
    { role: "assistant", content: null, toolCalls: [{ id: "c1", name: "list", arguments: "{}" }] },
    { role: "tool", toolCallId: "c1", content: "files" },
  ],
  tools: [{ name: "list", description: "lists", parameters: { type: "object" } }],
  answerSchema: { name: "review", schema: { type: "object" } },
  effort: "high",
  maxOutputTokens: 500,
  timeoutMs: 5000,
  caller: { role: "supervisor", task: "t", attempt: "a", turn: 1 },
  ...change,
});

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
};
const completion = (message: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
  usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 40 } },
  ...more,
});

describe("a provider's chat completions", () => {
  it("are asked with key, tools, schema and effort, and priced", async () => {
    let seen: { body: Record<string, unknown>; headers: IncomingMessage["headers"] } | null = null;
    answer = (body, incoming, response) => {
      seen = { body, headers: incoming.headers };
      json(response, 200, completion({ content: "hi" }));
    };
    expect(await client.chat(request())).toMatchObject({
      status: "ok",
      content: "hi",
      toolCalls: [],
      finishReason: "stop",
      tokens: { input: 100, cached: 40, output: 10 },
      usd: (100 * 2 + 10 * 8) / 1e6,
    });
    expect(seen!.headers.authorization).toBe(`Bearer ${key}`);
    expect(Object.keys(seen!.headers).filter((name) => name.startsWith("x-proctor"))).toEqual([]);
    expect(seen!.body).toMatchObject({
      model: "gpt-x",
      reasoning_effort: "high",
      max_completion_tokens: 500,
      response_format: { type: "json_schema", json_schema: { name: "review", strict: true } },
      tools: [{ type: "function", function: { name: "list" } }],
    });
    expect(seen!.body.messages).toEqual([
      { role: "system", content: "s" },
      { role: "user", content: "u" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "list", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "files" },
    ]);
  });

  it("without usage are counted by their length, never as nothing", async () => {
    answer = (_, __, response) => json(response, 200, { ...completion({ content: "hello" }), usage: null });
    const result = await client.chat(request());
    expect(result.status === "ok" && result.tokens.input > 10 && result.usd > 0).toBe(true);
  });

  it("that refuse an optional parameter are asked once more without it, and from then on", async () => {
    const bodies: Record<string, unknown>[] = [];
    answer = (body, _, response) => {
      bodies.push(body);
      if ("reasoning_effort" in body)
        json(response, 400, { error: { message: "Unknown parameter: 'reasoning_effort'." } });
      else json(response, 200, completion({ content: "hi" }));
    };
    const plain = { ...request(), model: model({ name: "old" }) };
    expect((await client.chat(plain)).status).toBe("ok");
    expect((await client.chat(plain)).status).toBe("ok");
    expect(bodies.map((body) => "reasoning_effort" in body)).toEqual([true, false, false]);
  });

  it("that refuse an optional parameter do so to calls that are made at the same time, too", async () => {
    const held: (() => void)[] = [];
    answer = (body, _, response) => {
      if (!("reasoning_effort" in body)) return json(response, 200, completion({ content: "hi" }));
      held.push(() => json(response, 400, { error: { message: "Unknown parameter: 'reasoning_effort'." } }));
      // Refused together, once all three are there: each has sent it before any knew.
      if (held.length === 3) for (const refuse of held) refuse();
    };
    const plain = { ...request(), model: model({ name: "old-and-busy" }) };
    const results = await Promise.all([client.chat(plain), client.chat(plain), client.chat(plain)]);
    expect(results.map((result) => result.status)).toEqual(["ok", "ok", "ok"]);
  });

  it.each([
    [429, {}, { "retry-after": "7" }, "rate_limited", 7000],
    [429, { error: { code: "insufficient_quota" } }, {}, "quota_exhausted", null],
    [402, {}, {}, "quota_exhausted", null],
    [400, { error: { message: "bad" } }, {}, "bad_request", null],
    [404, { error: { code: "model_not_found" } }, {}, "bad_request", null],
    [500, {}, {}, "provider_error", null],
    [503, {}, { "retry-after": "2" }, "provider_error", 2000],
    [504, {}, {}, "timeout", null],
    [301, {}, { location: "http://example.invalid/" }, "provider_error", null],
    [200, { error: { code: 429, message: "slow down" } }, {}, "rate_limited", null],
    [200, { choices: [] }, {}, "unreadable", null],
    [200, { choices: [{ message: { content: 5 } }] }, {}, "unreadable", null],
    [200, { hello: 1 }, {}, "unreadable", null],
  ] as const)("HTTP %i %j is told for what it is", async (status, body, headers, expected, retryAfterMs) => {
    answer = (_, __, response) => json(response, status, body, headers as Record<string, string>);
    expect(await client.chat(request())).toMatchObject({ status: expected, retryAfterMs });
  });

  it("a call is made once, whatever comes back", async () => {
    let calls = 0;
    answer = (_, __, response) => {
      calls += 1;
      json(response, 500, {});
    };
    await client.chat(request());
    expect(calls).toBe(1);
  });

  it("the key stays out of every message, also where a provider echoes it", async () => {
    answer = (_, __, response) => json(response, 401, { error: { message: `Incorrect API key provided: ${key}.` } });
    const result = await client.chat(request());
    expect(JSON.stringify(result)).not.toContain("very-secret");
    expect(result.status).toBe("bad_request");
  });

  it("a server that is not there is a connection that did not hold", async () => {
    const result = await client.chat(request({ model: model({ baseUrl: "http://127.0.0.1:1/v1" }) }));
    expect(result.status).toBe("disconnected");
  });

  it("a missing key and an API that is not spoken are said before anything is sent", async () => {
    answer = () => {
      throw new Error("nothing is to be sent");
    };
    expect(await client.chat(request({ model: model({ keyName: "OTHER" }) }))).toMatchObject({
      status: "bad_request",
      message: expect.stringContaining("OTHER"),
    });
    expect(await client.chat(request({ model: model({ api: "messages" }) }))).toMatchObject({
      status: "bad_request",
      message: expect.stringContaining("`messages`"),
    });
  });

  it("without a key's name no authorization is sent", async () => {
    let header: string | undefined = "none seen";
    answer = (_, incoming, response) => {
      header = incoming.headers.authorization;
      json(response, 200, completion({ content: "hi" }));
    };
    await client.chat(request({ model: model({ keyName: null }) }));
    expect(header).toBeUndefined();
  });
});
