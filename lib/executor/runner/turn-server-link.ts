/**
 * The runner's end of the HTTP between runner and turn server (lib/executor/turn-protocol.ts). Every answer has to show
 * the try's secret; nothing of it is believed beyond its schema and limits.
 */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { z } from "zod";
import { collectLimits, packageAnswer, type TurnOutput, type TurnRequest, turnOutput } from "../turn-protocol.ts";

export class LinkError extends Error {
  override readonly name = "LinkError";
  constructor(
    /** broken: no connection, or it broke. foreign: the answer does not show the secret. refused: an HTTP error. */
    readonly kind: "broken" | "foreign" | "refused" | "unreadable",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const maxAnswerBytes = 64 * 1024;

export class TurnServerLink {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });

  constructor(
    private readonly socket: string,
    private readonly secret: string,
  ) {}

  async putPackage(tar: Readable, signal: AbortSignal): Promise<z.infer<typeof packageAnswer>> {
    const answer = await this.#send("PUT", "/package", { body: tar, type: "application/x-tar", signal });
    const text = await this.#small(answer);
    const parsed = packageAnswer.safeParse(jsonOf(text));
    if (!parsed.success) throw new LinkError("unreadable", "the answer to PUT /package is not what it should be");
    return parsed.data;
  }

  /**
   * Asks for a turn and gives what its agent prints until its exit. Lines that can not be read, and text beyond the
   * limit, are left out. Throws LinkError broken when the connection ends before the exit was told.
   */
  async turn(asked: TurnRequest, signal: AbortSignal): Promise<AsyncIterable<TurnOutput>> {
    const answer = await this.#send("POST", "/turn", {
      body: JSON.stringify(asked),
      type: "application/json",
      signal,
    });
    return outputs(answer);
  }

  async results(turn: number, signal: AbortSignal): Promise<Readable> {
    return await this.#send("GET", `/results?turn=${turn}`, { signal });
  }

  async stop(signal: AbortSignal): Promise<void> {
    await this.#small(await this.#send("POST", "/stop", { signal }));
  }

  close(): void {
    this.#agent.destroy();
  }

  async #small(answer: IncomingMessage): Promise<string> {
    return await readText(answer, maxAnswerBytes);
  }

  /** @throws LinkError */
  async #send(
    method: string,
    path: string,
    options: { body?: string | Readable; type?: string; signal?: AbortSignal } = {},
  ): Promise<IncomingMessage> {
    const { body, type, signal } = options;
    let request: ClientRequest | null = null;
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request = httpRequest({
        socketPath: this.socket,
        agent: this.#agent,
        method,
        path,
        headers: {
          authorization: `Bearer ${this.secret}`,
          ...(type === undefined ? {} : { "content-type": type }),
          ...(typeof body === "string" ? { "content-length": Buffer.byteLength(body) } : {}),
        },
      });
      const sent = request;
      let answer: IncomingMessage | null = null;
      sent.once("response", (response) => {
        answer = response;
      });
      const cut = (): void => {
        if (answer) answer.destroy();
        else sent.destroy(new Error("given up"));
      };
      if (signal?.aborted) cut();
      signal?.addEventListener("abort", cut);
      // With the request the listener goes: signals live longer than it.
      sent.once("close", () => signal?.removeEventListener("abort", cut));
      request.once("response", resolve);
      // Stays for the request's life: one that is aborted after its answer has begun fails once more.
      request.on("error", (error) => {
        reject(new LinkError("broken", `${method} ${path} got no answer: ${error.message}`, { cause: error }));
      });
    });
    const sent = request as unknown as ClientRequest;
    let sending: Promise<unknown> = Promise.resolve();
    if (body instanceof Readable) sending = pipeline(body, sent);
    else sent.end(body);
    // A server that refuses answers before it has read all: its answer says more than the pipe that broke.
    const failed = sending.then(
      () => new Promise<never>(() => undefined),
      async (error: unknown) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        throw new LinkError("broken", `${method} ${path} could not be sent: ${String(error)}`, { cause: error });
      },
    );
    answered.catch(() => undefined);
    const answer = await Promise.race([answered, failed]);
    answer.on("error", () => undefined);
    if (answer.headers["x-proctor-secret"] !== this.secret) {
      const status = answer.statusCode ?? 0;
      answer.destroy();
      throw new LinkError(
        "foreign",
        `${method} ${path} was answered (${status}) by a server that does not show the try's secret`,
      );
    }
    const status = answer.statusCode ?? 0;
    if (status < 200 || status > 299) {
      const text = await readText(answer, maxAnswerBytes).catch(() => "");
      throw new LinkError("refused", `${method} ${path} was refused with ${status}: ${oneLine(text)}`);
    }
    return answer;
  }
}

async function* outputs(answer: IncomingMessage): AsyncGenerator<TurnOutput> {
  let textBytes = 0;
  try {
    for await (const line of lines(answer, collectLimits.outputLineBytes)) {
      const parsed = turnOutput.safeParse(jsonOf(line));
      if (!parsed.success) continue;
      const output = parsed.data;
      if ("stream" in output) {
        textBytes += output.text.length;
        yield textBytes > collectLimits.outputBytes ? { ...output, text: "" } : output;
      } else {
        yield output;
        if (output.event === "exit") {
          answer.resume();
          return;
        }
      }
    }
  } catch (error) {
    if (error instanceof LinkError) throw error;
    throw new LinkError("broken", `the connection broke: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new LinkError("broken", "the answer to POST /turn ended before the agent's exit");
}

/** Lines of a stream; one that is longer than the limit is given as an empty line. */
async function* lines(stream: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let tooLong = false;
  for await (const chunk of stream) {
    let rest: Buffer = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const part = rest.subarray(0, end);
      rest = rest.subarray(end + 1);
      tooLong ||= heldBytes + part.length > maxBytes;
      yield tooLong ? "" : Buffer.concat([...held, part]).toString("utf8");
      held = [];
      heldBytes = 0;
      tooLong = false;
    }
    heldBytes += rest.length;
    if (heldBytes > maxBytes) {
      tooLong = true;
      held = [];
    } else if (rest.length > 0) held.push(rest);
  }
}

async function readText(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 160);
}
