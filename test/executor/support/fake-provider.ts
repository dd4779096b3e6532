/** A provider on a Unix socket that answers as a test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";

export interface ProviderCall {
  number: number;
  headers: IncomingHttpHeaders;
  path: string;
  body: Record<string, unknown>;
  response: ServerResponse;
}

export interface FakeProvider {
  calls: Omit<ProviderCall, "response">[];
  /** Decides all later answers. */
  answer: (call: ProviderCall) => void;
  close(): Promise<void>;
}

export async function startProvider(socket: string, answer: (call: ProviderCall) => void): Promise<FakeProvider> {
  const provider: FakeProvider = {
    calls: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Record<string, unknown>;
      const call = { number: provider.calls.length + 1, headers: request.headers, path: request.url ?? "", body };
      provider.calls.push(call);
      provider.answer({ ...call, response });
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return provider;
}

/** A completion as a provider sends it. */
export function completion(text: string, usage: Record<string, unknown> | null = usual, extra: object = {}): object {
  return {
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: text, ...extra }, finish_reason: "stop" }],
    ...(usage ? { usage } : {}),
  };
}
export const usual = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

export function sendJson(response: ServerResponse, status: number, value: unknown, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

export function event(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

/** The chunks of a streamed answer, usage last. */
export function chunks(pieces: string[], usage: object | null = usual): object[] {
  const chunk = (choices: object[], rest: object = {}) => ({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices,
    ...rest,
  });
  return [
    ...pieces.map((content) => chunk([{ index: 0, delta: { role: "assistant", content }, finish_reason: null }])),
    chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
    ...(usage ? [chunk([], { usage })] : []),
  ];
}

export function sendStream(response: ServerResponse, parts: readonly unknown[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const part of parts) response.write(event(part));
  response.end(event("[DONE]"));
}
