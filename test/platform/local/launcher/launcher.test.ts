import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openBubblewrapLauncher } from "../../../../lib/platform/local/launcher/bubblewrap.ts";
import { openInProcessLauncher } from "../../../../lib/platform/local/launcher/in-process.ts";
import type { LocalLauncherOptions } from "../../../../lib/platform/local/launcher/launcher.ts";
import { openUnisolatedLauncher } from "../../../../lib/platform/local/launcher/unisolated.ts";
import type { Launcher, StoppedExecutor } from "../../../../lib/platform/ports.ts";
import { bubblewrap, describeWithBubblewrap } from "../../../bubblewrap.ts";
import { alive, onLinux, until } from "../../../executor/turn-server/processes.ts";
import { turnBody } from "../../../executor/turn-server/turn-client.ts";
import { buildBundles, runnerOf, waitingRunnerHere } from "./fixture.ts";
import { spec } from "./spec.ts";

let bundles: string;
let folder: string;
let options: LocalLauncherOptions;
let launcher: Launcher;
let stopped: StoppedExecutor[];

beforeAll(async () => {
  bundles = await buildBundles();
});
afterAll(() => rmSync(bundles, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "launch-"));
  options = {
    objects: folder,
    tokens: join(folder, "tokens.sock"),
    secrets: { get: async (name) => (name === "PRESENT_KEY" ? "sk-provider" : null) },
    work: join(folder, "work"),
  };
  stopped = [];
});
afterEach(async () => {
  await launcher.close();
  rmSync(folder, { recursive: true, force: true });
});

async function use(opening: Promise<Launcher>): Promise<void> {
  launcher = await opening;
  launcher.onStopped((one) => stopped.push(one));
}
const attemptFolders = (): string[] =>
  readdirSync(join(folder, "work")).flatMap((session) =>
    readdirSync(join(folder, "work", session)).filter((name) => name !== "owner"),
  );

function launcherContract(open: () => Promise<Launcher>): void {
  beforeEach(() => use(open()));

  it("starts both sides and tells the runner all it needs", async () => {
    const { id, isolation } = await launcher.launch(spec("m1", { keyName: "PRESENT_KEY" }));
    const { input, client } = await runnerOf(folder, "m1");
    expect(input).toMatchObject({
      try: { attempt: "a".repeat(26), try: 1 },
      mailbox: "m1",
      sealKey: "seal key of m1",
      turnSecret: "turn secret of m1",
      providerKey: "sk-provider",
      objects: folder,
      isolation,
    });
    expect(isolation).toBe(launcher.isolation);
    expect(await client.call("GET", "/health")).toMatchObject({ status: 200, secret: "turn secret of m1" });
    expect(Buffer.byteLength(input.gatewaySocket)).toBeLessThan(100);
    expect(existsSync(dirname(input.gatewaySocket))).toBe(true);
    expect(await launcher.describe(id)).toBe("running");
  });

  it("answers the same token with the same executor, at once and later", async () => {
    const [first, second] = await Promise.all([launcher.launch(spec("m1")), launcher.launch(spec("m1"))]);
    expect(second.id).toBe(first.id);
    await launcher.stop(first.id, "done");
    expect((await launcher.launch(spec("m1"))).id).toBe(first.id);
    expect(stopped).toHaveLength(1);
  });

  it("stops once, says so once, and leaves no file", async () => {
    const { id } = await launcher.launch(spec("m1"));
    await runnerOf(folder, "m1");
    await Promise.all([launcher.stop(id, "aborted by the user"), launcher.stop(id, "again")]);
    await launcher.stop(id, "and again");
    await launcher.stop("never-started", "no");
    expect(stopped).toEqual([
      expect.objectContaining({ id, reason: "aborted by the user", startedBy: spec("m1").startedBy }),
    ]);
    expect(await launcher.describe(id)).toBe("stopped");
    expect(attemptFolders()).toEqual([]);
  });

  it("keeps two tries apart", async () => {
    await Promise.all([launcher.launch(spec("m1")), launcher.launch(spec("m2"))]);
    const [one, two] = await Promise.all([runnerOf(folder, "m1"), runnerOf(folder, "m2")]);
    expect(one.input.turnServer).not.toBe(two.input.turnServer);
    expect((await one.client.call("GET", "/health", "", two.input.turnSecret)).status).toBe(401);
  });

  it("ends all that runs when it is closed, and starts no more", async () => {
    await Promise.all([launcher.launch(spec("m1")), launcher.launch(spec("m2"))]);
    await launcher.close();
    expect(stopped).toHaveLength(2);
    await expect(launcher.launch(spec("m3"))).rejects.toThrow("closed");
  });

  it("refuses a key that is not there, and tries again when asked again", async () => {
    await expect(launcher.launch(spec("m1", { keyName: "ABSENT_KEY" }))).rejects.toMatchObject({
      name: "LaunchError",
      kind: "configuration",
      message: expect.stringContaining("ABSENT_KEY"),
    });
    await launcher.launch(spec("m1"));
  });
}

