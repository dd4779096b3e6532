/** A runner's calls to a turn server, for tests. */
import { type IncomingMessage, request } from "node:http";
import { extract, pack } from "tar-stream";
import {
  type ResultsEnd,
  resultsEnd,
  resultsEndName,
  type TurnOutput,
  turnOutput,
} from "../../../lib/executor/turn-protocol.ts";

export interface Answer {
  status: number;
  secret: string | undefined;
  body: Buffer;
}

export interface TurnRun {
  lines: TurnOutput[];
  out: string;
  err: string;
  exit: { code: number | null; signal: string | null };
}

export interface TarEntry {
  name: string;
  type: string;
  mode: number;
  body: Buffer;
}

export class TurnClient {
  constructor(
    readonly socket: string,
    readonly secret: string,
  ) {}

  /** Sends a request; resolves with the answer's head. */
  open(method: string, path: string, body: Buffer | string = "", secret = this.secret): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${secret}` };
      const sent = request({ socketPath: this.socket, method, path, headers, agent: false }, resolve);
      sent.on("error", reject);
      sent.end(body);
    });
  }

  async call(method: string, path: string, body: Buffer | string = "", secret = this.secret): Promise<Answer> {
    const response = await this.open(method, path, body, secret);
    const shown = response.headers["x-proctor-secret"];
    return {
      status: response.statusCode ?? 0,
      secret: Array.isArray(shown) ? shown[0] : shown,
      body: await readAll(response),
    };
  }

  async turn(ask: { command: string[] } & Record<string, unknown>): Promise<TurnRun> {
    const response = await this.open("POST", "/turn", turnBody(ask));
    const body = (await readAll(response)).toString("utf8");
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${body}`);
    return readTurn(body);
  }

  async results(turn = 1): Promise<{ entries: TarEntry[]; end: ResultsEnd }> {
    const entries = await readTar((await this.call("GET", `/results?turn=${turn}`)).body);
    const last = entries.pop();
    if (last?.name !== resultsEndName) throw new Error("the stream was cut");
    return { entries, end: resultsEnd.parse(JSON.parse(last.body.toString("utf8"))) };
  }
}

/** The body of POST /turn for the agent `script`, which runs `command`. */
export function turnBody({ command, ...rest }: { command: string[] } & Record<string, unknown>): string {
  return JSON.stringify({
    v: 1,
    turn: 1,
    message: "do it",
    sessionId: "s",
    timeoutSeconds: 60,
    agent: { name: "script", options: { command } },
    model: "m",
    gateway: { baseUrl: "http://127.0.0.1:9/v1", key: "gateway-key" },
    env: {},
    ...rest,
  });
}

export function readTurn(body: string): TurnRun {
  const lines = body
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => turnOutput.parse(JSON.parse(line)));
  const text = (stream: "out" | "err"): string =>
    lines.map((line) => ("stream" in line && line.stream === stream ? line.text : "")).join("");
  const last = lines.at(-1);
  if (last === undefined || !("event" in last) || last.event !== "exit") throw new Error("no exit at the end");
  return { lines, out: text("out"), err: text("err"), exit: { code: last.code, signal: last.signal } };
}

export async function readAll(from: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of from) parts.push(part);
  return Buffer.concat(parts);
}

export async function readTar(tar: Buffer): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  const reading = extract();
  reading.end(tar);
  for await (const entry of reading) {
    const { name, type, mode } = entry.header;
    entries.push({ name, type: type ?? "", mode: mode ?? 0, body: await readAll(entry as AsyncIterable<Buffer>) });
  }
  return entries;
}

export function tarOf(files: Record<string, string | { type: "symlink"; linkname: string }>): Promise<Buffer> {
  const tar = pack();
  for (const [name, body] of Object.entries(files)) {
    if (typeof body === "string") tar.entry({ name, mode: name.endsWith(".sh") ? 0o755 : 0o644 }, body);
    else tar.entry({ name, ...body });
  }
  tar.finalize();
  return readAll(tar as unknown as AsyncIterable<Buffer>);
}
