/** A runner with a real turn server whose agent is a function, a fake provider, and stores and tokens in memory. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentAdapter } from "../../../lib/agents/adapter.ts";
import { mini } from "../../../lib/agents/mini/adapter.ts";
import { type RunnerEnd, runRunner } from "../../../lib/executor/runner/runner.ts";
import { seal } from "../../../lib/executor/seal.ts";
import type { SealedMessage } from "../../../lib/executor/sealed-message.ts";
import { agentsAsFunctions, type FunctionAgent } from "../../../lib/executor/turn-server/agent-process.ts";
import { TurnServer } from "../../../lib/executor/turn-server/turn-server.ts";
import { evidenceFileKey, mailboxKey, packageFile } from "../../../lib/firewall/keys.ts";
import type { Clock, TaskTokens } from "../../../lib/platform/ports.ts";
import type { EvidenceManifest } from "../../../lib/trajectory/evidence-manifest.ts";
import { type TurnReport, turnReport } from "../../../lib/trajectory/turn-report.ts";
import { countingRandom, realClock, until } from "./clocks.ts";
import { completion, type FakeProvider, sendJson, startProvider } from "./fake-provider.ts";
import { MemoryStore } from "./memory-store.ts";

export const attempt = "abcdefghijklmnopqrstuvwxyz";
export const secret = "turn-secret";
const sealKey = Buffer.alloc(32, 7).toString("base64");
const digest = "d".repeat(64);

export type TokenAnswer =
  | { token: string; kind: "succeed"; output: unknown }
  | { token: string; kind: "fail"; error: string; cause: string };

export interface HarnessOptions {
  /** The agent under test, as a function; `mini`'s transcript form is read. */
  agent?: FunctionAgent;
  /** Answers instead of a turn server. */
  turnServer?: RequestListener;
  adapter?: AgentAdapter;
  clock?: Clock;
  heartbeatMs?: number;
}

export class Harness {
  readonly folder = mkdtempSync(join(tmpdir(), "rn-"));
  readonly store = new MemoryStore();
  readonly answers: TokenAnswer[] = [];
  readonly logs: string[] = [];
  readonly stop = new AbortController();
  readonly interrupt = new AbortController();
  heartbeats = 0;
  /** What a token says to an answer or heartbeat. */
  tokenState: "accepted" | "closed" = "accepted";
  provider!: FakeProvider;
  ended!: Promise<RunnerEnd>;
  #server!: Server | TurnServer;
  readonly clock: Clock;

  private constructor(readonly options: HarnessOptions) {
    this.clock = options.clock ?? realClock;
  }

  static async start(options: HarnessOptions): Promise<Harness> {
    const harness = new Harness(options);
    await harness.#start();
    return harness;
  }

