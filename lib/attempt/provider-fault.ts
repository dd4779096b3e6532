/**
 * What a model provider's answer means, told apart by status, error code and body, never by hope. Pure; the gateway (the
 * agent's calls) and the model client (supervisor and simulator) use the same table.
 *
 *     429                                             rate_limited, unless its error code speaks of quota or billing
 *     402, or a quota or billing code on 400/403/429  quota_exhausted: waiting does not help
 *     400 406 411 413 414 415 422, and 403 whose      bad_request: the caller's own, asking again gives the same
 *     code speaks of content
 *     401, 403, 404, 409, 3xx, 5xx, anything else,    provider_error: nobody on the caller's side can mend it (model and
 *     and a code that says the model is not there     address are configured, not the caller's)
 *     408, 504, 524                                   timeout, as the provider or its edge says
 *     2xx that is no completion (HTML, empty, garbage, half) unreadable
 *     2xx whose JSON is {"error": …}                  by the code in it, else provider_error
 *     no answer at all                                disconnected or timeout, by the transport's error
 */
import type { ModelCallStatus } from "./usage.ts";

/** Ways in which a call can fail at the provider. `capped` and `cancelled` are ours, so they are none of them. */
export type ProviderFaultStatus = Exclude<ModelCallStatus, "ok" | "capped" | "cancelled">;

export interface ProviderFault {
  status: ProviderFaultStatus;
  /** One line for people; secrets that a provider echoes are taken out. */
  message: string;
  /** What the provider asked to wait, in milliseconds; null when it asked for nothing. */
  retryAfterMs: number | null;
}

export interface ProviderAnswer {
  httpStatus: number;
  /** Header values by lower-case name. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body, or as much of it as there was. */
  body: string;
}

/**
 * Classifies a whole answer (not a stream) of the chat completions API.
 * @param now milliseconds since 1970, for a Retry-After that is a date
 * @returns null when the answer is a completion: 2xx, a JSON object with `choices`
 */
export function providerFault(answer: ProviderAnswer, now: number): ProviderFault | null {
  const retryAfter = retryAfterMs(answer.headers, now);
  const json = parseObject(answer.body);
  const told = errorOf(json);
  if (answer.httpStatus >= 200 && answer.httpStatus < 300) {
    if (told) {
      const inner = told.httpStatus ?? 500;
      return { status: byStatus(inner, told), message: line(answer.httpStatus, told), retryAfterMs: retryAfter };
    }
    if (json && Array.isArray(json.choices)) return null;
    return { status: "unreadable", message: unreadableMessage(answer), retryAfterMs: null };
  }
  return {
    status: byStatus(answer.httpStatus, told),
    message: line(answer.httpStatus, told ?? { code: "", message: kindOfBody(answer.body), httpStatus: null }),
    retryAfterMs: retryAfter,
  };
}

/**
 * Classifies what was thrown instead of an answer: by `code` and `name` of the error and its causes.
 * Everything that is no timeout is a connection that did not hold.
 */
export function transportFault(error: unknown): ProviderFault {
  const names: string[] = [];
  for (let at: unknown = error, depth = 0; typeof at === "object" && at !== null && depth < 5; depth++) {
    const { code, name, cause } = at as { code?: unknown; name?: unknown; cause?: unknown };
    if (typeof code === "string") names.push(code);
    if (typeof name === "string") names.push(name);
    at = cause;
  }
  const timeout = names.some((name) => /TIMEOUT|TIMEDOUT|TimeoutError/i.test(name));
  const what = names.find((name) => name !== "Error") ?? "unknown error";
  return {
    status: timeout ? "timeout" : "disconnected",
    message: timeout ? `the provider did not answer in time (${what})` : `the connection did not hold (${what})`,
    retryAfterMs: null,
  };
}

/** Whether asking again later may help without anybody changing anything. */
export function mayPass(status: ProviderFaultStatus): boolean {
  switch (status) {
    case "rate_limited":
    case "provider_error":
    case "disconnected":
    case "timeout":
    case "unreadable":
      return true;
    case "quota_exhausted":
    case "bad_request":
      return false;
  }
}

