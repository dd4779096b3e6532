/** What every agent in the registry has to keep; a new one is tested by being listed there. */
import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TurnAssignment, TurnPlace } from "../../lib/agents/adapter.ts";
import { adapters, agentByName } from "../../lib/agents/registry.ts";
import { network } from "../../lib/attempt/vocabulary.ts";
import { trajectoryEvent } from "../../lib/trajectory/events.ts";
import { completion } from "../../lib/trajectory/turn-report.ts";

const place: TurnPlace = {
  workspace: "/tmp_workspace",
  home: "/root",
  state: "/root/.proctor/agent",
  bundles: "/opt/proctor",
  node: "/usr/bin/node",
};
const assignment = (adapter: (typeof adapters)[number]): TurnAssignment => ({
  turn: 1,
  message: `do "it" ${"\u00e4".repeat(200_000)}`,
  sessionId: "s-1",
  model: "provider/model",
  gateway: { baseUrl: "http://127.0.0.1:1/v1", key: "gateway-key" },
  options: adapter.options.parse({}),
});

it("agents are found by name, each once", () => {
  expect(new Set(adapters.map((agent) => agent.name)).size).toBe(adapters.length);
  for (const { name, version, networks } of adapters) {
    expect(agentByName(name)?.name).toBe(name);
    expect(name).toMatch(/^[a-z][a-z0-9_-]*$/);
    expect(version).not.toBe("");
    for (const each of networks) expect(network.safeParse(each).success).toBe(true);
  }
  expect(agentByName("nobody")).toBeNull();
  expect(agentByName("constructor")).toBeNull();
});

describe.each(adapters.map((adapter) => [adapter.name, adapter] as const))("%s", (_, adapter) => {
  it("has options, all of which may be left out, and refuses others", () => {
    expect(adapter.options.safeParse({}).success).toBe(true);
    expect(adapter.options.safeParse({ no_such_option: 1 }).success).toBe(false);
  });

  it("makes a command whose arguments are short and whose files are in its own folder", () => {
    const command = adapter.command(place, assignment(adapter));
    expect(command.command).not.toBe("");
    // Linux takes 128 KB for one argument; a message can be longer.
    for (const arg of command.args) expect(arg.length).toBeLessThan(4096);
    for (const value of Object.values(command.env)) expect(value.length).toBeLessThan(4096);
    for (const path of Object.keys(command.files))
      expect(posix.normalize(path).startsWith(`${place.state}/`)).toBe(true);
    expect(JSON.stringify(command)).toContain("do \\");
  });

  it("has transcripts by plain names below its folder", () => {
    for (const path of adapter.transcript) expect(path).toMatch(/^[\w.-]+(\/[\w.-]+)*$/);
  });

  it("reads whatever a transcript may hold into events, numbered on, without throwing", () => {
    const line = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constantFrom(
        "",
        "null",
        "[]",
        '{"type":"assistant"}',
        '{"type":"assistant","ts":1,"turn":1,"content":"x","finish_reason":"stop"}',
        '{"ts":1,"role":"assistant","text":"x"}',
        '{"__proto__":{"type":"user"}}',
        `{"type":"user","ts":1e400}`,
      ),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.nat(1000), fc.constantFrom(0, 1, null), (lines, first, code) => {
        const events = [...adapter.read("t.jsonl", lines, first)];
        events.forEach((event, index) => {
          expect(trajectoryEvent.safeParse(event).success).toBe(true);
          expect(event.seq).toBe(first + index);
          expect(event.raw.line).toBeGreaterThanOrEqual(1);
          expect(event.raw.line).toBeLessThanOrEqual(lines.length);
        });
        expect(events.length).toBeGreaterThanOrEqual(lines.length);
        expect(completion.safeParse(adapter.completion(events, code)).success).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("is not complete without a message and with a failure", () => {
    expect(adapter.completion([], 1).complete).toBe(false);
  });
});
