/** Streamed completions: server-sent events cut apart, read, and put together into the completion that they are. Pure. */

/** A longer event is no part of a completion. */
export const maxEventBytes = 16 * 1024 ** 2;

export class EventTooLong extends Error {
  override readonly name = "EventTooLong";
}

/** Cuts a byte stream into events, each with the empty line that ends it. */
export class EventSplitter {
  #held: Buffer = Buffer.alloc(0);
  /** Where the search goes on: what stands before was searched already. */
  #searched = 0;

  /** @throws EventTooLong */
  push(chunk: Buffer): Buffer[] {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const events: Buffer[] = [];
    for (;;) {
      const end = endOfEvent(this.#held, this.#searched);
      if (end === null) break;
      events.push(this.#held.subarray(0, end));
      this.#held = this.#held.subarray(end);
      this.#searched = 0;
    }
    this.#searched = Math.max(0, this.#held.length - 3);
    if (this.#held.length > maxEventBytes) throw new EventTooLong(`an event of more than ${maxEventBytes} bytes`);
    return events;
  }

  /** What came after the last whole event. */
  get rest(): Buffer {
    return this.#held;
  }
}

const lf = 10;
const cr = 13;

/** Index behind the first empty line (LF LF, CR LF CR LF, CR CR), or null. */
function endOfEvent(bytes: Buffer, from: number): number | null {
  for (let at = from; at < bytes.length - 1; at++) {
    const byte = bytes[at];
    if (byte === lf && bytes[at + 1] === lf) return at + 2;
    if (byte === cr && bytes[at + 1] === cr) return at + 2;
    if (byte === lf && bytes[at + 1] === cr && bytes[at + 2] === lf) return at + 3;
  }
  return null;
}

/** The data of an event, its lines joined; null for one without data (a comment, a keep-alive). */
export function eventData(event: Buffer): string | null {
  const data = event
    .toString("utf8")
    .split(/\r\n|\r|\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => (line.startsWith("data: ") ? line.slice(6) : line.slice(5)));
  return data.length === 0 ? null : data.join("\n");
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

interface AssembledChoice {
  /** Pieces of the texts of a message by field: content, refusal, reasoning and the like. */
  texts: Map<string, string[]>;
  calls: Map<number, { head: Json; name: string[]; arguments: string[] }>;
  finishReason: string | null;
}

/** Puts the chunks of a streamed completion together. */
export class CompletionAssembler {
  #first: Json = {};
  #usage: unknown = null;
  readonly #choices = new Map<number, AssembledChoice>();

  push(chunk: Json): void {
    if (Object.keys(this.#first).length === 0) this.#first = chunk;
    if (isObject(chunk.usage)) this.#usage = chunk.usage;
    if (!Array.isArray(chunk.choices)) return;
    for (const choice of chunk.choices) {
      if (!isObject(choice)) continue;
      const index = typeof choice.index === "number" ? choice.index : 0;
      let into = this.#choices.get(index);
      if (!into) {
        // An answer has few choices; more indices than that are a provider's nonsense.
        if (this.#choices.size >= 128) continue;
        into = { texts: new Map(), calls: new Map(), finishReason: null };
        this.#choices.set(index, into);
      }
      if (typeof choice.finish_reason === "string") into.finishReason = choice.finish_reason;
      if (isObject(choice.delta)) takeDelta(into, choice.delta);
    }
  }

  /** True when every choice has its finish reason. */
  get finished(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.finishReason !== null);
  }

  get usage(): unknown {
    return this.#usage;
  }

  /** All text that came: what an estimate of the output is made from. */
  text(): string {
    return [...this.#choices.values()]
      .flatMap((choice) => [
        ...[...choice.texts.values()].flat(),
        ...[...choice.calls.values()].flatMap((call) => [...call.name, ...call.arguments]),
      ])
      .join("");
  }

  /** The completion, in the form of an answer that was not streamed. */
  completion(): Json {
    const { id, created, model } = this.#first;
    return {
      id,
      object: "chat.completion",
      created,
      model,
      choices: [...this.#choices].map(([index, choice]) => ({
        index,
        message: {
          role: "assistant",
          content: null,
          ...Object.fromEntries([...choice.texts].map(([field, pieces]) => [field, pieces.join("")])),
          ...(choice.calls.size === 0
            ? {}
            : {
                tool_calls: [...choice.calls.values()].map((call) => ({
                  ...call.head,
                  function: { name: call.name.join(""), arguments: call.arguments.join("") },
                })),
              }),
        },
        finish_reason: choice.finishReason,
      })),
      usage: this.#usage,
    };
  }
}

function takeDelta(into: AssembledChoice, delta: Json): void {
  for (const [field, value] of Object.entries(delta)) {
    if (field === "role" || typeof value !== "string") continue;
    const pieces = into.texts.get(field);
    if (pieces) pieces.push(value);
    else if (into.texts.size < 16) into.texts.set(field, [value]);
  }
  if (!Array.isArray(delta.tool_calls)) return;
  for (const part of delta.tool_calls) {
    if (!isObject(part)) continue;
    const index = typeof part.index === "number" ? part.index : into.calls.size;
    let call = into.calls.get(index);
    if (!call) {
      if (into.calls.size >= 1024) continue;
      call = { head: { id: part.id, type: "function" }, name: [], arguments: [] };
      into.calls.set(index, call);
    }
    const called = isObject(part.function) ? part.function : {};
    if (typeof called.name === "string") call.name.push(called.name);
    if (typeof called.arguments === "string") call.arguments.push(called.arguments);
  }
}

/** True for the chunk that carries nothing but the usage, which a client that did not ask for it must not see. */
export function isUsageOnly(chunk: Json): boolean {
  return Array.isArray(chunk.choices) && chunk.choices.length === 0 && isObject(chunk.usage);
}
