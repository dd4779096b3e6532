import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { RequestListener, ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { nullAgent, nullJob } from "../../../lib/agents/null/adapter.ts";
import { runNull } from "../../../lib/agents/null/run-null.ts";
import { tarHeader } from "../../../lib/executor/runner/package-tar.ts";
import type { FunctionAgent, FunctionAgentCall } from "../../../lib/executor/turn-server/agent-process.ts";
import { sha256Hex } from "../../../lib/tasks/canonical.ts";
import { io, ManualClock, until } from "../support/clocks.ts";
import { sendJson } from "../support/fake-provider.ts";
import { askModel, attempt, Harness, said, secret } from "../support/runner-harness.ts";

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});
async function start(options: Parameters<typeof Harness.start>[0]): Promise<Harness> {
  harness = await Harness.start(options);
  return harness;
}

const write = (path: string, content: string | Buffer): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
};
const transcript = ({ place }: FunctionAgentCall, text: string): void => {
  mkdirSync(place.state, { recursive: true });
  appendFileSync(join(place.state, "mini.jsonl"), text);
};
const result = ({ place }: FunctionAgentCall, name: string, content: string | Buffer): void =>
  write(join(place.workspace, "results", name), content);
const leaving =
  (name: string, content: Buffer): FunctionAgent =>
  async (call) => {
    result(call, name, content);
    return 0;
  };
/** Waits until the turn server asks the agent to end; one that was asked already hears no second time. */
const forever = ({ signal }: FunctionAgentCall): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

