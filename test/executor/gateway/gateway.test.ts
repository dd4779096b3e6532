import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ModelCallRecord } from "../../../lib/executor/gateway/call-log.ts";
import { Gateway, type GatewayTurn, type GatewayTurnOptions } from "../../../lib/executor/gateway/gateway.ts";
import { UnsupportedModel } from "../../../lib/executor/gateway/upstream.ts";
import { countingRandom, io, ManualClock, until } from "../support/clocks.ts";
import {
  chunks,
  completion,
  event,
  type FakeProvider,
  type ProviderCall,
  sendJson,
  sendStream,
  startProvider,
} from "../support/fake-provider.ts";

const providerKey = "plain.key";
let folder: string;
let clock: ManualClock;
let gateway: Gateway;
let provider: FakeProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "gw-"));
  clock = new ManualClock();
  provider = await startProvider(join(folder, "p"), ({ response }) => sendJson(response, 200, completion("hello")));
  gateway = await Gateway.start({
    socket: join(folder, "g"),
    agentKey: "agent-key",
    providerKey,
    clock,
    random: countingRandom,
    spool: async () => folder,
  });
});
afterEach(async () => {
  await gateway.close();
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

function openTurn(change: Partial<GatewayTurnOptions> = {}): GatewayTurn {
  return gateway.openTurn({
    turn: 1,
    task: "task_1",
    attempt: "a".repeat(26),
    model: {
      name: "m",
      provider: "p",
      price: { input: 1, output: 2 },
      api: "scripted",
      socket: join(folder, "p"),
      script: "/scripts/ünï",
    },
    caps: { usd: null, tokens: null },
    deadline: clock.now() + 3_600_000,
    silenceMs: 100_000,
    ...change,
  });
}

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  /** The connection broke before the answer's end. */
  broken: boolean;
}

function ask(
  body: unknown,
  options: { key?: string; path?: string; method?: string; signal?: AbortSignal } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const sent = httpRequest(
      {
        socketPath: join(folder, "g"),
        path: options.path ?? "/v1/chat/completions",
        method: options.method ?? "POST",
        headers: { authorization: `Bearer ${options.key ?? "agent-key"}`, "content-type": "application/json" },
        ...(options.signal ? { signal: options.signal } : {}),
      },
      (response) => {
        let received = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          received += part;
        });
        const done = (broken: boolean) =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received, broken });
        response.on("end", () => done(false));
        response.on("error", () => done(true));
      },
    );
    sent.on("error", reject);
    sent.end(options.method === "GET" ? undefined : text);
  });
}

const hello = { model: "m", messages: [{ role: "user", content: "hi" }] };

async function close(turn: GatewayTurn) {
  const closed = await turn.close();
  const records = closed.record
    ? readFileSync(closed.record, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as ModelCallRecord)
    : [];
  return { ...closed, records };
}

const errorOf = (answer: Answer) =>
  (JSON.parse(answer.text) as { error: { code: string; type: string; message: string } }).error;

