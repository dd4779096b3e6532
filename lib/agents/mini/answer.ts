/**
 * A model's answer as mini keeps it. The API's types say what a provider should send; what one does send is looked at here,
 * so that an odd field beside an answer never costs the answer.
 */
import { toldTokens } from "../../attempt/usage.ts";
import type { MiniLine, MiniToolCall } from "./transcript.ts";

export type Answer = Pick<
  Extract<MiniLine, { type: "assistant" }>,
  "content" | "tool_calls" | "finish_reason" | "usage"
>;

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Reads a completion that came whole.
 * @throws Error when it has no message
 */
export function wholeAnswer(completion: unknown): Answer {
  const { choices, usage } = isObject(completion) ? completion : {};
  const choice = listOf(choices)[0];
  if (!isObject(choice) || !isObject(choice.message)) throw new Error("the model's answer has no choice");
  const { content, tool_calls } = choice.message;
  const calls = listOf(tool_calls).flatMap((call, index): MiniToolCall[] =>
    isObject(call) && isObject(call.function) && (call.type ?? "function") === "function"
      ? [
          {
            id: idOf(call.id) ?? `call-${index}`,
            type: "function",
            function: {
              name: typeof call.function.name === "string" ? call.function.name : "unknown",
              arguments: argumentsOf(call.function.arguments),
            },
          },
        ]
      : [],
  );
  return answerOf(textOf(content), calls, choice.finish_reason, usage);
}

/** Puts a streamed completion together. */
export class StreamedAnswer {
  #content: string | null = null;
  #finish: unknown = null;
  #usage: unknown = null;
  readonly #calls = new Map<number, MiniToolCall>();

  push(chunk: unknown): void {
    if (!isObject(chunk)) return;
    if (chunk.usage) this.#usage = chunk.usage;
    const choice = listOf(chunk.choices)[0];
    if (!isObject(choice)) return;
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    if (!isObject(choice.delta)) return;
    const text = textOf(choice.delta.content);
    if (text) this.#content = (this.#content ?? "") + text;
    for (const part of listOf(choice.delta.tool_calls)) if (isObject(part)) this.#takeCall(part);
  }

  /** @throws Error when the stream ended before the answer did */
  end(): Answer {
    if (this.#finish === null) throw new Error("the model's answer broke off");
    return answerOf(this.#content, [...this.#calls.values()], this.#finish, this.#usage);
  }

  #takeCall(part: Json): void {
    // Without an index a piece with an id begins a call, and one without goes on with the last.
    const last = Math.max(-1, ...this.#calls.keys());
    const index = typeof part.index === "number" ? part.index : idOf(part.id) !== null || last < 0 ? last + 1 : last;
    const call = this.#calls.get(index) ?? {
      id: idOf(part.id) ?? `call-${index}`,
      type: "function" as const,
      function: { name: "", arguments: "" },
    };
    this.#calls.set(index, call);
    const told = isObject(part.function) ? part.function : {};
    if (typeof told.name === "string") call.function.name += told.name;
    call.function.arguments += argumentsOf(told.arguments);
  }
}

function answerOf(content: string | null, calls: MiniToolCall[], finish: unknown, told: unknown): Answer {
  const usage = toldTokens(told);
  return {
    content,
    // An answer that is all there and names no readable reason ended as it looks.
    finish_reason: typeof finish === "string" && finish !== "" ? finish : calls.length > 0 ? "tool_calls" : "stop",
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(usage ? { usage } : {}),
  };
}

/** A text, or the texts of a list of parts; null where there is none. */
function textOf(content: unknown): string | null {
  if (typeof content === "string") return content;
  const texts = listOf(content).flatMap((part) => {
    const text = isObject(part) ? part.text : part;
    return typeof text === "string" ? [text] : [];
  });
  return texts.length > 0 ? texts.join("") : null;
}

const idOf = (id: unknown): string | null => (typeof id === "string" && id !== "" ? id : null);

/** Arguments are a text of JSON; some servers send the JSON itself. */
function argumentsOf(told: unknown): string {
  if (typeof told === "string") return told;
  return isObject(told) ? JSON.stringify(told) : "";
}