describe("a turn", () => {
  it("goes from its message to evidence and an answer", async () => {
    const agent: FunctionAgent = async (call) => {
      expect(call.assignment.message).toBe("do it");
      expect(
        readFileSync(join(call.place.workspace, "clawbench/sources", `${"long-name/".repeat(15)}ü.txt`), "utf8"),
      ).toBe("source");
      expect((await askModel(call.assignment.gateway)).status).toBe(200);
      call.write("out", "working\n");
      result(call, "a/b.txt", "one");
      transcript(call, said("done", "stop"));
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    const report = await h.report();
    expect(report).toMatchObject({
      v: 1,
      turn: 1,
      exit: { code: 0, stopReason: "ended" },
      completion: { complete: true, reason: "api_stop" },
      usage: { input: 100, output: 10, usd: 0.00012 },
      manifestKey: `attempts/${attempt}/01/turn-01/manifest.json`,
      isolation: "none",
    });
    expect(report.note).toBeUndefined();
    expect(JSON.parse(h.evidence("report.json") ?? "")).toEqual(report);
    expect(h.evidence("results/a/b.txt")).toBe("one");
    expect(h.evidence("transcript.jsonl")).toBe(said("done"));
    expect(h.evidence("events.jsonl")).toContain('"text":"done"');
    expect(h.evidence("usage.jsonl")?.trim().split("\n")).toHaveLength(1);
    expect(h.evidence("model-calls.jsonl")).toContain('"content":"hi"');
    expect(h.evidence("output.jsonl")).toContain("working");
    const manifest = h.manifest();
    expect(manifest.skipped).toEqual([]);
    for (const file of manifest.files) {
      const stored = h.store.objects.get(`evidence:attempts/${attempt}/01/turn-01/${file.path}`) as Buffer;
      expect([file.path, stored.length, sha256Hex(stored)]).toEqual([file.path, file.bytes, file.sha256]);
    }
    expect(manifest.files.map((file) => file.path)).toEqual([
      "events.jsonl",
      "model-calls.jsonl",
      "output.jsonl",
      "report.json",
      "results/a/b.txt",
      "tool-usage.json",
      "transcript.jsonl",
      "usage.jsonl",
    ]);
  });

  it("has its manifest written after everything else", async () => {
    const h = await start({ agent: leaving("x", Buffer.from("1")) });
    await h.post(1);
    await h.report();
    expect([...h.store.objects.keys()].at(-1)).toBe(`evidence:attempts/${attempt}/01/turn-01/manifest.json`);
  });

  it("of the null agent is complete on exit 0, and calls no model", async () => {
    const agent: FunctionAgent = (call) =>
      runNull(nullJob(call.place, call.assignment), (text) => call.write("out", text));
    const h = await start({ adapter: nullAgent, agent });
    await h.post(1, { agent: { name: "null", version: "1", options: { message: "nothing" } } });
    expect(await h.report()).toMatchObject({ completion: { complete: true, reason: "exit_zero" }, usage: { usd: 0 } });
    expect(h.evidence("model-calls.jsonl")).toBe("");
    expect(h.evidence("transcript.jsonl")?.split("\n")).toHaveLength(3);
  });

  it("follows another, and its evidence holds what is new", async () => {
    const agent: FunctionAgent = async (call) => {
      const { turn } = call.assignment;
      const tools = [{ id: `c${turn}`, type: "function", function: { name: "bash", arguments: "{}" } }];
      transcript(call, said(`turn ${turn}`, "tool_calls", { tool_calls: tools }) + said(`end of ${turn}`));
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    await h.report(1);
    await h.post(2, { request: { kind: "followup", text: "and now" } });
    await h.report(2);
    expect(h.evidence("transcript.jsonl", 1)).toContain("end of 1");
    expect(h.evidence("transcript.jsonl", 2)).toContain("end of 2");
    expect(h.evidence("transcript.jsonl", 2)).not.toContain("turn 1");
    expect(h.manifest(2).toolCounts).toEqual({ bash: 1 });
    expect(h.evidence("events.jsonl", 2)).toContain('"raw":{"file":"transcript.jsonl","line":2}');
  });

  it("keeps a final answer of 300 KB, lone surrogates, NUL and 0xFF", async () => {
    const long = "長".repeat(100_000);
    const odd = Buffer.concat([Buffer.from("a"), Buffer.from([0, 0xff, 0xed, 0xa0, 0x80]), Buffer.from("z")]);
    const agent: FunctionAgent = async (call) => {
      transcript(call, said("\ud800\u0000"));
      appendFileSync(join(call.place.state, "mini.jsonl"), Buffer.concat([odd, Buffer.from("\n")]));
      transcript(call, said(long));
      call.write("out", "\ud800\u0000");
      result(call, "odd.bin", odd);
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    const report = await h.report();
    expect(report.completion.complete).toBe(true);
    expect(JSON.stringify(report).length).toBeLessThan(4096);
    const stored = h.store.objects.get(`evidence:attempts/${attempt}/01/turn-01/results/odd.bin`);
    expect(stored).toEqual(odd);
    const events = (h.evidence("events.jsonl") ?? "").trimEnd().split("\n");
    const texts = events.map((line) => (JSON.parse(line) as { text: string }).text);
    expect(texts).toContain("\ud800\u0000");
    expect(texts).toContain(long);
    expect(texts).toContain("unreadable transcript line");
  });

  it("that leaves nothing is a turn all the same", async () => {
    const h = await start({ agent: async () => 3 });
    await h.post(1);
    expect(await h.report()).toMatchObject({
      exit: { code: 3, stopReason: "ended" },
      completion: { complete: false, reason: "nonzero_exit" },
    });
    expect(h.manifest().files.map((file) => file.path)).toContain("transcript.jsonl");
  });

  it("does not follow a link out of the results", async () => {
    const agent: FunctionAgent = async (call) => {
      const { symlinkSync } = await import("node:fs");
      write(join(call.place.home, "secret"), "secret");
      mkdirSync(join(call.place.workspace, "results"), { recursive: true });
      symlinkSync(join(call.place.home, "secret"), join(call.place.workspace, "results", "link"));
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    await h.report();
    expect(h.manifest().skipped).toMatchObject([{ path: "results/link" }]);
    expect(h.evidence("results/link")).toBeNull();
  });
});

describe("a model that fails", () => {
  const asking =
    (exit: number, times = 1): FunctionAgent =>
    async (call) => {
      for (let n = 0; n < times; n++) await askModel(call.assignment.gateway).catch(() => null);
      return exit;
    };

  it.each([
    ["402", 402, "{}", "provider_fault"],
    ["500", 500, "oops", "provider_fault"],
    ["HTML", 200, "<html>", "provider_fault"],
    ["nothing", 200, "", "provider_fault"],
    ["garbage", 200, "{{{", "provider_fault"],
    ["a bad request", 400, "{}", "ended"],
  ])("with %s, and the agent gives up: %s", async (_, status, body, stopReason) => {
    const h = await start({ agent: asking(1) });
    h.provider.answer = ({ response }) => sendJson(response, status, body);
    await h.post(1);
    expect((await h.report()).exit).toEqual({ code: 1, stopReason });
  });

  it("by dropping connections is a provider fault, with a note", async () => {
    const h = await start({ agent: asking(1) });
    h.provider.answer = ({ response }) => response.destroy();
    await h.post(1);
    const report = await h.report();
    expect(report.exit.stopReason).toBe("provider_fault");
    expect(report.note).toContain("connection");
  });

  it("once, and then answers, is no fault", async () => {
    const h = await start({ agent: asking(0, 2) });
    h.provider.answer = (call) =>
      call.number === 1 ? sendJson(call.response, 500, "") : sendJson(call.response, 200, { choices: [] });
    await h.post(1);
    expect((await h.report()).exit).toEqual({ code: 0, stopReason: "ended" });
  });

  it("with 429 for ever ends as rate_limited", async () => {
    const clock = new ManualClock();
    const h = await start({ agent: asking(1), clock });
    h.provider.answer = ({ response }) => sendJson(response, 429, "{}", { "retry-after": "20" });
    await h.post(1);
    while (h.answers.length === 0) {
      await io();
      if (clock.next !== null && clock.next <= 20_000) await clock.advance(clock.next);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect((await h.report()).exit).toEqual({ code: 1, stopReason: "rate_limited" });
    expect(h.provider.calls.length).toBeGreaterThan(2);
  });

  it("reaching the attempt's cap ends as cost_cap", async () => {
    const h = await start({ agent: asking(0, 3) });
    await h.post(1, { limits: { usd: 0.0002 } });
    const report = await h.report();
    expect(report.exit.stopReason).toBe("cost_cap");
    expect(report.usage.usd).toBeCloseTo(0.00024, 8);
    expect(h.provider.calls).toHaveLength(2);
  });
});

describe("the watchdog", () => {
  async function advanceUntilAnswer(h: Harness, clock: ManualClock): Promise<void> {
    while (h.answers.length === 0) {
      await io();
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (clock.next !== null) await clock.advance(clock.next);
    }
  }

  it.each([
    ["says nothing", {}, "no_start", 180],
    ["says nothing and has little time", { turnSeconds: 5 }, "turn_timeout", 5],
    ["has little of the total left", { turnSeconds: 5, totalBinds: true }, "global_timeout", 5],
  ])("ends an agent that %s", async (_, limits, stopReason, seconds) => {
    const clock = new ManualClock();
    let ended = false;
    const agent: FunctionAgent = async (call) => {
      await forever(call);
      ended = true;
      return 0;
    };
    const h = await start({ agent, clock });
    await h.post(1, { limits });
    await advanceUntilAnswer(h, clock);
    const report = await h.report();
    expect(report.exit).toEqual({ code: null, stopReason });
    expect(report.executorSeconds).toBe(seconds);
    expect(report.completion).toEqual({ complete: false, reason: "no_exit" });
    expect(ended).toBe(true);
  });

  it("ends an agent before the runner's own deadline, as an interruption", async () => {
    const clock = new ManualClock();
    let running = false;
    const agent: FunctionAgent = async (call) => {
      running = true;
      await forever(call);
      return 0;
    };
    const h = await start({ agent, clock });
    await h.post(1, { deadline: new Date(clock.now() + 40_000).toISOString() });
    await until(() => running);
    await advanceUntilAnswer(h, clock);
    const report = await h.report();
    expect(report.exit.stopReason).toBe("interrupted");
    expect(report.executorSeconds).toBe(30);
  });

  it("fails a turn that is not done at the deadline", async () => {
    const clock = new ManualClock();
    const h = await start({ turnServer: (request) => request.resume(), clock });
    await h.post(1, { deadline: new Date(clock.now() + 40_000).toISOString() });
    await advanceUntilAnswer(h, clock);
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.DeadlinePassed" });
    expect(await h.ended).toBe("failed");
  });

  it("ends an agent that fell silent after output, and keeps what it left", async () => {
    const clock = new ManualClock();
    let spoke = false;
    const agent: FunctionAgent = async (call) => {
      result(call, "half.txt", "half");
      call.write("out", "hello\n");
      spoke = true;
      await forever(call);
      return 0;
    };
    const h = await start({ agent, clock });
    await h.post(1);
    await until(() => spoke);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await advanceUntilAnswer(h, clock);
    expect((await h.report()).exit.stopReason).toBe("stalled");
    expect(h.evidence("results/half.txt")).toBe("half");
  });

  it("ends a turn whose model is slow at the turn's limit: the agent's timeout, not the provider's fault", async () => {
    const clock = new ManualClock();
    const agent: FunctionAgent = async (call) => {
      await Promise.race([askModel(call.assignment.gateway), forever(call)]).catch(() => null);
      return 0;
    };
    const h = await start({ agent, clock });
    h.provider.answer = () => undefined;
    await h.post(1, { limits: { turnSeconds: 300 } });
    await until(() => h.provider.calls.length === 1);
    await advanceUntilAnswer(h, clock);
    expect((await h.report()).exit).toEqual({ code: null, stopReason: "turn_timeout" });
    expect(h.evidence("usage.jsonl")).toContain('"status":"cancelled"');
  });

  it("does not let a call that hangs at the provider keep a turn alive", async () => {
    const clock = new ManualClock();
    const agent: FunctionAgent = async (call) => {
      await Promise.race([askModel(call.assignment.gateway), forever(call)]).catch(() => null);
      await forever(call);
      return 0;
    };
    const h = await start({ agent, clock });
    h.provider.answer = () => undefined;
    await h.post(1);
    await until(() => h.provider.calls.length === 1);
    await advanceUntilAnswer(h, clock);
    const report = await h.report();
    // The gateway gave the call up first; the agent got no answer after it.
    expect(report.exit.stopReason).toBe("provider_fault");
    expect(report.executorSeconds).toBeLessThan(1200);
  });
});

describe("a fault of ours", () => {
  it("a full disk while evidence is written fails the token, and the turn does not exist", async () => {
    const h = await start({ agent: async () => 0 });
    h.store.failCreate = (key) => (key.endsWith("events.jsonl") ? "no_space" : null);
    await h.post(1);
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.EvidenceFailed" });
    expect(h.evidence("manifest.json")).toBeNull();
    expect(await h.ended).toBe("failed");
  });

  it("a full disk while results are collected is the same", async () => {
    const h = await start({ agent: leaving("big", Buffer.alloc(600_000)) });
    h.store.failCreate = (key) => (key.includes("/results/") ? "no_space" : null);
    await h.post(1);
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.EvidenceFailed" });
    expect(h.evidence("manifest.json")).toBeNull();
  });

  it("a store that is gone is the same", async () => {
    const h = await start({ agent: async () => 0 });
    h.store.failCreate = (key) => (key.endsWith("manifest.json") ? "unavailable" : null);
    await h.post(1);
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.EvidenceFailed" });
  });

  it("a package that is not there fails the token", async () => {
    const h = await start({ agent: async () => 0 });
    await h.post(1, { package: { task: "other", digest: "e".repeat(64) } });
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.PackageFailed" });
  });

  it("a message of another turn fails the token", async () => {
    const h = await start({ agent: async () => 0 });
    await h.post(1, { try: 2 });
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.MessageUnreadable" });
  });

  it("a message that the key does not open ends the runner", async () => {
    const h = await start({ agent: async () => 0 });
    await h.store.create({ bucket: "evidence", key: "mailbox/box/turn-01" }, Buffer.alloc(100, 1));
    expect(await h.ended).toBe("failed");
    expect(h.answers).toEqual([]);
  });

  it("options that the agent does not have fail the token", async () => {
    const h = await start({ agent: async () => 0 });
    await h.post(1, { agent: { name: "mini", version: "1", options: { speed: 11 } } });
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.AgentUnreachable" });
  });

  it("a model of another API fails the token, saying what to do", async () => {
    const h = await start({ agent: async () => 0 });
    const price = { input: 1, output: 1 };
    const model = { name: "m", provider: "p", price, api: "messages" as const, baseUrl: "http://h", keyName: null };
    await h.post(1, { model });
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.Unsupported", cause: /models\.yaml/ });
  });

  it("a server that does not show the secret is not believed", async () => {
    const h = await start({
      turnServer: (request, response) => {
        request.resume();
        response.setHeader("x-proctor-secret", "other");
        sendJson(response, 200, { v: 1, files: 0, bytes: 0 });
      },
    });
    await h.post(1);
    expect(await h.answer()).toMatchObject({ kind: "fail", error: "Proctor.PackageFailed", cause: /secret/ });
  });
});

describe("the end of a runner", () => {
  it("comes with the end of whoever started it, without a word more", async () => {
    let running = false;
    const agent: FunctionAgent = async (call) => {
      running = true;
      await forever(call);
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    await until(() => running);
    h.stop.abort();
    expect(await h.ended).toBe("stopped");
    expect(h.answers).toEqual([]);
    expect([...h.store.objects.keys()].filter((key) => key.startsWith("evidence:attempts"))).toEqual([]);
  });

  it("comes after SIGTERM, when the evidence is written", async () => {
    let running = false;
    const agent: FunctionAgent = async (call) => {
      result(call, "half.txt", "half");
      running = true;
      await forever(call);
      return 0;
    };
    const h = await start({ agent });
    await h.post(1);
    await until(() => running);
    h.interrupt.abort();
    expect((await h.report()).exit).toEqual({ code: null, stopReason: "interrupted" });
    expect(h.evidence("results/half.txt")).toBe("half");
    expect(await h.ended).toBe("interrupted");
  });

  it("comes when the token is closed", async () => {
    let running = false;
    const agent: FunctionAgent = async (call) => {
      running = true;
      await forever(call);
      return 0;
    };
    const h = await start({ agent, heartbeatMs: 5 });
    await h.post(1);
    await until(() => running && h.heartbeats > 2);
    h.tokenState = "closed";
    expect(await h.ended).toBe("closed");
    expect(h.evidence("manifest.json")).toBeNull();
  });

  it("comes when nobody asks any more", async () => {
    const clock = new ManualClock();
    const h = await start({ agent: async () => 0, clock });
    let ended = false;
    void h.ended.then(() => {
      ended = true;
    });
    while (!ended) await clock.advance(600_000);
    expect(await h.ended).toBe("idle");
  });

  it("an agent's side that goes away in the middle of a turn is killed, not lost", async () => {
    let post = 0;
    const h = await start({
      turnServer: (request, response) => {
        response.setHeader("x-proctor-secret", "turn-secret");
        request.resume();
        request.on("end", () => {
          if (request.method === "PUT") sendJson(response, 200, { v: 1, files: 1, bytes: 1 });
          else if (request.url === "/turn") {
            post++;
            response.write(`${JSON.stringify({ t: 0, event: "started" })}\n`, () => response.destroy());
          } else response.destroy();
        });
      },
    });
    await h.post(1);
    const report = await h.report();
    expect(post).toBe(1);
    expect(report.exit).toEqual({ code: 137, stopReason: "killed" });
    expect(report.note).toContain("results incomplete");
    expect(h.manifest().skipped[0]?.reason).toContain("incomplete");
  });
});

/** An agent's side that does what the protocol says, but for its results. */
function withResults(results: (response: ServerResponse, asked: number) => void): RequestListener {
  let asked = 0;
  return (request, response) => {
    response.setHeader("x-proctor-secret", secret);
    request.resume();
    request.on("end", () => {
      if (request.method === "PUT") sendJson(response, 200, { v: 1, files: 1, bytes: 1 });
      else if (request.url === "/turn")
        response.end(`${JSON.stringify({ t: 1, event: "exit", code: 0, signal: null })}\n`);
      else if (request.url?.startsWith("/results")) results(response, ++asked);
      else sendJson(response, 200, {});
    });
  };
}
function archive(files: Record<string, string>): Buffer {
  const end = JSON.stringify({ v: 1, files: 1, bytes: 1, skipped: [] });
  const entries = Object.entries({ ...files, "_end.json": end }).flatMap(([name, content]) => [
    tarHeader(name, content.length),
    Buffer.from(content),
    Buffer.alloc((512 - (content.length % 512)) % 512),
  ]);
  return Buffer.concat([...entries, Buffer.alloc(1024)]);
}

describe("results that are cut off", () => {
  const whole = archive({ "results/a": "a", "results/b": "b" });

  it("are asked for once more", async () => {
    const turnServer = withResults((response, asked) => {
      if (asked === 1) response.write(whole.subarray(0, 1300), () => response.destroy());
      else response.end(whole);
    });
    const h = await start({ turnServer });
    await h.post(1);
    expect((await h.report()).note).toBeUndefined();
    expect(h.evidence("results/a")).toBe("a");
    expect(h.evidence("results/b")).toBe("b");
    expect(h.manifest().skipped).toEqual([]);
  });

  it("twice are the turn's evidence as far as they came, and flagged", async () => {
    const h = await start({ turnServer: withResults((response) => response.end(whole.subarray(0, 1300))) });
    await h.post(1);
    expect((await h.report()).note).toContain("results incomplete");
    expect(h.evidence("results/a")).toBe("a");
    expect(h.evidence("results/b")).toBeNull();
    expect(h.manifest().skipped).toMatchObject([{ path: "results/", reason: /incomplete/ }]);
  });

  /** Moves time on whenever nothing else happens; gives the milliseconds from the first question to the answer. */
  async function silenceOf(h: Harness, clock: ManualClock, asked: () => boolean): Promise<number> {
    await until(asked);
    const from = clock.now();
    while (h.answers.length === 0) {
      await io();
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (h.answers.length === 0 && clock.next !== null) await clock.advance(clock.next);
    }
    return clock.now() - from;
  }
  const inAnHour = (clock: ManualClock): string => new Date(clock.now() + 3_600_000).toISOString();

  it("by a server that was stopped are given up after 30 s, and not asked for again", async () => {
    const clock = new ManualClock();
    let times = 0;
    const turnServer = withResults((_, asked) => {
      times = asked;
    });
    const h = await start({ turnServer, clock });
    await h.post(1, { deadline: inAnHour(clock), limits: { turnSeconds: 25 } });
    expect(await silenceOf(h, clock, () => times > 0)).toBe(30_000);
    expect(times).toBe(1);
    expect((await h.report()).note).toBe("results incomplete: GET /results was silent for 30 s");
    expect(h.manifest().skipped).toMatchObject([{ path: "results/", reason: /incomplete/ }]);
  });

  it("by a server that falls silent in between are asked for once more, and given up after 30 s each", async () => {
    const clock = new ManualClock();
    let times = 0;
    const turnServer = withResults((response, asked) => {
      times = asked;
      response.write(whole.subarray(0, 1300));
    });
    const h = await start({ turnServer, clock });
    await h.post(1, { deadline: inAnHour(clock), limits: { turnSeconds: 25 } });
    expect(await silenceOf(h, clock, () => times > 0)).toBe(60_000);
    expect(times).toBe(2);
    expect((await h.report()).note).toContain("silent for 30 s");
    expect(h.evidence("results/a")).toBe("a");
  });

  it("by a server and its agent that were stopped together cost a turn 40 s beyond its limit", async () => {
    const clock = new ManualClock();
    let running = false;
    const turnServer: RequestListener = (request, response) => {
      response.setHeader("x-proctor-secret", secret);
      request.resume();
      if (request.method === "PUT") sendJson(response, 200, { v: 1, files: 1, bytes: 1 });
      else if (request.url === "/turn") {
        running = true;
        response.write(`${JSON.stringify({ t: 0, event: "started" })}\n`);
      }
    };
    const h = await start({ turnServer, clock });
    await h.post(1, { deadline: inAnHour(clock), limits: { turnSeconds: 25 } });
    expect(await silenceOf(h, clock, () => running)).toBe(25_000 + 10_000 + 30_000);
    expect((await h.report()).exit).toEqual({ code: null, stopReason: "turn_timeout" });
  });

  it("by a server that never ends them do not hold the turn beyond its deadline", async () => {
    const clock = new ManualClock();
    let asked = false;
    const turnServer = withResults((response) => {
      asked = true;
      response.write(whole.subarray(0, 1300));
    });
    const h = await start({ turnServer, clock });
    await h.post(1, { deadline: new Date(clock.now() + 90_000).toISOString(), limits: { turnSeconds: 10 } });
    await until(() => asked);
    while (h.answers.length === 0) {
      await io();
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (clock.next !== null) await clock.advance(clock.next);
    }
    expect((await h.report()).note).toContain("results incomplete");
    expect(h.evidence("results/a")).toBe("a");
    expect(clock.now()).toBeLessThan(Date.UTC(2026, 0, 1) + 90_000);
  });
});

it("output that is no protocol is passed over", async () => {
  const h = await start({
    turnServer: (request, response) => {
      if (request.url !== "/turn") return withResults((answer) => answer.end(archive({})))(request, response);
      response.setHeader("x-proctor-secret", secret);
      response.write("not json\n{}\n\n[]\n");
      response.write(`${"x".repeat(200_000)}\n`);
      response.write(`${JSON.stringify({ t: 1, stream: "out", text: "real" })}\n`);
      response.end(`${JSON.stringify({ t: 1, event: "exit", code: 5, signal: null })}\nmore`);
    },
  });
  await h.post(1);
  expect((await h.report()).exit).toEqual({ code: 5, stopReason: "ended" });
  expect(h.evidence("output.jsonl")?.trim().split("\n")).toHaveLength(1);
});

it("the agent's key is made for the try", async () => {
  let key = "";
  const h = await start({
    agent: async (call) => {
      key = call.assignment.gateway.key;
      return 0;
    },
  });
  await h.post(1);
  await h.report();
  expect(key).toMatch(/^proctor-[\w-]{32}$/);
});
