/**
 * The agent's side of an executor: HTTP as lib/executor/turn-protocol.ts says. It holds nothing but the try's turn
 * secret and an agent that is running. The secret proves to the runner that it talks to this try's turn server and the
 * other way round; an agent that got hold of it could forge its own output, which it writes anyway, and nothing else.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { AgentAdapter } from "../../agents/adapter.ts";
import { type CollectLimits, collectLimits, turnRequest } from "../turn-protocol.ts";
import type { StartAgent } from "./agent-process.ts";
import { type Forwarder, forwardToSocket } from "./gateway-forwarder.ts";
import { takePackage } from "./package-intake.ts";
import { type AgentPlace, stateFolder } from "./place.ts";
import { packResults } from "./results-tar.ts";
import { settled } from "./settle.ts";
import { RunningTurn, TurnRefused } from "./turn.ts";

export interface TurnServerOptions {
  /** What runner and turn server show each other. */
  secret: string;
  place: AgentPlace;
  agents: (name: string) => AgentAdapter | null;
  start: StartAgent;
  /** Milliseconds between asking an agent to end and ending it. */
  graceMs?: number;
  /** Milliseconds that files have to stop changing before they are collected. */
  settleMs?: number;
  /** Limits on results; lower ones for tests. */
  limits?: Partial<CollectLimits>;
}

const maxRequestBytes = 8 * 1024 ** 2;

export class TurnServer {
  readonly server: Server;
  readonly #options: TurnServerOptions;
  readonly #expected: Buffer;
  readonly #limits: CollectLimits;
  readonly #forwarders = new Map<string, Promise<Forwarder>>();
  #turn: RunningTurn | "opening" | null = null;
  #turned = false;
  /** The agent of the last turn: whose transcript goes with the results. */
  #agent: AgentAdapter | null = null;

  constructor(options: TurnServerOptions) {
    this.#options = options;
    this.#limits = { ...collectLimits, ...options.limits };
    this.#expected = digest(`Bearer ${options.secret}`);
    mkdirSync(join(options.place.workspace, "results"), { recursive: true });
    this.server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => refuse(response, 500, messageOf(error)));
    });
    // A turn lasts as long as it lasts; its limits are the runner's.
    this.server.requestTimeout = 0;
    this.server.keepAliveTimeout = 60_000;
  }

  /** Ends the agent with all that it started, then the server. */
  async close(): Promise<void> {
    this.server.close();
    await this.#stop();
    this.server.closeAllConnections();
    for (const forwarder of this.#forwarders.values()) await forwarder.then((it) => it.close()).catch(() => {});
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without the secret there is no answer that could be told from any other server's: our side of it is not shown.
    if (!timingSafeEqual(digest(request.headers.authorization ?? ""), this.#expected)) {
      refuse(response, 401, "not this try's secret");
      request.destroy();
      return;
    }
    response.setHeader("x-proctor-secret", this.#options.secret);
    const url = new URL(request.url ?? "/", "http://turn-server");
    switch (`${request.method} ${url.pathname}`) {
      case "GET /health":
        return answerJson(response, {});
      case "PUT /package":
        return this.#package(request, response);
      case "POST /turn":
        return this.#openTurn(request, response);
      case "GET /results":
        return this.#results(url, response);
      case "POST /stop":
        await this.#stop();
        return answerJson(response, {});
      default:
        return refuse(response, 404, `no ${request.method} ${url.pathname} here`);
    }
  }

  async #package(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#turned) return refuse(response, 409, "a package is taken before the first turn only");
    answerJson(response, { v: 1, ...(await takePackage(request, this.#options.place)) });
  }

  async #openTurn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#turn !== null) return refuse(response, 409, "a turn is running");
    this.#turn = "opening";
    this.#turned = true;
    try {
      const asked = turnRequest.parse(JSON.parse(await readText(request)));
      const agent = this.#options.agents(asked.agent.name);
      if (agent === null) throw new TurnRefused(`there is no agent "${asked.agent.name}" here`);
      this.#agent = agent;
      const turn = await RunningTurn.start({
        asked: { ...asked, gateway: { ...asked.gateway, baseUrl: await this.#gateway(asked.gateway.baseUrl) } },
        agent,
        place: this.#options.place,
        start: this.#options.start,
        graceMs: this.#options.graceMs ?? 2000,
        limits: this.#limits,
      });
      this.#turn = turn;
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.flushHeaders();
      // A runner that went away wants no more of this turn.
      response.on("close", () => {
        if (!response.writableFinished) void turn.stop();
      });
      await turn.streamTo(response);
      // The next turn may be asked for as soon as this answer has ended.
      this.#turn = null;
      response.end();
    } catch (error) {
      if (response.headersSent) response.destroy();
      else refuse(response, 422, messageOf(error));
    } finally {
      this.#turn = null;
    }
  }

  async #results(url: URL, response: ServerResponse): Promise<void> {
    if (this.#turn !== null) return refuse(response, 409, "a turn is running");
    const turn = Number(url.searchParams.get("turn"));
    if (!Number.isInteger(turn) || turn < 1) return refuse(response, 400, "?turn= names no turn");
    const { place } = this.#options;
    const results = { name: "results", path: join(place.workspace, "results") };
    const agent = this.#agent;
    const transcripts =
      agent === null
        ? []
        : agent.transcript.map((file) => ({
            name: `transcript/${file}`,
            path: join(stateFolder(place, agent.name), file),
          }));
    await settled(
      [results, ...transcripts].map((root) => root.path),
      this.#options.start.anythingLeft,
      this.#options.settleMs ?? 2000,
    );
    response.writeHead(200, { "content-type": "application/x-tar" });
    // A stream that is cut has no _end.json; the reader notices.
    await pipeline(packResults({ transcripts, results: [results] }, this.#limits), response).catch(() =>
      response.destroy(),
    );
  }

  async #stop(): Promise<void> {
    if (this.#turn instanceof RunningTurn) await this.#turn.stop();
    await this.#options.start.endAll();
  }

  /** `unix:<path>` becomes a port on loopback that leads there; other addresses stay. */
  async #gateway(baseUrl: string): Promise<string> {
    if (!baseUrl.startsWith("unix:")) return baseUrl;
    const path = baseUrl.slice("unix:".length);
    let forwarder = this.#forwarders.get(path);
    if (forwarder === undefined) {
      forwarder = forwardToSocket(path);
      this.#forwarders.set(path, forwarder);
    }
    return `http://127.0.0.1:${(await forwarder).port}/v1`;
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxRequestBytes) throw new TurnRefused(`a turn's request is ${maxRequestBytes} bytes at most`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function answerJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number, error: string): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error }));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
