/** An executor of real processes: launcher, turn server, mini, runner, file store, token socket and scripted models. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seal } from "../../../lib/executor/seal.ts";
import type { SealedMessage } from "../../../lib/executor/sealed-message.ts";
import { evidenceFileKey, mailboxKey, packageFile } from "../../../lib/firewall/keys.ts";
import { openFileStore } from "../../../lib/platform/local/file-store.ts";
import { openBubblewrapLauncher } from "../../../lib/platform/local/launcher/bubblewrap.ts";
import type { LocalLauncherOptions } from "../../../lib/platform/local/launcher/launcher.ts";
import { openUnisolatedLauncher } from "../../../lib/platform/local/launcher/unisolated.ts";
import { RealClock } from "../../../lib/platform/local/real-clock.ts";
import { startScriptedModels } from "../../../lib/platform/local/scripted-models.ts";
import { startTokenServer } from "../../../lib/platform/local/token-server.ts";
import type { Launcher, StoppedExecutor } from "../../../lib/platform/ports.ts";
import { type TurnReport, turnReport } from "../../../lib/trajectory/turn-report.ts";
import { bubblewrap, describeWithBubblewrap } from "../../bubblewrap.ts";

const attempt = "abcdefghijklmnopqrstuvwxyz";
const digest = "d".repeat(64);
const sealKey = Buffer.alloc(32, 3).toString("base64");
let bundles: string;
let folder: string;
let options: LocalLauncherOptions;
let launcher: Launcher;
let stopped: StoppedExecutor[];
let answers: Map<string, TurnReport | { error: string; cause: string }>;
let ends: (() => Promise<void>)[];

beforeAll(async () => {
  bundles = mkdtempSync(join(tmpdir(), "bundles-"));
  await build({
    entryPoints: [
      "lib/platform/local/runner-main.ts",
      "lib/executor/turn-server/turn-server-main.ts",
      "lib/agents/mini/mini-main.ts",
      "lib/agents/null/null-main.ts",
    ],
    outdir: bundles,
    entryNames: "[name]",
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
    banner: { js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);" },
  });
  writeFileSync(join(bundles, "package.json"), '{"type":"module"}');
});
afterAll(() => rmSync(bundles, { recursive: true, force: true }));

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "ex-"));
  answers = new Map();
  stopped = [];
  ends = [];
  options = { objects: join(folder, "objects"), tokens: join(folder, "k"), secrets: { get: async () => null } };
  const operator = openFileStore(options.objects, { role: "operator" });
  await operator.create(packageFile("task_1", digest, "agent", "request.md"), "do it");
  await operator.create(packageFile("task_1", digest, "agent", "sources/puzzle.txt"), "21");
  const tokens = await startTokenServer({
    socket: options.tokens,
    tokens: {
      succeed: async (token, output) => {
        answers.set(token, turnReport.parse(output));
        return "accepted";
      },
      fail: async (token, error, cause) => {
        answers.set(token, { error, cause });
        return "accepted";
      },
      heartbeat: async () => "accepted",
    },
  });
  const models = await startScriptedModels({ socket: join(folder, "m"), clock: new RealClock() });
  ends.push(
    () => tokens.close(),
    () => models.close(),
  );
});
afterEach(async () => {
  await launcher.close();
  for (const end of ends) await end();
  rmSync(folder, { recursive: true, force: true });
});

function script(turn: string, yaml: string): void {
  const at = join(folder, "script", "executor", "_any");
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, `${turn}.yaml`), yaml);
}

async function launch(opening: Promise<Launcher>): Promise<string> {
  launcher = await opening;
  launcher.onStopped((one) => stopped.push(one));
  const { id } = await launcher.launch({
    startedBy: `${attempt}/01`,
    clientToken: "c1",
    task: { task: "task_1", digest },
    agent: { name: "mini", version: "1" },
    network: "offline",
    mailbox: "box",
    sealKey,
    turnSecret: "secret",
    keyName: null,
  });
  return id;
}

async function post(turn: number, limits: Partial<SealedMessage["limits"]> = {}): Promise<void> {
  const message: SealedMessage = {
    v: 1,
    sweep: "s",
    attempt,
    try: 1,
    turn,
    epoch: 1,
    deadline: new Date(Date.now() + 600_000).toISOString(),
    request: { kind: turn === 1 ? "task" : "followup", text: "Double the number in /tmp_workspace/clawbench/sources." },
    agent: { name: "mini", version: "1", options: {} },
    model: {
      name: "m",
      provider: "scripted",
      price: { input: 1, output: 2 },
      api: "scripted",
      socket: join(folder, "m"),
      script: join(folder, "script"),
    },
    package: { task: "task_1", digest },
    env: {},
    credentials: { kind: "local", objects: options.objects, tokens: options.tokens },
    taskToken: `token-${turn}`,
    secondsUsed: 0,
    limits: {
      turnSeconds: 300,
      totalBinds: false,
      noStartSeconds: 60,
      stallSeconds: 60,
      usd: null,
      tokens: null,
      ...limits,
    },
  };
  const mailbox = openFileStore(options.objects, { role: "open-turn" });
  await mailbox.create(mailboxKey("box", turn), seal(sealKey, message, Buffer.alloc(12, turn)));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function report(turn: number): Promise<TurnReport> {
  await until(() => answers.has(`token-${turn}`) || stopped.length > 0);
  const answer = answers.get(`token-${turn}`);
  if (!answer || "error" in answer) throw new Error(JSON.stringify({ answer, stopped }));
  return answer;
}

async function evidence(turn: number, path: string): Promise<string> {
  const store = openFileStore(options.objects, { role: "supervisor" });
  return Buffer.from(await store.get(evidenceFileKey({ attempt, try: 1 }, turn, path))).toString("utf8");
}

const solving = `
- tools:
    - name: bash
      arguments:
        command: mkdir -p /tmp_workspace/results && echo $(( 2 * $(cat /tmp_workspace/clawbench/sources/puzzle.txt) )) > /tmp_workspace/results/answer.txt
  tokens: {input: 1000, output: 50}
- {text: "I have finished the request.", tokens: {input: 1100, output: 10}}
`;

function executorContract(open: () => Promise<Launcher>): void {
  it("solves a task in one turn and goes on in the next", async () => {
    script("turn-01", solving);
    script("turn-02", '- {text: "It was 42.", tokens: {input: 10, output: 1}}');
    const id = await launch(open());
    await post(1);
    expect(await report(1)).toMatchObject({
      exit: { code: 0, stopReason: "ended" },
      completion: { complete: true, reason: "api_stop" },
      usage: { input: 2100, output: 60 },
      isolation: launcher.isolation,
    });
    expect(await evidence(1, "results/answer.txt")).toBe("42\n");
    expect(JSON.parse(await evidence(1, "manifest.json"))).toMatchObject({ skipped: [], toolCounts: { bash: 1 } });
    await post(2);
    await report(2);
    expect(await evidence(2, "transcript.jsonl")).toContain("It was 42.");
    expect(await evidence(2, "transcript.jsonl")).not.toContain("finished the request");
    // The second turn went on with the conversation of the first.
    expect(await evidence(2, "model-calls.jsonl")).toContain("finished the request");
    await launcher.stop(id, "done");
  });

  it("is ended at its limit with all that it started, and leaves what it had", async () => {
    script(
      "turn-01",
      `- tools: [{name: bash, arguments: {command: "echo half > /tmp_workspace/results/half.txt; sleep 300 & sleep 300"}}]`,
    );
    const id = await launch(open());
    await post(1, { turnSeconds: 2, totalBinds: true });
    const ended = await report(1);
    expect(ended.exit).toEqual({ code: null, stopReason: "global_timeout" });
    expect(ended.completion.complete).toBe(false);
    expect(await evidence(1, "results/half.txt")).toBe("half\n");
    await launcher.stop(id, "done");
  });

  it("with a provider out of money ends as the provider's fault", async () => {
    script("turn-01", "- {fault: {kind: quota}}");
    const id = await launch(open());
    await post(1);
    expect((await report(1)).exit).toEqual({ code: 1, stopReason: "provider_fault" });
    expect(await evidence(1, "output.jsonl")).toContain("error");
    await launcher.stop(id, "done");
  });
}

describe("an executor without isolation", () => {
  executorContract(() => openUnisolatedLauncher({ ...options, bundles }));
});

describeWithBubblewrap("an executor in bubblewrap", () => {
  executorContract(() => openBubblewrapLauncher({ ...options, bundles, bwrap: bubblewrap() }));
});

it("a runner's bundle holds no agent's client", () => {
  // The default address of the openai client.
  const holdsClient = (bundle: string): boolean =>
    readFileSync(join(bundles, bundle), "utf8").includes("api.openai.com/v1");
  expect([holdsClient("mini-main.js"), holdsClient("runner-main.js")]).toEqual([true, false]);
});