describe("a call", () => {
  it("passes through, is accounted and is recorded whole", async () => {
    const turn = openTurn();
    const answer = await ask({ ...hello, temperature: 0.5, unknown_field: [1] });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toEqual(completion("hello"));
    const closed = await close(turn);
    expect(provider.calls[0]?.body).toEqual({ ...hello, temperature: 0.5, unknown_field: [1] });
    expect(closed.usage).toEqual({ input: 100, cached: 0, output: 10, usd: 0.00012 });
    expect(closed.lines).toEqual([
      {
        v: 1,
        role: "executor",
        turn: 1,
        model: "m",
        ms: 0,
        status: "ok",
        tokens: { input: 100, cached: 0, output: 10 },
        usd: 0.00012,
      },
    ]);
    expect(closed.records[0]).toMatchObject({
      call: 1,
      status: "ok",
      request: { temperature: 0.5 },
      response: completion("hello"),
      estimated: false,
    });
  });

  it("tells a scripted model whose call it is, and gives it no key", async () => {
    openTurn();
    await ask(hello);
    expect(provider.calls[0]?.headers).toMatchObject({
      "x-proctor-role": "executor",
      "x-proctor-task": "task_1",
      "x-proctor-turn": "1",
      "x-proctor-script": encodeURIComponent("/scripts/ünï"),
    });
    expect(provider.calls[0]?.headers.authorization).toBeUndefined();
  });

  it("counts cached input at its price", async () => {
    const turn = openTurn({
      model: {
        name: "m",
        provider: "p",
        price: { input: 10, cached: 1, output: 20 },
        api: "scripted",
        socket: join(folder, "p"),
        script: "s",
      },
    });
    provider.answer = ({ response }) =>
      sendJson(
        response,
        200,
        completion("x", { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 60 } }),
      );
    await ask(hello);
    expect((await close(turn)).usage.usd).toBeCloseTo((40 * 10 + 60 * 1 + 10 * 20) / 1e6, 12);
  });

  it("without usage in the answer is estimated and says so", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => sendJson(response, 200, completion("x".repeat(400), null));
    await ask({ model: "m", messages: [{ role: "user", content: "y".repeat(4000) }] });
    const closed = await close(turn);
    expect(closed.records[0]?.estimated).toBe(true);
    expect(closed.usage.input).toBeGreaterThan(900);
    expect(closed.usage.output).toBeGreaterThan(90);
  });

  it.each([
    ["texts", '{"prompt_tokens":"100","completion_tokens":"10"}'],
    ["no finite number", '{"prompt_tokens":100,"completion_tokens":1e309}'],
    ["a fraction", '{"prompt_tokens":100.5,"completion_tokens":10}'],
    ["less than nothing", '{"prompt_tokens":100,"completion_tokens":-10}'],
    ["more than any model takes", '{"prompt_tokens":10000001,"completion_tokens":10}'],
    ["more than any model gives", '{"prompt_tokens":100,"completion_tokens":1000000000}'],
    ["a list", "[]"],
    ["a text", '"much"'],
  ])("with a usage of %s is estimated and says so", async (_, usage) => {
    const turn = openTurn();
    provider.answer = ({ response }) => {
      const text = JSON.stringify(completion("x".repeat(400), { odd: 1 }));
      sendJson(response, 200, text.replace('{"odd":1}', usage));
    };
    await ask(hello);
    provider.answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of chunks(["x".repeat(400)], { odd: 1 })) {
        response.write(event(JSON.stringify(part).replace('{"odd":1}', usage)));
      }
      response.end(event("[DONE]"));
    };
    await ask({ ...hello, stream: true });
    const { records, usage: booked } = await close(turn);
    expect(records).toMatchObject([
      { status: "ok", estimated: true },
      { status: "ok", estimated: true },
    ]);
    expect(booked.input).toBeLessThan(10);
    expect(booked.output).toBeGreaterThan(190);
    expect(booked.output).toBeLessThan(300);
  });

  it("keeps lone surrogates, NUL and long texts as they are", async () => {
    const turn = openTurn();
    const odd = `\ud800\u0000${"ä".repeat(300_000)}`;
    provider.answer = ({ response }) => sendJson(response, 200, completion(odd));
    const answer = await ask({ model: "m", messages: [{ role: "user", content: odd }] });
    expect(
      (JSON.parse(answer.text) as { choices: { message: { content: string } }[] }).choices[0]?.message.content,
    ).toBe(odd);
    expect(provider.calls[0]?.body.messages).toEqual([{ role: "user", content: odd }]);
    expect((await close(turn)).records[0]?.request).toMatchObject({ messages: [{ content: odd }] });
  });
});

describe("what a turn leaves", () => {
  it("says that the record could not be written, and does not wait for it for ever", async () => {
    await gateway.close();
    gateway = await Gateway.start({
      socket: join(folder, "g"),
      agentKey: "agent-key",
      providerKey,
      clock,
      random: countingRandom,
      spool: async () => join(folder, "not-there"),
    });
    const turn = openTurn();
    await ask(hello);
    await ask(hello);
    const closed = await turn.close();
    expect(closed.recordFault?.message).toContain("ENOENT");
    expect(closed.usage).toMatchObject({ input: 200, output: 20 });
  });

  it("counts an answer that the agent did not take as the provider told it", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => sendJson(response, 200, completion("x".repeat(16 * 1024 ** 2)));
    const sent = httpRequest({
      socketPath: join(folder, "g"),
      path: "/v1/chat/completions",
      method: "POST",
      headers: { authorization: "Bearer agent-key", "content-type": "application/json" },
    });
    sent.on("error", () => undefined).end(JSON.stringify(hello));
    const answered = await new Promise<IncomingMessage>((resolve) => sent.once("response", resolve));
    answered.on("error", () => undefined);
    const closed = await close(turn);
    expect(closed.usage).toMatchObject({ input: 100, output: 10 });
    expect(closed.records[0]).toMatchObject({ status: "ok", estimated: false });
  });
});

