import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Agent, fetch } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { scriptedHeaders } from "../../../lib/attempt/scripted-headers.ts";
import { readTurn } from "../../../lib/platform/local/script-files.ts";
import { startScriptedModels } from "../../../lib/platform/local/scripted-models.ts";
import { VirtualClock } from "../../../lib/platform/local/virtual-clock.ts";
import { createModelClient } from "../../../lib/platform/openai-client.ts";
import type { ChatMessage, ChatRequest } from "../../../lib/platform/ports.ts";
import { ProblemsError } from "../../../lib/tasks/problem.ts";

const folder = mkdtempSync(join(tmpdir(), "ps-"));
const socket = join(folder, "models.sock");
const script = join(folder, "scripts", "ein Modell, 模型");
const clock = new VirtualClock(undefined, "manual");
const client = createModelClient({ secrets: { get: async () => null }, clock });
const raw = new Agent({ connect: { socketPath: socket } });
let server: { close(): Promise<void> };

beforeAll(async () => {
  server = await startScriptedModels({ socket, clock });
});
afterAll(async () => {
  await client.close();
  await raw.destroy();
  await server.close();
  rmSync(folder, { recursive: true });
});

let task = 0;
afterEach(() => {
  task += 1;
});
/** Writes a turn of the current test's own task. */
function write(text: string, { role = "executor", turn = 1, name = `task_${task}` } = {}): void {
  const file = join(script, role, name, `turn-0${turn}.yaml`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function request(
  change: Partial<ChatRequest> & { role?: "executor" | "supervisor" | "simulator"; turn?: number } = {},
): ChatRequest {
  const { role = "executor", turn = 1, ...rest } = change;
  return {
    model: {
      name: "m",
      provider: "scripted",
      api: "scripted",
      socket,
      script,
      price: { input: 1, cached: 0.5, output: 4 },
    },
    messages: [{ role: "user", content: "go" }],
    tools: [],
    answerSchema: null,
    effort: "low",
    maxOutputTokens: 1000,
    timeoutMs: 60_000,
    caller: { role, task: `task_${task}`, attempt: "a".repeat(26), turn },
    ...rest,
  };
}

const following = (...contents: string[]): ChatMessage[] => [
  { role: "user", content: "go" },
  ...contents.map((content): ChatMessage => ({ role: "assistant", content })),
];

async function content(messages?: ChatMessage[], change: Parameters<typeof request>[0] = {}): Promise<string | null> {
  const result = await client.chat(request({ ...(messages ? { messages } : {}), ...change }));
  if (result.status !== "ok") throw new Error(`${result.status}: ${result.message}`);
  return result.content;
}

describe("scripted models", () => {
  it("answer by the index of the call within the turn; the last answer repeats", async () => {
    write("- {text: one}\n- {text: two}\n");
    expect(await content(following())).toBe("one");
    expect(await content(following("one"))).toBe("two");
    expect(await content(following("one", "two", "x"))).toBe("two");
    expect(await content([...following("one"), { role: "user", content: "next turn" }])).toBe("one");
  });

  it("count a supervisor's answers from the beginning, as it may be asked again", async () => {
    write("- {text: one}\n- {text: two}\n", { role: "supervisor" });
    const again: ChatMessage[] = [...following("one"), { role: "user", content: "again" }];
    expect(await content(again, { role: "supervisor" })).toBe("two");
  });

  it("answer with tools, JSON and tokens that cost what the price says", async () => {
    write(
      "- {tools: [{name: bash, arguments: {command: ls}}, {name: read, arguments: '{broken'}], tokens: {input: 1000, cached: 400, output: 50}}\n- {json: {a: [1]}}\n",
    );
    const result = await client.chat(request());
    expect(result).toMatchObject({
      status: "ok",
      content: null,
      finishReason: "tool_calls",
      toolCalls: [
        { name: "bash", arguments: '{"command":"ls"}' },
        { name: "read", arguments: "{broken" },
      ],
      tokens: { input: 1000, cached: 400, output: 50 },
    });
    expect(result.status === "ok" && result.usd).toBeCloseTo((600 + 200 + 200) / 1e6, 12);
    expect(await content(following("x"))).toBe('{"a":[1]}');
  });

  it("estimate tokens that no script gives, and are deterministic", async () => {
    write("- {text: hello there}\n");
    const [first, second] = [await client.chat(request()), await client.chat(request())];
    expect(first).toEqual(second);
    expect(first.status === "ok" && first.tokens).toEqual({ input: 1, cached: 0, output: 3 });
  });

  it("choose by what the messages hold", async () => {
    write('- any:\n    - {when: "no.*such", text: missing}\n    - {when: "^go$", text: first}\n    - {text: else}\n');
    expect(await content()).toBe("first");
    expect(await content([{ role: "user", content: "no\nsuch" }])).toBe("missing");
    expect(await content([{ role: "user", content: "?" }])).toBe("else");
  });

  it("use the last file present for later turns, and _any for tasks without one", async () => {
    write("- {text: t1}\n");
    write("- {text: t2}\n", { turn: 2 });
    expect(await content(undefined, { turn: 5 })).toBe("t2");
    write("- {text: anyone}\n", { role: "simulator", name: "_any" });
    expect(await content(undefined, { role: "simulator" })).toBe("anyone");
  });

  it("say which file is missing", async () => {
    await expect(content(undefined, { role: "supervisor" })).rejects.toThrow(
      `bad_request: HTTP 404 (no_script scripted_model: no script for role supervisor, task "task_${task}", turn 1`,
    );
  });

  it("wait on the clock where a script says so", async () => {
    write("- {text: late, delayMs: 5000}\n");
    const answered = content();
    // The caller's deadline and the server's delay.
    await sleeping(2);
    await clock.advance(5000);
    expect(await answered).toBe("late");
  });

  it("stream the same answer in chunks, with usage where it is asked for", async () => {
    write('- {text: "héllo wörld", tools: [{name: bash, arguments: {command: ls}}]}\n');
    const response = await fetch("http://localhost/v1/chat/completions", {
      method: "POST",
      dispatcher: raw,
      headers: scriptedHeaders(script, request().caller),
      body: JSON.stringify({
        model: "m",
        messages: [{ role: "user", content: [{ type: "text", text: "go" }] }],
        stream: true,
        stream_options: { include_usage: true },
      }),
    });
    const lines = (await response.text()).split("\n\n").filter((line) => line !== "");
    expect(lines.at(-1)).toBe("data: [DONE]");
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line.slice("data: ".length)));
    const deltas = chunks.flatMap((chunk) => chunk.choices.map((choice: { delta: unknown }) => choice.delta));
    expect(deltas.map((delta) => delta.content ?? "").join("")).toBe("héllo wörld");
    const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
    expect(calls.map((call) => call.function.arguments).join("")).toBe('{"command":"ls"}');
    expect(chunks.at(-1).usage.completion_tokens).toBeGreaterThan(0);
  });

  it("refuse calls without their headers, other paths, and what is no request", async () => {
    const post = (path: string, headers: Record<string, string>, body: string) =>
      fetch(`http://localhost${path}`, { method: "POST", dispatcher: raw, headers, body });
    expect((await post("/v1/chat/completions", {}, "{}")).status).toBe(404);
    expect((await post("/v1/embeddings", scriptedHeaders(script, request().caller), "{}")).status).toBe(404);
    expect((await post("/v1/chat/completions", scriptedHeaders(script, request().caller), "nope")).status).toBe(400);
    const elsewhere = scriptedHeaders(script, { ...request().caller, task: "../../../etc" });
    const answer = await post(
      "/v1/chat/completions",
      elsewhere,
      JSON.stringify({ model: "m", messages: request().messages }),
    );
    expect(answer.status).toBe(404);
  });

  it("serve a hundred calls at once", async () => {
    write("- {text: quick}\n");
    const answers = await Promise.all(Array.from({ length: 100 }, () => content()));
    expect(new Set(answers)).toEqual(new Set(["quick"]));
  });
});

