/** Errors as clients of the chat completions API know them. */
import type { ServerResponse } from "node:http";
import { type ProviderFault, withoutSecrets } from "../../attempt/provider-fault.ts";

/** Refusals of the gateway's own. */
const refusals = {
  capped: [402, "insufficient_quota", "proctor_cap", "the budget of this attempt is used up"],
  key: [401, "invalid_request_error", "invalid_api_key", "the gateway does not know this key"],
  no_turn: [503, "server_error", "proctor_no_turn", "no turn is running"],
  too_large: [413, "invalid_request_error", "request_too_large", "the request is larger than 64 MB"],
  too_many: [429, "requests", "proctor_too_many", "too many calls at once"],
  not_found: [404, "invalid_request_error", "unknown_url", "there are /v1/chat/completions and /v1/models"],
  method: [405, "invalid_request_error", "method_not_allowed", "this address takes another method"],
} as const;

export function refuse(response: ServerResponse, why: keyof typeof refusals): void {
  const [status, type, code, message] = refusals[why];
  send(response, status, { message, type, code, param: null }, why === "too_many" ? { "retry-after": "1" } : {});
}

/** A request that is wrong: what, and what was expected. */
export function refuseRequest(response: ServerResponse, code: string, message: string, status = 400): void {
  send(response, status, { message, type: "invalid_request_error", code, param: null }, {});
}

/**
 * Passes a provider's fault on, under its own status where it gave one: code and type as they are, because agents act on
 * them (a context that is too long, say), the message without what looks like a key.
 */
export function sendError(
  response: ServerResponse,
  fault: ProviderFault,
  httpStatus: number | null,
  body: string,
): void {
  const status =
    httpStatus !== null && httpStatus >= 400
      ? httpStatus
      : ({ timeout: 504, rate_limited: 429, quota_exhausted: 402, bad_request: 400 }[
          fault.status as "timeout" | "rate_limited" | "quota_exhausted" | "bad_request"
        ] ?? 502);
  const told = providerError(body);
  send(
    response,
    status,
    {
      message: told.message === null ? fault.message : withoutSecrets(told.message),
      type: told.type ?? fault.status,
      code: told.code ?? fault.status,
      param: null,
    },
    fault.retryAfterMs === null ? {} : { "retry-after": String(Math.ceil(fault.retryAfterMs / 1000)) },
  );
}

function providerError(body: string): { message: string | null; type: string | null; code: string | number | null } {
  const none = { message: null, type: null, code: null };
  try {
    const error = (JSON.parse(body) as { error?: unknown } | null)?.error;
    if (typeof error !== "object" || error === null) return none;
    const { message, type, code } = error as { message?: unknown; type?: unknown; code?: unknown };
    const word = (value: unknown): string | null =>
      typeof value === "string" && /^[\w.:-]{1,80}$/.test(value) ? value : null;
    return {
      message: typeof message === "string" ? message : null,
      type: word(type),
      code: typeof code === "number" ? code : word(code),
    };
  } catch {
    return none;
  }
}

function send(
  response: ServerResponse,
  status: number,
  error: { message: string; type: string; code: string | number; param: null },
  headers: Record<string, string>,
): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error }));
}