describe("the gateway refuses", () => {
  it.each([
    ["another key", hello, { key: "agent-kez" }, 401],
    ["no key", hello, { key: "" }, 401],
    ["the provider's key", hello, { key: providerKey }, 401],
    ["another address", hello, { path: "/v1/embeddings" }, 404],
    ["a walk out of its address", hello, { path: "/v1/chat/completions/../../admin" }, 404],
    ["another method", hello, { method: "GET" }, 405],
    ["what is no JSON", "{", {}, 400],
    ["a list", "[]", {}, 400],
    ["no messages", { model: "m" }, {}, 400],
    ["another model", { ...hello, model: "gpt-expensive" }, {}, 404],
    ["a body of more than 64 MB", `"${"x".repeat(64 * 1024 ** 2)}"`, {}, 413],
  ])("%s, and asks no provider", async (_, body, options, status) => {
    const turn = openTurn();
    const answer = await ask(body, options);
    expect(answer.status).toBe(status);
    expect(errorOf(answer).message).not.toBe("");
    expect(answer.text).not.toContain(providerKey);
    expect(provider.calls).toEqual([]);
    expect((await close(turn)).outcomes).toEqual([]);
  });

  it("calls while no turn is open", async () => {
    expect((await ask(hello)).status).toBe(503);
    const turn = openTurn();
    await turn.close();
    expect((await ask(hello)).status).toBe(503);
  });

  it.each(["responses", "messages"] as const)("a provider of the %s API, saying what to do", (api) => {
    const model = {
      name: "m",
      provider: "p",
      price: { input: 1, output: 1 },
      api,
      baseUrl: "http://h/v1",
      keyName: null,
    };
    expect(() => openTurn({ model })).toThrow(UnsupportedModel);
    expect(() => openTurn({ model })).toThrow(/expected "chat" or "scripted"/);
  });
});

it("lists the one model", async () => {
  openTurn();
  const list = await ask(null, { path: "/v1/models", method: "GET" });
  expect(JSON.parse(list.text)).toMatchObject({ data: [{ id: "m" }] });
  expect((await ask(null, { path: "/v1/models/m", method: "GET" })).status).toBe(200);
  expect((await ask(null, { path: "/v1/models/other", method: "GET" })).status).toBe(404);
});

