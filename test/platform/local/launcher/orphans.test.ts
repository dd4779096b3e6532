import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openUnisolatedLauncher } from "../../../../lib/platform/local/launcher/unisolated.ts";
import { describeWithBubblewrap } from "../../../bubblewrap.ts";
import { turnBody } from "../../../executor/turn-server/turn-client.ts";
import { alive, buildBundles, runnerOf, until } from "./fixture.ts";

let bundles: string;
beforeAll(async () => {
  bundles = await buildBundles();
  await build({
    entryPoints: ["test/platform/local/launcher/host-main.ts"],
    outfile: join(bundles, "host-main.js"),
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
    banner: { js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);" },
  });
});
afterAll(() => rmSync(bundles, { recursive: true, force: true }));

/** Ids of all processes below one, whatever they are. */
function descendants(of: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // Gone meanwhile.
    }
  }
  const found: number[] = [];
  for (const next = [of]; next.length > 0; ) {
    const below = children.get(next.pop() as number) ?? [];
    found.push(...below);
    next.push(...below);
  }
  return found;
}

interface Host {
  pid: number;
  folder: string;
  /** Resolves when it begins to launch. */
  launched: Promise<void>;
}

function host(isolation: "bwrap" | "none"): Host {
  const folder = mkdtempSync(join(tmpdir(), "host-"));
  const child = spawn(process.execPath, [join(bundles, "host-main.js"), isolation, folder, bundles], {
    stdio: ["ignore", "pipe", "inherit"],
    // Of its own process group, as a shell would start it.
    detached: true,
  });
  return { pid: child.pid as number, folder, launched: new Promise((done) => child.stdout.once("data", () => done())) };
}

/** Kills a host where it stands and returns what it had below it then. */
function killWhole(pid: number): number[] {
  process.kill(pid, "SIGSTOP");
  const below = descendants(pid);
  process.kill(pid, "SIGKILL");
  return below;
}

function killContract(isolation: "bwrap" | "none"): void {
  it("leaves no process of an agent in the middle of a turn, daemons included", async () => {
    const { pid, folder, launched } = host(isolation);
    await launched;
    const { client } = await runnerOf(folder, "m1");
    // A length of its own, so that no other process of this machine is taken for the agent's.
    const seconds = `300.${process.pid}`;
    const script = `for i in 1 2; do (setsid setsid sleep ${seconds} &); done; trap "" TERM HUP; sleep ${seconds}; sleep 9`;
    const turn = await client.open("POST", "/turn", turnBody({ command: ["/bin/bash", "-c", script] }));
    turn.on("error", () => {}).resume();
    // Daemons hang on the sandbox's first process, or on the host's: found by what they run.
    const sleeping = () => processesOf(`sleep\x00${seconds}\x00`);
    await until(() => sleeping().length >= 3);
    const below = [...new Set([...killWhole(pid), ...sleeping()])];
    expect(below.length).toBeGreaterThanOrEqual(5);
    await until(() => below.filter(alive).length === 0, 2);
    rmSync(folder, { recursive: true, force: true });
  });

  it("is told from Ctrl-C, which the host may understand otherwise", async () => {
    const { pid, folder, launched } = host(isolation);
    await launched;
    const { client } = await runnerOf(folder, "m1");
    const turn = client.turn({ command: ["/bin/sh", "-c", "sleep 0.3; echo undisturbed"] });
    process.kill(-pid, "SIGINT");
    expect((await turn).out).toBe("undisturbed\n");
    const below = killWhole(pid);
    await until(() => below.filter(alive).length === 0, 2);
    rmSync(folder, { recursive: true, force: true });
  });

  it("leaves no process when it is killed while it launches", async () => {
    for (const ms of [0, 4, 10, 20, 40, 80]) {
      const { pid, folder, launched } = host(isolation);
      await launched;
      await new Promise((done) => setTimeout(done, ms));
      const below = killWhole(pid);
      await until(() => below.filter(alive).length === 0, 2);
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** Ids of the processes with exactly this command line. */
function processesOf(command: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1") === command && alive(pid);
      } catch {
        return false;
      }
    });
}

describeWithBubblewrap("kill -9 of the host, in bubblewrap", () => killContract("bwrap"));

describe.runIf(process.platform === "linux")("kill -9 of the host, without a sandbox", () => {
  killContract("none");

  it("leaves folders that the next launcher removes", async () => {
    const { pid, folder, launched } = host("none");
    await launched;
    const { input } = await runnerOf(folder, "m1");
    const session = join(input.turnServer, "..", "..");
    const below = killWhole(pid);
    await until(() => below.filter(alive).length === 0, 2);
    expect(readdirSync(session)).not.toEqual([]);
    const launcher = await openUnisolatedLauncher({
      objects: folder,
      tokens: join(folder, "t"),
      secrets: { get: async () => null },
      bundles,
    });
    await launcher.close();
    expect(() => readdirSync(session)).toThrow("ENOENT");
    rmSync(folder, { recursive: true, force: true });
  });
});