/** What launchers of processes do in addition. */
function processContract(open: () => Promise<Launcher>): void {
  beforeEach(() => use(open()));

  it("gives the runner its keys on standard input alone", async () => {
    process.env.SOME_API_KEY = "canary-of-the-environment";
    try {
      await launcher.launch(spec("m1", { keyName: "PRESENT_KEY" }));
      const { env, argv } = await runnerOf(folder, "m1");
      expect(JSON.stringify({ env, argv })).not.toMatch(/sk-provider|seal key|turn secret|canary-of/);
    } finally {
      delete process.env.SOME_API_KEY;
    }
  });

  it("ends the agent's side when the runner is gone", async () => {
    await launcher.launch(spec("m1"));
    const { pid } = await runnerOf(folder, "m1");
    process.kill(pid, "SIGKILL");
    await until(() => stopped.length === 1);
    expect(stopped[0]).toMatchObject({ code: null, signal: "SIGKILL" });
    expect(stopped[0]?.reason).toContain("the runner ended");
    expect(attemptFolders()).toEqual([]);
  });

  it("runs an agent's turns with files that stay, and collects", async () => {
    await launcher.launch(spec("m1"));
    const { client } = await runnerOf(folder, "m1");
    const first = await client.turn({
      command: ["/bin/sh", "-c", 'echo "$MESSAGE" > results/a'],
      message: "see /tmp_workspace/x",
    });
    expect(first.exit).toEqual({ code: 0, signal: null });
    await client.turn({ command: ["/bin/sh", "-c", "cat results/a > results/b"], turn: 2 });
    const { entries } = await client.results(2);
    expect(entries.map((entry) => entry.name)).toEqual(["results/a", "results/b"]);
    expect(entries[0]?.body.toString()).toMatch(/^see .*tmp_workspace\/x\n$/);
  });

  it.runIf(onLinux)("ends an agent in the middle of its turn, with its daemons", async () => {
    const { id } = await launcher.launch(spec("m1"));
    const { client } = await runnerOf(folder, "m1");
    const mark = `mark-${process.pid}-${Math.trunc(performance.now())}`;
    const turn = await client.open(
      "POST",
      "/turn",
      turnBody({
        command: [
          "/bin/bash",
          "-c",
          `for i in 1 2 3; do setsid bash -c 'exec -a ${mark} sleep 60' & done; exec -a ${mark} sleep 60`,
        ],
      }),
    );
    turn.on("error", () => {}).resume();
    await until(() => processesNamed(mark).length === 4);
    const pids = processesNamed(mark);
    await launcher.stop(id, "enough");
    expect(pids.filter(alive)).toEqual([]);
  });

  it("lets a runner report when its agent ended the turn server", async () => {
    await launcher.launch(spec("m1"));
    const { client, pid } = await runnerOf(folder, "m1");
    await client.turn({ command: ["/bin/sh", "-c", "kill -9 $PPID; sleep 5"] }).catch(() => {});
    expect(alive(pid)).toBe(true);
    await until(() => stopped.length === 1);
    expect(stopped[0]?.reason).toContain("the agent's side ended");
    expect(attemptFolders()).toEqual([]);
  });
}

/** Ids, as the host sees them, of processes with this name in their command line. */
function processesNamed(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandLine(pid).split("\0")[0] === mark && alive(pid));
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

describe("in this process", () => {
  launcherContract(() => openInProcessLauncher({ ...options, runner: waitingRunnerHere }));

  it("names what keeps an executor's folders from being made, and leaves none of them", async () => {
    const [session] = readdirSync(join(folder, "work")) as [string];
    rmSync(join(folder, "work", session), { recursive: true });
    writeFileSync(join(folder, "work", session), "");
    await expect(launcher.launch(spec("m1"))).rejects.toMatchObject({
      name: "LaunchError",
      message: expect.stringContaining("an executor could not be started"),
    });
  });

  it("runs the null agent as a function, over the same protocol", async () => {
    await launcher.launch(spec("m1"));
    const { client } = await runnerOf(folder, "m1");
    const agent = { name: "null", options: { message: "nothing", writeFile: { path: "results/a.txt", content: "a" } } };
    const run = await client.turn({ command: [], agent });
    expect(run).toMatchObject({ out: "nothing\n", exit: { code: 0, signal: null } });
    const { entries } = await client.results();
    expect(entries.map((entry) => entry.name)).toEqual(["transcript/null.jsonl", "results/a.txt"]);
  });

  it("stops an agent that is a function", async () => {
    await launcher.launch(spec("m1"));
    const { client } = await runnerOf(folder, "m1");
    const agent = { name: "null", options: { sleepSeconds: 600 } };
    const turn = client.turn({ command: [], agent });
    await until(() => existsSync(join(folder, "m1.json")));
    await client.call("POST", "/stop");
    expect((await turn).exit.code).toBeNull();
  });
});

describe("without a sandbox", () => {
  const open = () => openUnisolatedLauncher({ ...options, reportMs: 300, bundles });
  launcherContract(open);
  processContract(open);
});

describeWithBubblewrap("in bubblewrap", () => {
  const open = () => openBubblewrapLauncher({ ...options, reportMs: 300, bundles, bwrap: bubblewrap() });
  launcherContract(open);
  processContract(open);
});