describe("a streamed call", () => {
  const streamed = { ...hello, stream: true };

  it("asks for usage, hides it from a client that did not, and is put together for the record", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => sendStream(response, chunks(["he", "llo"]));
    const answer = await ask(streamed);
    expect(provider.calls[0]?.body.stream_options).toEqual({ include_usage: true });
    expect(answer.text).not.toContain("usage");
    expect(answer.text).toContain('"content":"llo"');
    expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
    const closed = await close(turn);
    expect(closed.usage).toMatchObject({ input: 100, output: 10 });
    expect(closed.records[0]).toMatchObject({
      status: "ok",
      stream: true,
      response: { choices: [{ message: { content: "hello" }, finish_reason: "stop" }] },
    });
  });

  it("leaves usage to a client that asked for it", async () => {
    openTurn();
    provider.answer = ({ response }) => sendStream(response, chunks(["x"]));
    expect((await ask({ ...streamed, stream_options: { include_usage: true } })).text).toContain('"prompt_tokens":100');
  });

  it("is put together from tool calls in pieces", async () => {
    const turn = openTurn();
    const delta = (call: object) => ({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] });
    provider.answer = ({ response }) =>
      sendStream(response, [
        delta({ index: 0, id: "c1", type: "function", function: { name: "bash", arguments: "" } }),
        delta({ index: 0, function: { arguments: '{"a"' } }),
        delta({ index: 0, function: { arguments: ":1}" } }),
        { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      ]);
    await ask(streamed);
    const response = (await close(turn)).records[0]?.response as { choices: { message: object }[] };
    expect(response.choices[0]?.message).toMatchObject({
      tool_calls: [{ id: "c1", function: { name: "bash", arguments: '{"a":1}' } }],
    });
  });

  it("is passed on byte by byte when it comes so", async () => {
    openTurn();
    const whole = [...chunks(["ü€"]), "[DONE]"].map(event).join("").replaceAll("\n\n", "\r\n\r\n");
    provider.answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const byte of Buffer.from(`: ping\r\n\r\n${whole}`)) response.write(Buffer.from([byte]));
      response.end();
    };
    const answer = await ask(streamed);
    expect(answer.text).toContain("ü€");
    expect(answer.text).toContain("[DONE]");
  });

  it("that breaks off in the middle breaks off for the agent too, and is counted by what came", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(chunks(["a".repeat(400)])[0]), () => response.destroy());
    };
    const answer = await ask(streamed);
    expect(answer.broken).toBe(true);
    const closed = await close(turn);
    expect(closed.outcomes).toMatchObject([{ status: "disconnected" }]);
    expect(closed.usage.output).toBe(100);
    expect(closed.records[0]).toMatchObject({ estimated: true, response: { choices: [{ finish_reason: null }] } });
  });

  it("that ends without its finish is a disconnect, not an answer", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(event(chunks(["a"])[0]));
    };
    expect((await ask(streamed)).broken).toBe(true);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "disconnected" }]);
  });

  it.each([
    ["HTML", "<html>login</html>", "unreadable", 502],
    ["nothing", "", "unreadable", 502],
    ["garbage in an event", "data: ÿþ{{{\n\n", "unreadable", 502],
    ["an error event", event({ error: { code: 429, message: "busy" } }), "rate_limited", 429],
    ["a whole completion", JSON.stringify(completion("x")), "unreadable", 502],
  ])("that brings %s is %s", async (_, text, status, http) => {
    const turn = openTurn({ deadline: clock.now() });
    provider.answer = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(text);
    };
    const answer = await ask(streamed);
    expect(answer.status).toBe(http);
    expect((await close(turn)).outcomes).toMatchObject([{ status }]);
  });

  it("given up by the agent ends at the provider, and what came is paid", async () => {
    const turn = openTurn();
    let upstreamClosed = false;
    provider.answer = ({ response }) => {
      response.on("close", () => {
        upstreamClosed = true;
      });
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(chunks(["a".repeat(40)])[0]));
    };
    const given = new AbortController();
    const asked = ask(streamed, { signal: given.signal });
    await until(() => turn.life.lastAt !== null && provider.calls.length === 1);
    await until(() => turn.life.pending === 1);
    await io();
    given.abort();
    await asked.catch(() => undefined);
    await until(() => upstreamClosed);
    const closed = await close(turn);
    expect(closed.outcomes).toMatchObject([{ status: "cancelled" }]);
    expect(closed.usage.input).toBeGreaterThan(0);
  });
});

describe("a provider that fails", () => {
  it.each([
    ["402", 402, JSON.stringify({ error: { message: "pay", code: "insufficient_funds" } }), "quota_exhausted", 402],
    ["500", 500, "oops", "provider_error", 500],
    ["an HTML page with 502", 502, "<html></html>", "provider_error", 502],
    ["HTML with 200", 200, "<!doctype html>", "unreadable", 502],
    ["nothing with 200", 200, "", "unreadable", 502],
    ["garbage with 200", 200, "\u0000\u0001{", "unreadable", 502],
    ["a bad request", 400, JSON.stringify({ error: { code: "context_length_exceeded" } }), "bad_request", 400],
  ])("with %s is told apart and passed on", async (_, status, body, outcome, passed) => {
    const turn = openTurn();
    provider.answer = ({ response }) => sendJson(response, status, body);
    const answer = await ask(hello);
    expect(answer.status).toBe(passed);
    expect(errorOf(answer).message).not.toBe("");
    const closed = await close(turn);
    expect(closed.outcomes).toMatchObject([{ status: outcome }]);
    expect(closed.usage.usd).toBe(0);
  });

  it("keeps the code that agents act on", async () => {
    openTurn();
    provider.answer = ({ response }) =>
      sendJson(response, 400, {
        error: { code: "context_length_exceeded", type: "invalid_request_error", message: "long" },
      });
    expect(errorOf(await ask(hello))).toMatchObject({ code: "context_length_exceeded", message: "long" });
  });

  it("by dropping the connection is a 502 for the agent", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => response.destroy();
    expect((await ask(hello)).status).toBe(502);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "disconnected" }]);
  });

  it("by not being there is a 502 for the agent", async () => {
    const turn = openTurn();
    await provider.close();
    expect((await ask(hello)).status).toBe(502);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "disconnected" }]);
  });

  it("by silence is a 504 after the limit", async () => {
    const turn = openTurn({ silenceMs: 30_000 });
    provider.answer = () => undefined;
    const asked = ask(hello);
    await until(() => provider.calls.length === 1);
    await clock.advance(29_000);
    expect(turn.life.pending).toBe(1);
    await clock.advance(2_000);
    expect((await asked).status).toBe(504);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "timeout" }]);
  });
});

