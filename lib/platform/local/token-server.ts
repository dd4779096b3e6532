/** Takes runners' answers to turn tokens. The token is the credential: whoever has it may answer that one turn. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { TaskTokens } from "../ports.ts";
import { listenAt } from "./own-socket.ts";
import { maxTokenBody, type TokenPath, tokenCalls } from "./token-protocol.ts";

/** @throws Error when the socket cannot be made. A stale file there is replaced. */
export async function startTokenServer(options: {
  socket: string;
  tokens: TaskTokens;
}): Promise<{ close(): Promise<void> }> {
  const server = createServer((request, response) => {
    answer(options.tokens, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else send(response, 500, { error: error instanceof Error ? error.message : String(error) });
    });
  });
  const close = await listenAt(server, options.socket);
  return {
    close() {
      const closed = close();
      server.closeAllConnections();
      return closed;
    },
  };
}

async function answer(tokens: TaskTokens, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? "";
  if (request.method !== "POST" || !Object.hasOwn(tokenCalls, path)) {
    return send(response, 404, { error: `no ${path} here` });
  }
  const body = await readBody(request);
  if (body === null) return send(response, 413, { error: `more than ${maxTokenBody} bytes` });
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return send(response, 400, { error: "the body is not JSON" });
  }
  const called = await call(tokens, path as TokenPath, value);
  if (called === null) return send(response, 400, { error: `the body is not that of ${path}` });
  send(response, 200, { answer: called });
}

/** Null: the body has another form. */
async function call(tokens: TaskTokens, path: TokenPath, value: unknown): Promise<"accepted" | "closed" | null> {
  switch (path) {
    case "/succeed": {
      const body = tokenCalls[path].safeParse(value);
      return body.success ? tokens.succeed(body.data.token, body.data.output) : null;
    }
    case "/fail": {
      const body = tokenCalls[path].safeParse(value);
      return body.success ? tokens.fail(body.data.token, body.data.error, body.data.cause) : null;
    }
    case "/heartbeat": {
      const body = tokenCalls[path].safeParse(value);
      return body.success ? tokens.heartbeat(body.data.token) : null;
    }
  }
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxTokenBody) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