  async #start(): Promise<void> {
    const { folder, options } = this;
    this.provider = await startProvider(join(folder, "p"), ({ response }) =>
      sendJson(response, 200, completion("done")),
    );
    const socket = join(folder, "t");
    if (options.turnServer) this.#server = createServer(options.turnServer);
    else {
      this.#server = new TurnServer({
        secret,
        place: { workspace: join(folder, "w"), home: join(folder, "h"), bundles: folder, node: process.execPath },
        agents: () => options.adapter ?? mini,
        start: agentsAsFunctions({ mini: options.agent ?? (async () => 0), null: options.agent ?? (async () => 0) }),
        graceMs: 50,
      });
    }
    const listener = this.#server instanceof TurnServer ? this.#server.server : this.#server;
    await new Promise<void>((resolve) => listener.listen(socket, resolve));
    await this.store.create(packageFile("task_1", digest, "agent", "request.md"), "do it");
    await this.store.create(
      packageFile("task_1", digest, "agent", `sources/${"long-name/".repeat(15)}ü.txt`),
      "source",
    );
    const tokens: TaskTokens = {
      succeed: async (token, output) => {
        if (this.tokenState === "accepted") this.answers.push({ token, kind: "succeed", output });
        return this.tokenState;
      },
      fail: async (token, error, cause) => {
        if (this.tokenState === "accepted") this.answers.push({ token, kind: "fail", error, cause });
        return this.tokenState;
      },
      heartbeat: async () => {
        this.heartbeats++;
        return this.tokenState;
      },
    };
    this.ended = runRunner(
      {
        v: 1,
        try: { attempt, try: 1 },
        objects: "memory",
        mailbox: "box",
        sealKey,
        turnSecret: secret,
        turnServer: socket,
        gatewaySocket: join(folder, "g"),
        gatewayBaseUrl: `unix:${join(folder, "g")}`,
        providerKey: null,
        tokens: "tokens",
        isolation: "none",
      },
      {
        openObjects: () => this.store,
        openTokens: () => tokens,
        clock: this.clock,
        random: countingRandom,
        log: (line) => this.logs.push(line),
        agents: () => options.adapter ?? mini,
        ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
      },
      this.stop.signal,
      this.interrupt.signal,
    );
  }

  /** Puts a turn's message into the mailbox. */
  async post(
    turn: number,
    change: Partial<Omit<SealedMessage, "limits">> & { limits?: Partial<SealedMessage["limits"]> } = {},
  ): Promise<void> {
    const message: SealedMessage = {
      v: 1,
      sweep: "s",
      attempt,
      try: 1,
      turn,
      epoch: 1,
      deadline: new Date(this.clock.now() + 7_200_000).toISOString(),
      request: { kind: turn === 1 ? "task" : "followup", text: "do it" },
      agent: { name: "mini", version: "1", options: {} },
      model: {
        name: "m",
        provider: "p",
        price: { input: 1, output: 2 },
        api: "scripted",
        socket: join(this.folder, "p"),
        script: "s",
      },
      package: { task: "task_1", digest },
      env: {},
      credentials: { kind: "local", objects: "memory", tokens: "tokens" },
      taskToken: `token-${turn}`,
      secondsUsed: 0,
      ...change,
      limits: {
        turnSeconds: 1200,
        totalBinds: false,
        noStartSeconds: 180,
        stallSeconds: 600,
        usd: null,
        tokens: null,
        ...change.limits,
      },
    };
    await this.store.create(mailboxKey("box", turn), seal(sealKey, message, Buffer.alloc(12, turn)));
  }

  /** The token's answer to a turn. */
  async answer(turn = 1): Promise<TokenAnswer> {
    await until(() => this.answers.some((answer) => answer.token === `token-${turn}`));
    return this.answers.find((answer) => answer.token === `token-${turn}`) as TokenAnswer;
  }

  async report(turn = 1): Promise<TurnReport> {
    const answer = await this.answer(turn);
    if (answer.kind === "fail") throw new Error(`the turn failed: ${answer.error}: ${answer.cause}`);
    return turnReport.parse(answer.output);
  }

  evidence(path: string, turn = 1): string | null {
    const { bucket, key } = evidenceFileKey({ attempt, try: 1 }, turn, path);
    return this.store.objects.get(`${bucket}:${key}`)?.toString("utf8") ?? null;
  }

  manifest(turn = 1): EvidenceManifest {
    return JSON.parse(this.evidence("manifest.json", turn) ?? "null") as EvidenceManifest;
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.ended;
    if (this.#server instanceof TurnServer) await this.#server.close();
    else {
      this.#server.closeAllConnections();
      await new Promise((resolve) => (this.#server as Server).close(resolve));
    }
    await this.provider.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Asks the gateway as an agent would. */
export async function askModel(gateway: { baseUrl: string; key: string }, content = "hi"): Promise<Response> {
  return await fetch(`${gateway.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }),
  });
}

/** A line of mini's transcript: an assistant's message. */
export function said(content: string, finish: string | null = "stop", extra: object = {}): string {
  return `${JSON.stringify({ type: "assistant", ts: 1, turn: 1, content, finish_reason: finish, ...extra })}\n`;
}
