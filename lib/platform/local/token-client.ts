/** A runner's side of the token socket. */
import { Agent, request } from "node:http";
import type { TaskTokens } from "../ports.ts";
import { type TokenPath, tokenAnswer } from "./token-protocol.ts";

/** Every call throws when the socket does not answer: then the process that runs the sweep is gone. */
export function tokenClient(socket: string): TaskTokens & { close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  const post = (path: TokenPath, body: unknown): Promise<"accepted" | "closed"> =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const sent = request({ socketPath: socket, path, method: "POST", agent, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("error", reject);
        response.on("end", () => {
          const said = Buffer.concat(parts).toString("utf8");
          if (response.statusCode !== 200) {
            reject(new Error(`${path} was answered with ${response.statusCode}: ${said.slice(0, 200)}`));
            return;
          }
          try {
            resolve(tokenAnswer.parse(JSON.parse(said)).answer);
          } catch (error) {
            reject(error);
          }
        });
      });
      sent.on("error", reject);
      sent.end(text);
    });
  return {
    succeed: (token, output) => post("/succeed", { token, output }),
    fail: (token, error, cause) => post("/fail", { token, error, cause }),
    heartbeat: (token) => post("/heartbeat", { token }),
    close: () => agent.destroy(),
  };
}
