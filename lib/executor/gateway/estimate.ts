/** How many tokens a request has, before a provider says so, from the amount of its text. Pure. */

export interface InputEstimate {
  /** A count that hardly any tokenizer stays below: a call is refused for its cap by this. */
  least: number;
  /** What is to be expected: money is set aside by this, and calls that end without usage are counted by it. */
  likely: number;
}

/** Tokens that an image is likely to be, whatever its bytes. */
const imageTokens = 1000;

/** Estimates the input of a chat completions request: its messages and tools. */
export function estimateInput(request: { messages?: unknown; tools?: unknown }): InputEstimate {
  const count = { ascii: 0, other: 0, images: 0 };
  const walk = (value: unknown, depth: number): void => {
    if (typeof value === "string") countText(value, count);
    else if (depth > 12 || typeof value !== "object" || value === null) return;
    else if (Array.isArray(value)) for (const item of value) walk(item, depth + 1);
    else if ((value as { type?: unknown }).type === "image_url") count.images++;
    else for (const item of Object.values(value)) walk(item, depth + 1);
  };
  walk(request.messages, 0);
  walk(request.tools, 0);
  return {
    least: Math.floor(count.ascii / 8 + count.other / 3),
    likely: Math.ceil(count.ascii / 4 + count.other) + count.images * imageTokens,
  };
}

/** Tokens of a text that was received, by the same measure. */
export function estimateText(text: string): number {
  const count = { ascii: 0, other: 0 };
  countText(text, count);
  return Math.ceil(count.ascii / 4 + count.other);
}

function countText(text: string, count: { ascii: number; other: number }): void {
  let ascii = 0;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 128) ascii++;
  count.ascii += ascii;
  count.other += text.length - ascii;
}