describe("faults by script", () => {
  it.each([
    ["rate_limit", "rate_limited"],
    ["quota", "quota_exhausted"],
    ["server_error", "provider_error"],
    ["disconnect", "disconnected"],
    ["html", "unreadable"],
    ["empty", "unreadable"],
    ["garbage", "unreadable"],
  ])("%s is told as %s", async (kind, status) => {
    write(`- {fault: {kind: ${kind}}}\n`);
    expect((await client.chat(request())).status).toBe(status);
  });

  it("a model that hangs is given up at the caller's deadline", async () => {
    write("- {fault: {kind: hang}}\n");
    const answered = client.chat(request({ timeoutMs: 2000 }));
    await sleeping(1);
    await clock.advance(2000);
    expect(await answered).toMatchObject({ status: "timeout", ms: 2000 });
  });

  it("a fault with times passes, counted for each attempt, turn and call", async () => {
    write(
      "- {text: at last, fault: {kind: rate_limit, times: 2}}\n- {text: next, fault: {kind: server_error, times: 1}}\n",
    );
    const statuses = async (change: Parameters<typeof request>[0] = {}) => (await client.chat(request(change))).status;
    expect([await statuses(), await statuses(), await statuses()]).toEqual(["rate_limited", "rate_limited", "ok"]);
    expect(await statuses({ messages: following("at last") })).toBe("provider_error");
    const other = { caller: { ...request().caller, attempt: "b".repeat(26) } };
    expect(await statuses(other)).toBe("rate_limited");
  });
});

describe("script files that are wrong", () => {
  it.each([
    ["- {text: a\n", ""],
    ["text: a\n", ""],
    ["[]\n", ""],
    ["- {txt: a}\n", "0.txt"],
    ["- {text: a, json: {}}\n", "0"],
    ["- {text: a}\n- {tokens: {input: 1, output: 1}}\n", "1"],
    ["- {fault: {kind: rate_limit, times: 1}}\n", "0"],
    ["- {fault: {kind: explode}}\n", "0.fault.kind"],
    ["- any:\n    - {when: '(', text: a}\n", "0.any.0.when"],
    ["- {tools: [{arguments: {}}]}\n", "0.tools.0.name"],
  ])("%j names file and field", (text, field) => {
    let problems: readonly { file: string; field: string }[] = [];
    try {
      readTurn("s/executor/_any/turn-01.yaml", text);
    } catch (error) {
      if (error instanceof ProblemsError) problems = error.problems;
    }
    expect(problems.map((problem) => [problem.file, problem.field])).toContainEqual([
      "s/executor/_any/turn-01.yaml",
      field,
    ]);
  });

  it("are read again once they are mended", async () => {
    write("- {txt: a}\n");
    await expect(content()).rejects.toThrow("broken script");
    write("- {text: mended}\n");
    expect(await content()).toBe("mended");
  });
});

/** Waits until so many sleeps are under way. */
async function sleeping(count: number): Promise<void> {
  while (clock.pending < count) await new Promise((resolve) => setImmediate(resolve));
}