describe("a call that the agent gave up", () => {
  it.each([
    [59_000, "cancelled"],
    [61_000, "timeout"],
  ])("after %i ms of silence is %s", async (ms, status) => {
    const turn = openTurn();
    provider.answer = () => undefined;
    const given = new AbortController();
    const asked = ask(hello, { signal: given.signal }).catch(() => null);
    await until(() => provider.calls.length === 1);
    await clock.advance(ms);
    given.abort();
    await asked;
    await until(() => turn.life.pending === 0);
    expect((await close(turn)).outcomes).toMatchObject([{ status }]);
  });

  it("because the turn ended is nobody's fault, however long it was silent", async () => {
    const turn = openTurn();
    provider.answer = () => undefined;
    const asked = ask(hello).catch(() => null);
    await until(() => provider.calls.length === 1);
    await clock.advance(90_000);
    turn.endCalls();
    expect((await close(turn)).outcomes).toMatchObject([{ status: "cancelled" }]);
    await asked;
  });
});

describe("a provider over the network", () => {
  it("gets the key and nothing about the attempt; the agent's own key stays here", async () => {
    const seen: { path: string; headers: Record<string, unknown> }[] = [];
    const server = createServer((request, response) => {
      seen.push({ path: request.url ?? "", headers: request.headers });
      request.resume();
      sendJson(response, 200, completion("ok"), { "set-cookie": `k=${providerKey}`, "x-key": providerKey });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const turn = openTurn({
      model: {
        name: "m",
        provider: "p",
        price: { input: 1, output: 2 },
        api: "chat",
        baseUrl: `http://127.0.0.1:${port}/api/v1/`,
        keyName: "KEY",
      },
    });
    const answer = await ask(hello);
    expect(answer.status).toBe(200);
    expect(seen[0]?.path).toBe("/api/v1/chat/completions");
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${providerKey}`);
    expect(Object.keys(seen[0]?.headers ?? {}).filter((name) => name.startsWith("x-proctor"))).toEqual([]);
    expect(JSON.stringify([answer.headers, answer.text])).not.toContain(providerKey);
    const closed = await close(turn);
    expect(readFileSync(closed.record as string, "utf8")).not.toContain(providerKey);
    await new Promise((resolve) => server.close(resolve));
  });

  it("that echoes the key in an error does not hand it to the agent, whatever the key looks like", async () => {
    const body = JSON.stringify({
      error: { code: "invalid_api_key", message: `Incorrect API key provided: ${providerKey}` },
    });
    const server = createServer((request, response) => {
      request.resume();
      sendJson(response, 401, body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const baseUrl = `http://127.0.0.1:${port}/v1`;
    const price = { input: 1, output: 2 };
    const turn = openTurn({ model: { name: "m", provider: "p", price, api: "chat", baseUrl, keyName: "KEY" } });
    const answer = await ask(hello);
    expect(answer.status).toBe(401);
    expect(errorOf(answer).code).toBe("invalid_api_key");
    expect(answer.text).not.toContain(providerKey);
    expect(JSON.stringify(await close(turn))).not.toContain(providerKey);
    await new Promise((resolve) => server.close(resolve));
  });

  it("is not followed to another address", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => {
      response.writeHead(307, { location: "http://169.254.170.2/" });
      response.end();
    };
    expect((await ask(hello)).status).toBe(502);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "provider_error" }]);
  });
});

