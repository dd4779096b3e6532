import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { removeDeadSockets, sweepSockets } from "../../../bin/engine/sockets.ts";

describe("sockets of sweeps", () => {
  let folder: string;
  const servers: Server[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "s-"));
    vi.stubEnv("TMPDIR", folder);
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  async function listen(path: string): Promise<Server> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    servers.push(server);
    return server;
  }

  it("are the same for a folder before and after it is made, and differ by sweep", () => {
    const before = sweepSockets(join(folder, "runs"), "a");
    expect(sweepSockets(join(folder, "x", "..", "runs"), "a")).toEqual(before);
    expect(sweepSockets(join(folder, "runs"), "b").tokens).not.toBe(before.tokens);
  });

  it("of processes that were killed go, and those of living ones stay", async () => {
    const dead = sweepSockets("runs", "dead").tokens;
    const alive = sweepSockets("runs", "alive").models;
    const own = sweepSockets("runs", "own");
    await listen(alive);
    // A listener whose process is killed leaves its file: here it is renamed, so that closing cannot remove it.
    const { renameSync } = await import("node:fs");
    const server = await listen(`${dead}.before`);
    renameSync(`${dead}.before`, dead);
    await new Promise((resolve) => server.close(resolve));
    servers.splice(servers.indexOf(server), 1);
    await removeDeadSockets(own);
    expect(readdirSync(dirname(own.tokens))).toEqual([alive.split("/").at(-1)]);
  });
});
