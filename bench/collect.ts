/**
 * From an agent's exit to the answered token: collecting, evidence and answer, with a real turn server, runner and file
 * store. The agent is a function that starts nothing, so no settling of files is in the figure.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentByName } from "../lib/agents/registry.ts";
import { runRunner } from "../lib/executor/runner/runner.ts";
import { seal } from "../lib/executor/seal.ts";
import { agentsAsFunctions } from "../lib/executor/turn-server/agent-process.ts";
import { TurnServer } from "../lib/executor/turn-server/turn-server.ts";
import { mailboxKey, packageFile } from "../lib/firewall/keys.ts";
import { openFileStore } from "../lib/platform/local/file-store.ts";
import { RealClock } from "../lib/platform/local/real-clock.ts";
import { systemRandom } from "../lib/platform/local/system-random.ts";
import type { TaskTokens } from "../lib/platform/ports.ts";
import { type Measure, median } from "./measure.ts";

const attempt = "abcdefghijklmnopqrstuvwxyz";
const digest = "d".repeat(64);
const turns = 30;

interface Left {
  files: number;
  bytesEach: number;
}

export async function measure(): Promise<Measure[]> {
  const target = "at most 150";
  return [
    {
      name: "agent exit to token, 20 files of 20 KB",
      value: await exitToToken({ files: 20, bytesEach: 20_000 }),
      unit: "ms",
      target,
    },
    {
      name: "agent exit to token, nothing left",
      value: await exitToToken({ files: 0, bytesEach: 0 }),
      unit: "ms",
      target,
    },
    {
      name: "agent exit to token, one file of 20 MB",
      value: await exitToToken({ files: 1, bytesEach: 20_000_000 }),
      unit: "ms",
      target,
    },
  ];
}

/** The median over turns of one try; each turn leaves the same files anew. */
async function exitToToken(left: Left): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const objects = join(folder, "objects");
  const operator = openFileStore(objects, { role: "operator" });
  await operator.create(packageFile("task", digest, "agent", "request.md"), "do it");
  let exited = 0;
  const results = join(folder, "w", "results");
  const server = new TurnServer({
    secret: "secret",
    place: { workspace: join(folder, "w"), home: join(folder, "h"), bundles: folder, node: process.execPath },
    agents: agentByName,
    start: agentsAsFunctions({
      null: async () => {
        mkdirSync(results, { recursive: true });
        for (let n = 0; n < left.files; n++) writeFileSync(join(results, `${n}.bin`), Buffer.alloc(left.bytesEach, n));
        exited = performance.now();
        return 0;
      },
    }),
  });
  await new Promise<void>((resolve) => server.server.listen(join(folder, "t"), resolve));
  const took: number[] = [];
  const stop = new AbortController();
  let answered: () => void = () => undefined;
  const failed: string[] = [];
  const tokens: TaskTokens = {
    succeed: async () => {
      took.push(performance.now() - exited);
      answered();
      return "accepted";
    },
    fail: async (_, error, cause) => {
      failed.push(`${error}: ${cause}`);
      answered();
      return "accepted";
    },
    heartbeat: async () => "accepted",
  };
  const key = Buffer.alloc(32, 1).toString("base64");
  const running = runRunner(
    {
      v: 1,
      try: { attempt, try: 1 },
      objects,
      mailbox: "box",
      sealKey: key,
      turnSecret: "secret",
      turnServer: join(folder, "t"),
      gatewaySocket: join(folder, "g"),
      gatewayBaseUrl: `unix:${join(folder, "g")}`,
      providerKey: null,
      tokens: "tokens",
      isolation: "none",
    },
    {
      openObjects: openFileStore,
      openTokens: () => tokens,
      clock: new RealClock(),
      random: systemRandom,
      log: () => undefined,
    },
    stop.signal,
  );
  const mailbox = openFileStore(objects, { role: "open-turn" });
  try {
    for (let turn = 1; turn <= turns; turn++) {
      const done = new Promise<void>((resolve) => {
        answered = resolve;
      });
      await mailbox.create(mailboxKey("box", turn), seal(key, message(turn, objects, folder), Buffer.alloc(12, turn)));
      await done;
      if (failed.length > 0) throw new Error(failed[0]);
    }
  } finally {
    stop.abort();
    await running;
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return median(took);
}

function message(turn: number, objects: string, folder: string): Parameters<typeof seal>[1] {
  return {
    v: 1,
    sweep: "bench",
    attempt,
    try: 1,
    turn,
    epoch: 1,
    deadline: new Date(Date.now() + 3_600_000).toISOString(),
    request: { kind: turn === 1 ? "task" : "followup", text: "do it" },
    agent: { name: "null", version: "1", options: {} },
    model: {
      name: "m",
      provider: "p",
      price: { input: 0, output: 0 },
      api: "scripted",
      socket: join(folder, "p"),
      script: "s",
    },
    package: { task: "task", digest },
    env: {},
    credentials: { kind: "local", objects, tokens: "tokens" },
    taskToken: `token-${turn}`,
    secondsUsed: 0,
    limits: {
      turnSeconds: 600,
      totalBinds: false,
      noStartSeconds: 180,
      stallSeconds: 600,
      usd: null,
      tokens: null,
    },
  };
}