describe("429", () => {
  const limited = (headers: Record<string, string>) => (call: ProviderCall) =>
    sendJson(call.response, 429, { error: { code: "rate_limit_exceeded", message: "slow down" } }, headers);

  it("is waited out as the provider asks, and the agent sees nothing of it", async () => {
    const turn = openTurn();
    provider.answer = (call) =>
      call.number === 1 ? limited({ "retry-after": "7" })(call) : sendJson(call.response, 200, completion("ok"));
    const asked = ask(hello);
    await until(() => provider.calls.length === 1);
    await io();
    await until(() => clock.next === 7000);
    await clock.advance(7000);
    expect((await asked).status).toBe(200);
    const closed = await close(turn);
    expect(closed.records).toMatchObject([{ status: "ok", waited: [{ status: "rate_limited", ms: 7000 }], ms: 7000 }]);
  });

  it("that asks for no wait is not asked again at once", async () => {
    openTurn();
    provider.answer = (call) =>
      call.number === 1 ? limited({ "retry-after": "0" })(call) : sendJson(call.response, 200, completion("ok"));
    const asked = ask(hello);
    await until(() => clock.next === 750);
    expect(provider.calls).toHaveLength(1);
    await clock.advance(750);
    expect((await asked).status).toBe(200);
  });

  it("for ever is passed on after a bound", async () => {
    const turn = openTurn();
    provider.answer = limited({});
    let answer: Answer | null = null;
    const asked = ask(hello).then((got) => {
      answer = got;
    });
    while (!answer) {
      await io();
      if (clock.next !== null && clock.next <= 30_000) await clock.advance(clock.next);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await asked;
    expect((answer as Answer).status).toBe(429);
    expect(provider.calls.length).toBeGreaterThan(3);
    expect(provider.calls.length).toBeLessThan(12);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "rate_limited" }]);
  });

  it("with a wait beyond the turn's end is passed on at once, with the wait", async () => {
    openTurn({ deadline: clock.now() + 5000 });
    provider.answer = limited({ "retry-after": "60" });
    const answer = await ask(hello);
    expect(answer.status).toBe(429);
    expect(answer.headers["retry-after"]).toBe("60");
    expect(provider.calls).toHaveLength(1);
  });

  it("that the end of the turn cuts short is a rate limit", async () => {
    const turn = openTurn();
    provider.answer = limited({ "retry-after": "50" });
    const asked = ask(hello).catch(() => null);
    await until(() => clock.next === 50_000);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "rate_limited" }]);
    await asked;
  });

  it("for want of money is no rate limit", async () => {
    const turn = openTurn();
    provider.answer = ({ response }) => sendJson(response, 429, { error: { code: "insufficient_quota" } });
    expect((await ask(hello)).status).toBe(429);
    expect(provider.calls).toHaveLength(1);
    expect((await close(turn)).outcomes).toMatchObject([{ status: "quota_exhausted" }]);
  });
});

