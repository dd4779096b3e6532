/** Task tokens that wait for an answer. A token answers once; whatever comes later, or for nobody, is `closed`. */
import type { Clock, Random, TaskTokens } from "../../ports.ts";
import { limitOver } from "./bounded.ts";
import { errorNames, fromOutside, type Json, limits, StateFailure } from "./data.ts";

interface Waiting {
  succeed(output: { value: Json; bytes: number }): void;
  fail(failure: StateFailure): void;
  /** When the heartbeat is lost, in milliseconds since 1970; null without HeartbeatSeconds. */
  deadline: number | null;
  heartbeatMs: number;
}

/** The answer to a token that Step Functions refuses, leaving the token open. */
export class InvalidOutput extends Error {
  override readonly name = "InvalidOutput";
}

export class TokenTable implements TaskTokens {
  readonly #waiting = new Map<string, Waiting>();
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Tokens that are open. */
  get size(): number {
    return this.#waiting.size;
  }

  /** A new name for a token: 192 random bits. */
  issue(): string {
    return Buffer.from(this.#random.bytes(24)).toString("base64url");
  }

  /**
   * Waits for the answer to a token, until the signal fires.
   * @param heartbeatSeconds null: no heartbeat is expected
   * @returns the answer; never settles once the signal has fired
   * @throws StateFailure the error that was answered, or States.HeartbeatTimeout
   */
  wait(token: string, heartbeatSeconds: number | null, signal: AbortSignal): Promise<{ value: Json; bytes: number }> {
    return new Promise((resolve, reject) => {
      const heartbeatMs = (heartbeatSeconds ?? 0) * 1000;
      const waiting: Waiting = {
        succeed: resolve,
        fail: reject,
        deadline: heartbeatSeconds === null ? null : this.#clock.now() + heartbeatMs,
        heartbeatMs,
      };
      this.#waiting.set(token, waiting);
      signal.addEventListener("abort", () => this.#waiting.delete(token), { once: true });
      if (heartbeatSeconds !== null) void this.#watch(token, waiting, heartbeatSeconds, signal);
    });
  }

  async #watch(token: string, waiting: Waiting, heartbeatSeconds: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const deadline = waiting.deadline as number;
      await limitOver(this.#clock, deadline, signal);
      if (signal.aborted) return;
      if (waiting.deadline === deadline) break;
    }
    if (!this.#waiting.delete(token)) return;
    waiting.fail(new StateFailure(errorNames.heartbeatTimeout, `no heartbeat for ${heartbeatSeconds} s`));
  }

  /** @throws InvalidOutput what is no JSON or over 256 KiB; the token stays open */
  async succeed(token: string, output: unknown): Promise<"accepted" | "closed"> {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return "closed";
    let data: { value: Json; bytes: number };
    try {
      data = fromOutside(output);
    } catch (error) {
      throw new InvalidOutput("the answer to a task token is no JSON", { cause: error });
    }
    if (data.bytes > limits.dataBytes) {
      throw new InvalidOutput(
        `the answer to a task token is ${data.bytes} bytes of JSON; at most ${limits.dataBytes} are allowed`,
      );
    }
    this.#waiting.delete(token);
    waiting.succeed(data);
    return "accepted";
  }

  /** Error and cause are cut to what Step Functions takes: 256 and 32,768 characters. */
  async fail(token: string, error: string, cause: string): Promise<"accepted" | "closed"> {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return "closed";
    this.#waiting.delete(token);
    waiting.fail(new StateFailure(error.slice(0, 256), cause.slice(0, 32_768)));
    return "accepted";
  }

  async heartbeat(token: string): Promise<"accepted" | "closed"> {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return "closed";
    if (waiting.deadline !== null) waiting.deadline = this.#clock.now() + waiting.heartbeatMs;
    return "accepted";
  }
}
