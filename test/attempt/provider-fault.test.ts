import { describe, expect, it } from "vitest";
import { mayPass, providerFault, retryAfterMs, transportFault } from "../../lib/attempt/provider-fault.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const fault = (httpStatus: number, body: string, headers: Record<string, string> = {}) =>
  providerFault({ httpStatus, headers, body }, now);
const error = (code: unknown, message = "no", type?: string) => JSON.stringify({ error: { code, message, type } });

describe("a provider's answer", () => {
  it.each([
    [429, error("rate_limit_exceeded"), "rate_limited"],
    [429, "", "rate_limited"],
    [429, "<html>slow down</html>", "rate_limited"],
    [429, error("insufficient_quota"), "quota_exhausted"],
    [429, error(null, "no", "billing_hard_limit_reached"), "quota_exhausted"],
    [402, "", "quota_exhausted"],
    [402, error(402, "Payment required"), "quota_exhausted"],
    [403, error("insufficient_credits"), "quota_exhausted"],
    [400, error("context_length_exceeded"), "bad_request"],
    [404, error("model_not_found"), "provider_error"],
    [400, error("model_not_found"), "provider_error"],
    [404, "", "provider_error"],
    [413, "", "bad_request"],
    [422, "{}", "bad_request"],
    [403, error("content_policy_violation"), "bad_request"],
    [401, error("invalid_api_key"), "provider_error"],
    [403, error("unsupported_country"), "provider_error"],
    [302, "", "provider_error"],
    [409, "", "provider_error"],
    [500, "", "provider_error"],
    [502, "<html><body>Bad gateway</body></html>", "provider_error"],
    [503, error("overloaded"), "provider_error"],
    [529, "", "provider_error"],
    [408, "", "timeout"],
    [504, "", "timeout"],
    [200, "", "unreadable"],
    [200, "   ", "unreadable"],
    [200, "<!DOCTYPE html><title>login</title>", "unreadable"],
    [200, "�� not json", "unreadable"],
    [200, '{"choices":[{"mess', "unreadable"],
    [200, "[]", "unreadable"],
    [200, "null", "unreadable"],
    [200, '{"choices":1}', "unreadable"],
    [200, error(429, "upstream is busy"), "rate_limited"],
    [200, error("502", "upstream"), "provider_error"],
    [200, error("whatever", "upstream"), "provider_error"],
    [200, error(402, "credits"), "quota_exhausted"],
  ])("HTTP %i with %j is %s", (status, body, expected) => {
    expect(fault(status, body)?.status).toBe(expected);
  });

  it("with choices is a completion", () => {
    expect(fault(200, '{"choices":[]}')).toBeNull();
  });

  it("never repeats a key in its message", () => {
    const found = fault(401, error("invalid_api_key", "Incorrect API key provided: sk-proj-abcdef. See https://x.y"));
    expect(found?.message).toContain("invalid_api_key");
    expect(found?.message).not.toContain("abcdef");
    expect(fault(401, error("x", `bad ${"A1b2".repeat(10)}`))?.message).not.toContain("A1b2A1b2");
  });

  it("has a message of one short line however long the body", () => {
    const message = fault(500, error("x", "word word\n".repeat(10_000)))?.message ?? "";
    expect(message.length).toBeLessThanOrEqual(240);
    expect(message).not.toContain("\n");
  });
});

describe("a transport error", () => {
  it.each([
    [{ code: "ECONNRESET" }, "disconnected"],
    [{ code: "UND_ERR_SOCKET", name: "SocketError" }, "disconnected"],
    [{ code: "ENOTFOUND" }, "disconnected"],
    [{ name: "TypeError", cause: { code: "UND_ERR_HEADERS_TIMEOUT" } }, "timeout"],
    [{ code: "ETIMEDOUT" }, "timeout"],
    [{ name: "TimeoutError" }, "timeout"],
    ["text", "disconnected"],
    [null, "disconnected"],
  ])("%j is %s", (thrown, expected) => {
    expect(transportFault(thrown).status).toBe(expected);
  });
});

describe("Retry-After", () => {
  it.each([
    [{ "retry-after": "3" }, 3000],
    [{ "retry-after": "0.25" }, 250],
    [{ "retry-after-ms": "120", "retry-after": "3" }, 120],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:05 GMT" }, 5000],
    [{ "retry-after": "Wed, 31 Dec 2025 00:00:05 GMT" }, 0],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "-3" }, null],
    [{}, null],
  ])("%j is %s ms", (headers, expected) => {
    expect(retryAfterMs(headers, now)).toBe(expected);
  });
});

it("asking again cannot mend quota or a bad request", () => {
  expect(mayPass("quota_exhausted")).toBe(false);
  expect(mayPass("bad_request")).toBe(false);
  expect(mayPass("rate_limited")).toBe(true);
  expect(mayPass("unreadable")).toBe(true);
});