describe("the cap", () => {
  it("bounds output by what it still pays for, under the name that the request used", async () => {
    openTurn({ caps: { usd: 0.001, tokens: null } });
    await ask({ ...hello, max_completion_tokens: 100_000 });
    expect(provider.calls[0]?.body.max_completion_tokens).toBe(499);
    expect(provider.calls[0]?.body.max_tokens).toBeUndefined();
  });

  it("leaves a smaller wish alone and holds a call without one to what is set aside for it", async () => {
    openTurn({ caps: { usd: 100, tokens: null } });
    await ask({ ...hello, max_tokens: 5 });
    await ask(hello);
    expect(provider.calls[0]?.body.max_tokens).toBe(5);
    expect(provider.calls[1]?.body.max_tokens).toBe(32_768);
  });

  it("replaces a bound that is no number", async () => {
    openTurn({ caps: { usd: 0.001, tokens: null } });
    await ask({ ...hello, max_completion_tokens: "100000" });
    expect(provider.calls[0]?.body.max_completion_tokens).toBe(499);
  });

  it.each([
    ["dollars", { usd: 1, tokens: null }],
    ["tokens", { usd: null, tokens: 250_000 }],
  ])("of %s is not passed by many calls at once without a bound of their own", async (_, caps) => {
    const price = { input: 1, output: 4 };
    const model = { name: "m", provider: "p", price, api: "scripted" as const, socket: join(folder, "p"), script: "s" };
    const turn = openTurn({ caps, model });
    // It would answer 100 000 tokens each time, and keeps to what it is told.
    provider.answer = ({ body, response }) => {
      const output = Math.min(100_000, (body.max_tokens as number | undefined) ?? 100_000);
      sendJson(response, 200, completion("x", { prompt_tokens: 1, completion_tokens: output }));
    };
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(hello)));
    const closed = await close(turn);
    expect(closed.usage.usd).toBeLessThanOrEqual(1);
    expect(closed.usage.usd).toBeGreaterThan(0.99);
    expect(closed.capReached).toBe(true);
    expect(answers.filter((answer) => answer.status === 402).length).toBeGreaterThan(15);
  });

  it("ends the turn where a provider ignores the bound, and counts what it told", async () => {
    const turn = openTurn({ caps: { usd: 0.001, tokens: null } });
    provider.answer = ({ response }) =>
      sendJson(response, 200, completion("x", { prompt_tokens: 1, completion_tokens: 100_000 }));
    const answers = await Promise.all([ask(hello), ask(hello), ask(hello)]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 402, 402]);
    expect((await close(turn)).usage).toMatchObject({ output: 100_000, usd: 0.200001 });
  });

  it("is lowered for a model that gives less in one answer, unless the bound is the agent's own", async () => {
    const turn = openTurn({ caps: { usd: 100, tokens: null } });
    provider.answer = ({ body, response }) =>
      (body.max_tokens as number) > 8192
        ? sendJson(response, 400, { error: { message: "max_tokens is too large: at most 8192" } })
        : sendJson(response, 200, completion("x"));
    expect((await ask(hello)).status).toBe(200);
    expect(provider.calls.map((call) => call.body.max_tokens)).toEqual([32_768, 16_384, 8192]);
    expect((await ask({ ...hello, max_tokens: 10_000 })).status).toBe(400);
    expect((await close(turn)).records).toMatchObject([
      { status: "ok", request: { max_tokens: 8192 } },
      { status: "bad_request" },
    ]);
  });

  it("once reached refuses every further call with an error that is not retried", async () => {
    const turn = openTurn({ caps: { usd: 0.0002, tokens: null } });
    expect((await ask(hello)).status).toBe(200);
    expect((await ask(hello)).status).toBe(200);
    expect(turn.capReached).toBe(true);
    for (let n = 0; n < 3; n++) {
      const answer = await ask(hello);
      expect(answer.status).toBe(402);
      expect(errorOf(answer)).toMatchObject({ code: "proctor_cap" });
    }
    expect(provider.calls).toHaveLength(2);
    const closed = await close(turn);
    expect(closed.capReached).toBe(true);
    expect(closed.lines.map((line) => line.status)).toEqual(["ok", "ok", "capped", "capped", "capped"]);
    expect(closed.usage.usd).toBeCloseTo(0.00024, 10);
  });

  it("of tokens works alike", async () => {
    const turn = openTurn({ caps: { usd: null, tokens: 110 } });
    expect((await ask(hello)).status).toBe(200);
    expect((await ask(hello)).status).toBe(402);
    expect((await close(turn)).capReached).toBe(true);
  });

  it("refuses a call whose least cost would exceed it, and all that follow", async () => {
    openTurn({ caps: { usd: 0.0001, tokens: null } });
    expect((await ask({ model: "m", messages: [{ role: "user", content: "x".repeat(100_000) }] })).status).toBe(402);
    expect((await ask(hello)).status).toBe(402);
    expect(provider.calls).toHaveLength(0);
  });

  it("of nothing refuses the first call", async () => {
    openTurn({ caps: { usd: 0, tokens: null } });
    expect((await ask(hello)).status).toBe(402);
  });

  it("is not passed by calls that run at once", async () => {
    const turn = openTurn({ caps: { usd: 0.00025, tokens: null } });
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(hello)));
    const through = answers.filter((answer) => answer.status === 200).length;
    expect(through).toBe(3);
    expect((await close(turn)).usage.usd).toBeCloseTo(0.00036, 10);
  });
});

describe("life", () => {
  it("shows in every call and is still while a call hangs", async () => {
    const turn = openTurn({ silenceMs: 1_000_000 });
    expect(turn.life.lastAt).toBeNull();
    provider.answer = () => undefined;
    const asked = ask(hello).catch(() => null);
    await until(() => provider.calls.length === 1);
    const began = turn.life.lastAt;
    expect(began).toBe(clock.now());
    await clock.advance(500_000);
    expect(turn.life).toMatchObject({ lastAt: began, calls: 1, pending: 1 });
    await turn.close();
    await asked;
  });
});
