import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seal } from "../../../../lib/executor/seal.ts";
import type { SealedMessage } from "../../../../lib/executor/sealed-message.ts";
import { evidenceFileKey, mailboxKey, packageFile } from "../../../../lib/firewall/keys.ts";
import { openFileStore } from "../../../../lib/platform/local/file-store.ts";
import { openBubblewrapLauncher } from "../../../../lib/platform/local/launcher/bubblewrap.ts";
import { openInProcessLauncher } from "../../../../lib/platform/local/launcher/in-process.ts";
import type { LocalLauncherOptions } from "../../../../lib/platform/local/launcher/launcher.ts";
import { openUnisolatedLauncher } from "../../../../lib/platform/local/launcher/unisolated.ts";
import { localRunner } from "../../../../lib/platform/local/runner.ts";
import { startTokenServer } from "../../../../lib/platform/local/token-server.ts";
import type { Launcher } from "../../../../lib/platform/ports.ts";
import { type TurnReport, turnReport } from "../../../../lib/trajectory/turn-report.ts";
import { bubblewrap, describeWithBubblewrap } from "../../../bubblewrap.ts";
import { completion, type FakeProvider, sendJson, startProvider } from "../../../executor/support/fake-provider.ts";
import { onLinux, until } from "../../../executor/turn-server/processes.ts";
import { buildRealBundles } from "./fixture.ts";
import { spec } from "./spec.ts";

const attempt = "a".repeat(26);
const digest = "d".repeat(64);
const sealKey = Buffer.alloc(32, 7).toString("base64");

let bundles: string;
let folder: string;
let objects: string;
let tokens: { close(): Promise<void> };
let provider: FakeProvider;
let launcher: Launcher;
const answers = new Map<string, unknown>();

beforeAll(async () => {
  bundles = await buildRealBundles();
});
afterAll(() => rmSync(bundles, { recursive: true, force: true }));
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "ex-"));
  objects = join(folder, "objects");
  answers.clear();
  tokens = await startTokenServer({
    socket: join(folder, "tokens"),
    tokens: {
      async succeed(token, output) {
        answers.set(token, output);
        return "accepted";
      },
      async fail(token, error, cause) {
        answers.set(token, `${error}: ${cause}`);
        return "accepted";
      },
      heartbeat: async () => "accepted",
    },
  });
  provider = await startProvider(join(folder, "provider"), ({ response }) =>
    sendJson(response, 200, completion("done")),
  );
  const operator = openFileStore(objects, { role: "operator" });
  await operator.create(packageFile("task_1", digest, "agent", "request.md"), "do it");
  await operator.create(packageFile("task_1", digest, "agent", "sources/a.txt"), "what the task gave\n");
});
afterEach(async () => {
  await launcher.close();
  await tokens.close();
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

const options = (): LocalLauncherOptions & { bundles: string } => ({
  objects,
  tokens: join(folder, "tokens"),
  secrets: { get: async () => null },
  reportMs: 3000,
  bundles,
});

async function launch(opened: Promise<Launcher>): Promise<void> {
  launcher = await opened;
  await launcher.launch(spec("box", { task: { task: "task_1", digest }, sealKey }));
}

async function turn(number: number, agent: SealedMessage["agent"]): Promise<TurnReport> {
  const message: SealedMessage = {
    v: 1,
    sweep: "s",
    attempt,
    try: 1,
    turn: number,
    epoch: 1,
    deadline: new Date(Date.now() + 3_600_000).toISOString(),
    request: { kind: number === 1 ? "task" : "followup", text: "read /tmp_workspace/clawbench/sources/a.txt" },
    agent,
    model: {
      name: "m",
      provider: "p",
      price: { input: 1, output: 2 },
      api: "scripted",
      socket: join(folder, "provider"),
      script: "s",
    },
    package: { task: "task_1", digest },
    env: {},
    credentials: { kind: "local", objects, tokens: join(folder, "tokens") },
    taskToken: `token-${number}`,
    secondsUsed: 0,
    limits: { turnSeconds: 60, totalBinds: false, noStartSeconds: 30, stallSeconds: 30, usd: null, tokens: null },
  };
  await openFileStore(objects, { role: "open-turn" }).create(
    mailboxKey("box", number),
    seal(sealKey, message, Buffer.alloc(12, number)),
  );
  await until(() => answers.has(`token-${number}`), 20);
  return turnReport.parse(answers.get(`token-${number}`));
}

async function evidence(number: number, path: string): Promise<string> {
  const store = openFileStore(objects, { role: "supervisor" });
  return Buffer.from(await store.get(evidenceFileKey({ attempt, try: 1 }, number, path))).toString("utf8");
}

const mini: SealedMessage["agent"] = { name: "mini", version: "1", options: {} };

/** Makes mini run a command, then end with plain words. */
function modelRuns(command: string): void {
  provider.answer = ({ body, response }) => {
    const messages = body.messages as { role: string }[];
    if (messages.at(-1)?.role === "tool") return sendJson(response, 200, completion("I have finished the request."));
    const call = { id: "call_1", type: "function", function: { name: "bash", arguments: JSON.stringify({ command }) } };
    const answer = completion("", undefined, { content: null, tool_calls: [call] }) as { choices: object[] };
    answer.choices = answer.choices.map((choice) => ({ ...choice, finish_reason: "tool_calls" }));
    sendJson(response, 200, answer);
  };
}

function executorContract(open: () => Promise<Launcher>): void {
  it("works through its turns with a model behind the gateway", async () => {
    await launch(open());
    modelRuns("cat /tmp_workspace/clawbench/sources/a.txt > /tmp_workspace/results/answer.txt");
    const first = await turn(1, mini);
    expect(first).toMatchObject({ exit: { code: 0, stopReason: "ended" }, isolation: launcher.isolation });
    expect(first.completion.complete).toBe(true);
    expect(first.usage.output).toBeGreaterThan(0);
    expect(await evidence(1, "results/answer.txt")).toBe("what the task gave\n");
    modelRuns("cat /tmp_workspace/results/answer.txt >> /tmp_workspace/results/answer.txt.2");
    expect((await turn(2, mini)).exit.stopReason).toBe("ended");
    expect(await evidence(2, "results/answer.txt.2")).toBe("what the task gave\n");
  });

  it("reports an agent that ends its own turn server as killed, not as our fault", async () => {
    await launch(open());
    modelRuns(
      `pid=$PPID; while [ "$(cat /proc/$pid/comm)" != node ] || ! grep -qa turn-server /proc/$pid/cmdline; do pid=$(awk '/PPid/ {print $2}' /proc/$pid/status); done; kill -9 $pid; sleep 20`,
    );
    expect((await turn(1, mini)).exit.stopReason).toBe("killed");
  });
}

describe.runIf(onLinux)("an executor without a sandbox", () => {
  executorContract(() => openUnisolatedLauncher(options()));
});

describeWithBubblewrap("an executor in bubblewrap", () => {
  executorContract(() => openBubblewrapLauncher({ ...options(), bwrap: bubblewrap() }));
});

describe("an executor in this process", () => {
  it("gives the same evidence", async () => {
    await launch(openInProcessLauncher({ ...options(), runner: localRunner() }));
    const agent = {
      name: "null",
      version: "1",
      options: { message: "done", writeFile: { path: "results/a", content: "a" } },
    };
    expect(await turn(1, agent)).toMatchObject({ exit: { code: 0, stopReason: "ended" }, isolation: "none" });
    expect(await evidence(1, "results/a")).toBe("a");
  });
});
