/** A provider of chat completions on loopback whose answers a test makes from the whole request. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface AskedFor {
  model: string;
  messages: { role: string; content?: string | null; tool_calls?: unknown[] }[];
  headers: IncomingHttpHeaders;
  /** The request as it came. */
  body: string;
  /** Assistant messages after the last message of the user. */
  index: number;
}

export type Said =
  | { text: string }
  | { tools: { name: string; arguments: unknown }[] }
  | { status: number; body: unknown };

export interface ModelServer {
  port: number;
  baseUrl: string;
  asked: AskedFor[];
  close(): Promise<void>;
}

/** @param other answers to anything that is no chat completion */
export async function modelServer(
  answer: (asked: AskedFor) => Said,
  other: (url: URL) => Promise<string> = async () => "",
): Promise<ModelServer> {
  const asked: AskedFor[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const url = new URL(request.url ?? "/", "http://localhost");
    if (!url.pathname.endsWith("/chat/completions")) {
      response.end(await other(url));
      return;
    }
    const body = Buffer.concat(chunks).toString("utf8");
    const { model, messages } = JSON.parse(body) as Pick<AskedFor, "model" | "messages">;
    const lastUser = messages.map(({ role }) => role).lastIndexOf("user");
    const index = messages.slice(lastUser + 1).filter(({ role }) => role === "assistant").length;
    const call = { model, messages, headers: request.headers, body, index };
    asked.push(call);
    const said = answer(call);
    response.setHeader("content-type", "application/json");
    if ("status" in said) {
      response.writeHead(said.status);
      response.end(typeof said.body === "string" ? said.body : JSON.stringify(said.body));
      return;
    }
    const message =
      "text" in said
        ? { role: "assistant", content: said.text }
        : {
            role: "assistant",
            content: null,
            tool_calls: said.tools.map((tool, at) => ({
              id: `call-${messages.length}-${at}`,
              type: "function",
              function: { name: tool.name, arguments: JSON.stringify(tool.arguments) },
            })),
          };
    const choices = [{ index: 0, message, finish_reason: "text" in said ? "stop" : "tool_calls" }];
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model, choices, usage }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
