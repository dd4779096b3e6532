import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tokenClient } from "../../../lib/platform/local/token-client.ts";
import { maxTokenBody } from "../../../lib/platform/local/token-protocol.ts";
import { startTokenServer } from "../../../lib/platform/local/token-server.ts";
import type { TaskTokens } from "../../../lib/platform/ports.ts";

describe("answers to tokens over a Unix socket", () => {
  let folder: string;
  let socket: string;
  let server: { close(): Promise<void> };
  let client: ReturnType<typeof tokenClient>;
  let calls: unknown[][];
  const open = new Set(["t1"]);

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "proctor-tokens-"));
    socket = join(folder, "s");
    calls = [];
    const answer = (token: string): "accepted" | "closed" => (open.has(token) ? "accepted" : "closed");
    const noted = (name: string, passed: [token: string, ...rest: unknown[]]): "accepted" | "closed" => {
      calls.push([name, ...passed]);
      return answer(passed[0]);
    };
    const tokens: TaskTokens = {
      succeed: async (...passed) => noted("succeed", passed),
      fail: async (...passed) => noted("fail", passed),
      heartbeat: async (...passed) => noted("heartbeat", passed),
    };
    server = await startTokenServer({ socket, tokens });
    client = tokenClient(socket);
  });
  afterEach(async () => {
    client.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function raw(method: string, path: string, body: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const sent = request({ socketPath: socket, path, method }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  it("hands each kind of answer on and says what became of it", async () => {
    expect(await client.succeed("t1", { turn: 1 })).toBe("accepted");
    expect(await client.fail("t2", "Proctor.EvidenceFailed", "disk full")).toBe("closed");
    expect(await client.heartbeat("t1")).toBe("accepted");
    expect(calls).toEqual([
      ["succeed", "t1", { turn: 1 }],
      ["fail", "t2", "Proctor.EvidenceFailed", "disk full"],
      ["heartbeat", "t1"],
    ]);
  });

  it("refuses other paths, other methods, other bodies and bodies that are too long", async () => {
    expect(await raw("POST", "/constructor", "{}")).toBe(404);
    expect(await raw("GET", "/succeed", "")).toBe(404);
    expect(await raw("POST", "/succeed", "{")).toBe(400);
    expect(await raw("POST", "/heartbeat", '{"token":""}')).toBe(400);
    expect(await raw("POST", "/succeed", JSON.stringify({ token: "t1", output: "x".repeat(maxTokenBody) }))).toBe(413);
    expect(calls).toEqual([]);
  });

  it("fails when nobody listens", async () => {
    const nobody = tokenClient(join(folder, "nobody"));
    await expect(nobody.heartbeat("t1")).rejects.toThrow(/ENOENT/);
    nobody.close();
  });
});
