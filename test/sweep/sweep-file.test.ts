import { describe, expect, it } from "vitest";
import { readModelsFile } from "../../lib/sweep/models-file.ts";
import { readSweepFile } from "../../lib/sweep/sweep-file.ts";

const least = {
  name: "s",
  packages: "packages",
  agents: ["mini"],
  models: [{ name: "m", provider: "p" }],
  supervisor: "checks",
  userSimulator: "none",
};
const wrong = (change: Record<string, unknown>): string[] =>
  readSweepFile({ ...least, ...change }, "sweep.yaml").problems.map(
    ({ field, found, expected }) => `${field}: ${found} -> ${expected}`,
  );

describe("a sweep file", () => {
  it("has its defaults", () => {
    const { sweep, problems } = readSweepFile(least, "sweep.yaml");
    expect(problems).toEqual([]);
    expect(sweep).toMatchObject({
      modelsFile: "models.yaml",
      tasks: ["*"],
      epochs: 1,
      limits: { usd: null, tokensPerAttempt: null, concurrency: 4 },
      retries: { infra: 2, rateLimit: 3 },
      seed: 0,
      order: "shuffled",
    });
  });

  it.each([
    [{ epoch: 2 }, "epoch: an unknown field -> `epochs`, the nearest known field"],
    [{ limits: { turnSecond: 1 } }, "limits.turnSecond: an unknown field -> `turnSeconds`, the nearest known field"],
    [
      { models: [{ name: "m", providr: "p" }] },
      "models.0.providr: an unknown field -> `provider`, the nearest known field",
    ],
    [{ agents: [{ nam: "mini" }] }, "agents.0.nam: an unknown field -> `name`, the nearest known field"],
    [
      { supervisor: { model: { name: "m", provider: "p" }, efort: "low" } },
      "supervisor.efort: an unknown field -> `effort`, the nearest known field",
    ],
    [
      { userSimulator: { model: { name: "m", provder: "p" } } },
      "userSimulator.model.provder: an unknown field -> `provider`, the nearest known field",
    ],
    [{ limits: { perModel: { m: 0 } } }, "limits.perModel.m: 0 -> 1 or more"],
    [{ retries: { infras: 1 } }, "retries.infras: an unknown field -> `infra`, the nearest known field"],
  ])("names the nearest field: %j", (change, expected) => {
    expect(wrong(change)).toContain(expected);
  });

  it.each([
    ["name", "a/b"],
    ["name", "x".repeat(65)],
    ["packages", ""],
    ["tasks", []],
    ["agents", []],
    ["models", []],
    ["models", ["gpt"]],
    ["epochs", 0],
    ["epochs", 1.5],
    ["supervisor", "none"],
    ["userSimulator", "checks"],
    ["limits", { usd: 0 }],
    ["limits", { usd: Number.NaN }],
    ["limits", { concurrency: 0 }],
    ["limits", { perModel: "many" }],
    ["limits", { turnSeconds: -1 }],
    ["order", "random"],
    ["seed", -1],
    ["compat", "other"],
    ["retries", { infra: 100 }],
  ])("refuses %s: %j", (field, value) => {
    const problems = readSweepFile({ ...least, [field]: value }, "sweep.yaml").problems;
    expect(problems).toHaveLength(1);
    expect(problems[0]?.field.startsWith(field)).toBe(true);
    expect(problems[0]?.expected).not.toBe("");
  });

  it("tells every problem at once", () => {
    expect(wrong({ epochs: 0, order: "x", seed: "y", extra: 1 })).toHaveLength(4);
  });

  it.each([[null], [[]], ["text"]])("refuses a document that is %j", (document) => {
    expect(readSweepFile(document, "sweep.yaml").sweep).toBeNull();
  });
});

describe("models.yaml", () => {
  const read = (providers: unknown) => readModelsFile({ providers }, "models.yaml");
  const chat = { api: "chat", baseUrl: "https://api.example.org/v1", keyName: "KEY" };

  it("takes every kind of provider", () => {
    const { models, problems } = read({
      real: {
        ...chat,
        rateLimits: { requestsPerMinute: 10 },
        price: { input: 1, output: 2 },
        models: { m: { price: { input: 1, cached: 0.1, output: 2 } }, n: null },
      },
      keyless: { api: "responses", baseUrl: "http://127.0.0.1:8000" },
      rehearsed: { api: "scripted", script: "scripts", models: { slow: { script: "slow" } } },
    });
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(Object.keys(models?.providers ?? {})).toEqual(["real", "keyless", "rehearsed"]);
  });

  it.each([
    [{ p: { ...chat, baseURL: "x" } }, "providers.p.baseURL", "`baseUrl`"],
    [{ p: { api: "scripted", scripts: "x" } }, "providers.p.scripts", "`script`"],
    [{ p: { ...chat, price: { inputs: 1, input: 1, output: 1 } } }, "providers.p.price.inputs", "`input`"],
    [{ p: { ...chat, models: { m: { prices: {} } } } }, "providers.p.models.m.prices", "`price`"],
    [{ p: { ...chat, api: "chatty" } }, "providers.p.api", "chat, responses, messages or scripted"],
    [{ p: { ...chat, baseUrl: "api.example.org" } }, "providers.p.baseUrl", "http"],
    [{ p: { ...chat, baseUrl: "file:///etc/passwd" } }, "providers.p.baseUrl", "http"],
    [{ p: { ...chat, price: { input: -1, output: 1 } } }, "providers.p.price.input", ""],
  ])("refuses %j", (providers, field, expected) => {
    const { models, problems } = read(providers);
    expect(models).toBeNull();
    expect(problems.map((problem) => problem.field)).toEqual([field]);
    expect(problems[0]?.expected).toContain(expected);
  });

  it("warns of limits that nobody keeps", () => {
    const { models, problems } = read({ p: { ...chat, rateLimits: { tokensPerMinute: 10 } }, q: chat });
    expect(models).not.toBeNull();
    expect(problems).toMatchObject([{ field: "providers.p.rateLimits", severity: "warning" }]);
  });

  it("refuses a key where its name belongs, and does not repeat it", () => {
    const { problems } = read({ p: { ...chat, keyName: "sk-secret-123" } });
    expect(problems).toMatchObject([
      { field: "providers.p.keyName", expected: expect.stringContaining("never the key") },
    ]);
    expect(JSON.stringify(problems)).not.toContain("secret");
  });
});