/** Reads `retry-after-ms` and `retry-after` (seconds or an HTTP date; RFC 9110, section 10.2.3). Null when neither is readable. */
export function retryAfterMs(headers: ProviderAnswer["headers"], now: number): number | null {
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === "string" ? value.trim() : value?.[0]?.trim();
  };
  const exact = header("retry-after-ms");
  if (exact && /^\d+(\.\d+)?$/.test(exact)) return Math.round(Number(exact));
  const value = header("retry-after");
  if (!value) return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.round(Number(value) * 1000);
  // Date.parse takes much for a date that is none, "-3" say; an HTTP date begins with a day's name.
  const date = /^[A-Za-z]{3}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

interface ToldError {
  code: string;
  message: string;
  /** A numeric code inside the body, as routers in front of providers send it. */
  httpStatus: number | null;
}

function byStatus(httpStatus: number, told: ToldError | null): ProviderFaultStatus {
  const code = told?.code ?? "";
  const aboutMoney = /quota|billing|credit|payment|balance/i.test(code);
  if (httpStatus === 402) return "quota_exhausted";
  if (aboutMoney && [400, 403, 429].includes(httpStatus)) return "quota_exhausted";
  if (httpStatus === 429) return "rate_limited";
  if (httpStatus === 403 && /content|moderation|flagged|safety|policy/i.test(code)) return "bad_request";
  if (/model_?not_?found|invalid_?model|unknown_?model/i.test(code)) return "provider_error";
  if ([400, 406, 411, 413, 414, 415, 422].includes(httpStatus)) return "bad_request";
  if ([408, 504, 524].includes(httpStatus)) return "timeout";
  return "provider_error";
}

/** The error that a JSON body tells of: `{"error": {code?, type?, message?}}` or `{"error": "text"}`. */
function errorOf(json: Record<string, unknown> | null): ToldError | null {
  const error = json?.error;
  if (typeof error === "string") return { code: "", message: error, httpStatus: null };
  if (typeof error !== "object" || error === null) return null;
  const { code, type, message } = error as { code?: unknown; type?: unknown; message?: unknown };
  const numeric =
    typeof code === "number" ? code : typeof code === "string" && /^\d{3}$/.test(code) ? Number(code) : null;
  return {
    code: [code, type].filter((part) => typeof part === "string").join(" "),
    message: typeof message === "string" ? message : "",
    httpStatus: numeric !== null && numeric >= 400 && numeric < 600 ? numeric : null,
  };
}

/** A JSON object, or null for anything else that a provider sends. */
export function parseObject(body: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function kindOfBody(body: string): string {
  const start = body.trimStart().slice(0, 200);
  if (start === "") return "empty body";
  if (/^<(!doctype|html|\?xml|head|body)/i.test(start)) return "HTML";
  return "no error object";
}

function unreadableMessage(answer: ProviderAnswer): string {
  const kind = kindOfBody(answer.body);
  const what = kind === "no error object" ? "something that is no completion" : kind;
  return `HTTP ${answer.httpStatus} with ${what} where a completion was expected`;
}

function line(httpStatus: number, told: ToldError): string {
  const details = [told.code, told.message].filter((part) => part !== "").join(": ");
  return withoutSecrets(`HTTP ${httpStatus}${details === "" ? "" : ` (${details})`}`);
}

/** Cuts a provider's text to one short line and drops what looks like a key in it. */
export function withoutSecrets(text: string): string {
  const flat = text
    .replace(/\s+/g, " ")
    .replace(/\b(bearer|key|token)\s+\S{8,}/gi, "$1 …")
    .replace(/[A-Za-z0-9_\-*.+/=]{24,}/g, "…")
    .replace(/\b(sk|pk|rk|key|gsk|xai|AIza)[-_][^\s,)"']+/g, "…");
  return flat.length > 240 ? `${flat.slice(0, 239)}…` : flat;
}
