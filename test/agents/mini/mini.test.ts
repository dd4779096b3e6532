import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mini } from "../../../lib/agents/mini/adapter.ts";
import { converse } from "../../../lib/agents/mini/conversation.ts";
import { miniOptions } from "../../../lib/agents/mini/job.ts";
import { callTool, capped, type ToolPlace } from "../../../lib/agents/mini/tools.ts";
import { type MiniLine, parseMiniLine } from "../../../lib/agents/mini/transcript.ts";
import { mapPlaces, placeMapOf } from "../../../lib/agents/place-map.ts";
import { until } from "../../executor/support/clocks.ts";
import { chunks, completion, sendJson, sendStream, usual } from "../../executor/support/fake-provider.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mini-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const place = (change: Partial<ToolPlace> = {}): ToolPlace => ({
  workspace: folder,
  map: null,
  bashTimeoutSeconds: 20,
  maxOutputChars: 20_000,
  env: { PATH: process.env.PATH ?? "" },
  ...change,
});
const call = (name: string, args: unknown, change: Partial<ToolPlace> = {}) =>
  callTool(name, typeof args === "string" ? args : JSON.stringify(args), place(change));

describe("bash", () => {
  it("runs in the workspace and tells output of both kinds and the exit code", async () => {
    expect(await call("bash", { command: "pwd; echo err >&2" })).toEqual({ text: `${folder}\nerr\n`, isError: false });
    const failed = await call("bash", { command: "echo x; exit 3" });
    expect(failed).toEqual({ text: "x\n\n[exit code 3]", isError: true });
  });

  it("is ended after its time with all that it started", async () => {
    const pidFile = join(folder, "pid");
    const command = `sleep 1000 & echo $! > ${pidFile}; wait`;
    const result = await call("bash", { command, timeout_seconds: 1 });
    expect(result).toMatchObject({ isError: true });
    expect(result.text).toContain("killed after 1 s");
    const pid = Number(readFileSync(pidFile, "utf8"));
    await until(() => !isAlive(pid));
  });

  it("does not wait for what was left in the background", async () => {
    const started = Date.now();
    const result = await call("bash", { command: "sleep 300 & echo $!" });
    expect(result.isError).toBe(false);
    expect(Date.now() - started).toBeLessThan(10_000);
    process.kill(Number(result.text.trim()), "SIGKILL");
  });

  it("survives NUL, 0xFF and output without end", async () => {
    const odd = await call("bash", { command: "printf 'a\\000b\\377c'" });
    expect(odd.text).toBe("a\u0000b\ufffdc");
    const much = await call("bash", { command: "head -c 5000000 /dev/zero | tr '\\0' x" }, { maxOutputChars: 1000 });
    expect(much.text.length).toBeLessThan(1200);
    expect(much.text).toContain("left out");
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process stays visible until its parent has noticed.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

describe("read and write", () => {
  it("make folders and show lines", async () => {
    expect((await call("write", { path: "a/b.txt", content: "1\n2\n3\n" })).isError).toBe(false);
    expect((await call("read", { path: join(folder, "a/b.txt"), offset: 2, limit: 1 })).text).toBe("2");
    expect((await call("read", { path: "a/b.txt" })).text).toBe("1\n2\n3\n");
  });

  it.each([
    ["a file that is not there", "read", { path: "none" }, /ENOENT/],
    ["a folder", "read", { path: "." }, /no regular file/],
    ["arguments that are no JSON", "bash", "{", /not JSON/],
    ["arguments of the wrong kind", "bash", { command: 1 }, /command/],
    ["a tool that there is not", "fly", {}, /no tool/],
    ["a device without end", "read", { path: "/dev/zero" }, /no regular file/],
  ])("tell the model of %s", async (_, name, args, message) => {
    const result = await call(name, args);
    expect(result.isError).toBe(true);
    expect(result.text).toMatch(message);
  });
});

it("a cut never splits a letter in two", () => {
  const text = "😀".repeat(500);
  for (const max of [200, 201, 202, 203]) expect(capped(text, max)).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  expect(capped("short", 200)).toBe("short");
});

describe("without a sandbox", () => {
  const map = { workspace: "/x/w", home: "/x/h" };
  it.each([
    ["/tmp_workspace", "/x/w"],
    ["cat /tmp_workspace/results/a", "cat /x/w/results/a"],
    ["'/tmp_workspace':\"/root/skills/x\"", "'/x/w':\"/x/h/skills/x\""],
    ["/tmp_workspace2 /a/tmp_workspace /root/skillset /root", "/tmp_workspace2 /a/tmp_workspace /root/skillset /root"],
    ["在/tmp_workspace/results里", "在/x/w/results里"],
  ])("%s becomes %s", (text, expected) => {
    expect(mapPlaces(text, map)).toBe(expected);
    expect(mapPlaces(text, null)).toBe(text);
  });

  it("tools map the paths in their arguments, a written script's included", async () => {
    const map = placeMapOf({ PROCTOR_MAP_WORKSPACE: folder, PROCTOR_MAP_HOME: folder });
    await call("write", { path: "/tmp_workspace/s.sh", content: "echo hi > /tmp_workspace/out" }, { map });
    await call("bash", { command: "sh /tmp_workspace/s.sh" }, { map });
    expect((await call("read", { path: "/tmp_workspace/out" }, { map })).text).toBe("hi\n");
  });
});

describe("the loop", () => {
  type Handler = (body: { messages: { role: string; content: string }[] }, number: number) => object | number;
  let server: Server | null = null;
  afterEach(async () => {
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
    server = null;
  });

  async function run(handler: Handler, options: object = {}, before: MiniLine[] = []) {
    const bodies: { messages: { role: string; content: string }[]; stream?: boolean }[] = [];
    server = createServer((request, response) => {
      let text = "";
      request.on("data", (part: Buffer) => {
        text += part.toString();
      });
      request.on("end", () => {
        const body = JSON.parse(text) as (typeof bodies)[number];
        bodies.push(body);
        const answer = handler(body, bodies.length);
        if (typeof answer === "number") sendJson(response, answer, { error: { message: "no" } });
        else if (Array.isArray(answer)) sendStream(response, answer);
        else sendJson(response, 200, answer);
      });
    });
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
    const lines: MiniLine[] = [];
    const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const code = await converse({
      job: {
        turn: before.length > 0 ? 2 : 1,
        message: "do it",
        model: "m",
        workspace: folder,
        state: folder,
        options: miniOptions.parse(options),
      },
      client: new OpenAI({ baseURL, apiKey: "k", maxRetries: 0 }),
      place: place(),
      before,
      // Through JSON, as it is kept.
      keep: (line) => lines.push(parseMiniLine(JSON.stringify(line)) as MiniLine),
      say: () => undefined,
      now: () => 1,
    });
    const events = [
      ...mini.read(
        "mini.jsonl",
        lines.map((line) => JSON.stringify(line)),
        0,
      ),
    ];
    return { code, lines, bodies, completion: mini.completion(events, code), events };
  }
  const tool = (name: string, args: object, finish = "tool_calls") => ({
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name, arguments: JSON.stringify(args) } }],
        },
        finish_reason: finish,
      },
    ],
    usage: usual,
  });

  it("runs tools until a plain message, which is a complete turn", async () => {
    const ran = await run((_, n) => (n === 1 ? tool("write", { path: "x", content: "1" }) : completion("done")));
    expect(ran.code).toBe(0);
    expect(readFileSync(join(folder, "x"), "utf8")).toBe("1");
    expect(ran.completion).toEqual({ complete: true, reason: "api_stop" });
    expect(ran.bodies[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: "wrote 1 bytes to x" });
    expect(ran.events.map((event) => event.kind)).toEqual([
      "message",
      "message",
      "tool_call",
      "usage",
      "tool_result",
      "message",
      "usage",
    ]);
  });

  it("runs tools though the model says that it stopped", async () => {
    const ran = await run((_, n) => (n === 1 ? tool("bash", { command: "echo 1 > y" }, "stop") : completion("done")));
    expect(readFileSync(join(folder, "y"), "utf8")).toBe("1\n");
    expect(ran.completion.complete).toBe(true);
  });

  it("streams alike", async () => {
    const delta = (value: object, finish: string | null = null) => ({
      choices: [{ index: 0, delta: value, finish_reason: finish }],
    });
    const first = [
      delta({
        role: "assistant",
        tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "bash", arguments: "" } }],
      }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"command":"echo s > z"}' } }] }),
      delta({}, "tool_calls"),
    ];
    const ran = await run((_, n) => (n === 1 ? first : chunks(["do", "ne"])), { stream: true });
    expect(readFileSync(join(folder, "z"), "utf8")).toBe("s\n");
    expect(ran.completion.complete).toBe(true);
    expect(ran.lines.at(-1)).toMatchObject({ content: "done", usage: { input: 100, output: 10 } });
  });

  it("ends with a code when the API fails, and says so in its transcript", async () => {
    const ran = await run(() => 500);
    expect(ran.code).toBe(1);
    expect(ran.lines.at(-1)).toMatchObject({ type: "error" });
    expect(ran.completion.complete).toBe(false);
  });

  it("is not complete when the answer was cut for its length", async () => {
    const cut = { choices: [{ index: 0, message: { role: "assistant", content: "half" }, finish_reason: "length" }] };
    expect((await run(() => cut)).completion).toEqual({ complete: false, reason: "api_unfinished" });
  });

  it("ends after its steps", async () => {
    const ran = await run(() => tool("bash", { command: "true" }), { maxSteps: 3 });
    expect(ran.code).toBe(3);
    expect(ran.bodies).toHaveLength(3);
    expect(ran.completion.complete).toBe(false);
  });

  it("goes on with the conversation of earlier turns, calls that were cut included", async () => {
    const before: MiniLine[] = [
      { type: "user", ts: 1, turn: 1, content: "first" },
      {
        type: "assistant",
        ts: 1,
        turn: 1,
        content: null,
        finish_reason: "tool_calls",
        tool_calls: [{ id: "a", type: "function", function: { name: "bash", arguments: "{}" } }],
      },
    ];
    const ran = await run(() => completion("ok"), {}, before);
    expect(ran.bodies[0]?.messages.map((message) => message.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "user",
    ]);
  });

  it("answers calls that were cut also where a server numbers the calls of each answer anew", async () => {
    const asked: MiniLine = {
      type: "assistant",
      ts: 1,
      turn: 1,
      content: null,
      finish_reason: "tool_calls",
      tool_calls: [{ id: "call_0", type: "function", function: { name: "bash", arguments: "{}" } }],
    };
    const result: MiniLine = {
      type: "tool",
      ts: 1,
      turn: 1,
      tool_call_id: "call_0",
      name: "bash",
      content: "out",
      is_error: false,
    };
    const before: MiniLine[] = [{ type: "user", ts: 1, turn: 1, content: "first" }, asked, result, asked];
    const ran = await run(() => completion("ok"), {}, before);
    expect(ran.bodies[0]?.messages.slice(2).map(({ role, content }) => [role, content])).toEqual([
      ["assistant", null],
      ["tool", "out"],
      ["assistant", null],
      ["tool", "[interrupted]"],
      ["user", "do it"],
    ]);
  });

  it("goes on after an answer that was empty, which the API takes as a text alone", async () => {
    const before: MiniLine[] = [
      { type: "user", ts: 1, turn: 1, content: "first" },
      { type: "assistant", ts: 1, turn: 1, content: null, finish_reason: "stop" },
    ];
    const ran = await run(() => completion("ok"), {}, before);
    expect(ran.bodies[0]?.messages[2]).toEqual({ role: "assistant", content: "" });
  });

  const oddUsages: [string, unknown][] = [
    ["texts", { prompt_tokens: "100", completion_tokens: "10" }],
    ["a fraction", { prompt_tokens: 1.5, completion_tokens: 10 }],
    ["less than nothing", { prompt_tokens: -1, completion_tokens: 10 }],
    ["too much", { prompt_tokens: 1, completion_tokens: 1e9 }],
    ["odd details", { prompt_tokens: null, completion_tokens: {}, prompt_tokens_details: 7 }],
    ["a list", []],
    ["a text", "much"],
  ];
  it.each(oddUsages)("leaves out a usage of %s and keeps the answer", async (_, usage) => {
    for (const stream of [false, true]) {
      const whole = { ...completion("done", null), usage };
      const ran = await run(() => (stream ? chunks(["done"], usage as object) : whole), { stream });
      expect(ran.completion).toEqual({ complete: true, reason: "api_stop" });
      expect(ran.lines.at(-1)).toMatchObject({ type: "assistant", content: "done" });
      expect(ran.lines.at(-1)).not.toHaveProperty("usage");
      await new Promise<void>((resolve) => server?.close(() => resolve()) ?? resolve());
    }
  });

  it.each<[string, object]>([
    ["a finish reason that is a number", { message: { content: "done" }, finish_reason: 1 }],
    ["no finish reason", { message: { content: "done" } }],
    ["content in parts", { message: { content: [{ type: "text", text: "do" }, 7, "ne"] }, finish_reason: "stop" }],
    ["tool calls that are no list", { message: { content: "done", tool_calls: { a: 1 } }, finish_reason: "stop" }],
    ["tool calls that are none", { message: { content: "done", tool_calls: [null, 1, {}] }, finish_reason: "stop" }],
  ])("reads an answer with %s", async (_, choice) => {
    const ran = await run(() => ({ choices: [choice], usage: usual }));
    expect(ran.completion).toEqual({ complete: true, reason: "api_stop" });
    expect(ran.lines.at(-1)).toMatchObject({ content: "done", finish_reason: "stop" });
  });

  it("runs a call without type and id whose arguments are no text, streamed too", async () => {
    const call = { function: { name: "bash", arguments: { command: "echo 1 >> odd" } } };
    const message = { role: "assistant", content: 5, tool_calls: [call] };
    const whole = await run((_, n) => (n === 1 ? { choices: [{ message, finish_reason: {} }] } : completion("done")));
    await new Promise<void>((resolve) => server?.close(() => resolve()) ?? resolve());
    const pieces = [{ choices: [{ delta: message }] }, { choices: [{ finish_reason: 1 }] }, { choices: [null] }];
    const streamed = await run((_, n) => (n === 1 ? pieces : chunks(["done"])), { stream: true });
    for (const ran of [whole, streamed]) {
      expect(ran.lines[1]).toMatchObject({ tool_calls: [{ id: "call-0" }], finish_reason: "tool_calls" });
      expect(ran.completion.complete).toBe(true);
    }
    expect(readFileSync(join(folder, "odd"), "utf8")).toBe("1\n1\n");
  });

  it("an odd usage or finish reason in a transcript does not make its answer unreadable", () => {
    const line = { type: "assistant", ts: 1, turn: 1, content: "done", finish_reason: "stop" };
    for (const odd of [{ usage: { input: "1" } }, { usage: 7 }, { usage: { input: 1, cached: 0, output: -1 } }]) {
      const events = [...mini.read("t", [JSON.stringify({ ...line, ...odd })], 0)];
      expect(events.map(({ kind, text }) => [kind, text])).toEqual([["message", "done"]]);
      expect(mini.completion(events, 0).complete).toBe(true);
    }
    const events = [...mini.read("t", [JSON.stringify({ ...line, finish_reason: 1 })], 0)];
    expect(events).toMatchObject([{ kind: "message", role: "assistant", text: "done" }]);
  });

  it("keeps a lone surrogate, NUL and 300 KB of an answer", async () => {
    const text = `\ud800\u0000${"x".repeat(300_000)}`;
    const ran = await run(() => completion(text));
    expect(ran.events.find((event) => event.role === "assistant")?.text).toBe(text);
  });
});

it("writes nothing of the gateway's key where commands can read it in their environment", () => {
  mkdirSync(join(folder, "s"));
  writeFileSync(join(folder, "s", "x"), "");
  const command = mini.command(
    { workspace: folder, home: folder, state: join(folder, "s"), bundles: "/b", node: "node" },
    {
      turn: 1,
      message: "m",
      sessionId: "s",
      model: "m",
      gateway: { baseUrl: "http://127.0.0.1:1/v1", key: "the-key" },
      options: {},
    },
  );
  expect(JSON.stringify(command.files)).not.toContain("the-key");
  expect(JSON.stringify(command.args)).not.toContain("the-key");
});
