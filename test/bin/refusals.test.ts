import { describe, expect, it } from "vitest";
import { refuseWhatFails } from "../../bin/sweeps/refusals.ts";
import type { ModelChoice } from "../../lib/sweep/manifest-line.ts";
import { aLine } from "../support/manifest-line.ts";

const real = (change: Partial<Extract<ModelChoice, { keyName: unknown }>> = {}): ModelChoice => ({
  name: "model-r",
  provider: "lab",
  api: "chat",
  baseUrl: "https://models.example/v1",
  keyName: null,
  price: { input: 1, output: 2 },
  ...change,
});

describe("what stops a sweep before anything is paid for", () => {
  it("a judge's key that is not set, although the executor needs none", () => {
    const judge = real({ keyName: "PROCTOR_TEST_KEY_THAT_NOBODY_SETS" });
    const line = aLine({ supervisor: { kind: "model", model: judge, effort: "high" } });
    expect(() => refuseWhatFails("night", [line, line])).toThrow(
      "error: night: models: found no value of PROCTOR_TEST_KEY_THAT_NOBODY_SETS",
    );
  });

  it("an API that is not spoken yet, of any role", () => {
    const line = aLine({ userSimulator: { kind: "model", model: real({ api: "messages" }) } });
    expect(() => refuseWhatFails("night", [line])).toThrow("the api `messages`");
  });

  it("nothing, where all that is needed is there", () => {
    expect(() => refuseWhatFails("night", [aLine({ model: real() })])).not.toThrow();
  });
});
