import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { estimateInput } from "../../../lib/executor/gateway/estimate.ts";
import { Meter } from "../../../lib/executor/gateway/meter.ts";

const price = { input: 1, output: 2 };
const input = (tokens: number) => ({ least: tokens, likely: tokens });
const used = (tokens: number, output: number) => ({ input: tokens, cached: 0, output });

describe("the meter", () => {
  it("without caps admits everything as it is", () => {
    const meter = new Meter({ usd: null, tokens: null }, price);
    expect(meter.admit(input(1e9), null, 1)).toMatchObject({ kind: "admitted", maxOutput: null });
    expect(meter.admit(input(1e9), 7, 1)).toMatchObject({ kind: "admitted", maxOutput: 7 });
    expect(meter.reached).toBe(false);
  });

  it("shares what is left among the answers of one call", () => {
    const meter = new Meter({ usd: 0.002, tokens: null }, price);
    expect(meter.admit(input(0), null, 4)).toMatchObject({ maxOutput: 250 });
  });

  it("lets a call wait that only the calls in flight hold back", () => {
    const meter = new Meter({ usd: 0.001, tokens: null }, price);
    const first = meter.admit(input(100), null, 1);
    expect(meter.admit(input(100), null, 1).kind).toBe("wait");
    if (first.kind === "admitted") first.settle(used(100, 1));
    expect(meter.admit(input(100), null, 1).kind).toBe("admitted");
  });

  it("rather lets a call wait than cuts it for what others hold", () => {
    const meter = new Meter({ usd: null, tokens: 1000 }, price);
    const first = meter.admit(input(0), 600, 1);
    expect(meter.admit(input(0), 600, 1).kind).toBe("wait");
    if (first.kind === "admitted") first.settle(used(0, 10));
    expect(meter.admit(input(0), 600, 1)).toMatchObject({ kind: "admitted", maxOutput: 600 });
  });

  it("at a price of nothing is bound by tokens alone", () => {
    const meter = new Meter({ usd: 0.001, tokens: 1000 }, { input: 0, output: 0 });
    expect(meter.admit(input(100), null, 1)).toMatchObject({ kind: "admitted", maxOutput: 900 });
  });

  it("stays reached, however small the next call", () => {
    const meter = new Meter({ usd: 0.001, tokens: null }, price);
    expect(meter.admit(input(10_000), null, 1).kind).toBe("capped");
    expect(meter.admit(input(1), 1, 1).kind).toBe("capped");
  });

  it("is never passed by calls that keep to what they were given", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.00001, max: 0.01, noNaN: true }),
        fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: null }),
        fc.array(
          fc.record({ input: fc.nat(3000), wanted: fc.option(fc.integer({ min: 1, max: 5000 }), { nil: null }) }),
        ),
        (usd, tokens, calls) => {
          const meter = new Meter({ usd, tokens }, price);
          for (const call of calls) {
            const admission = meter.admit(input(call.input), call.wanted, 1);
            if (admission.kind !== "admitted") continue;
            admission.settle(used(call.input, admission.maxOutput ?? call.wanted ?? 100));
          }
          expect(meter.spent.usd).toBeLessThanOrEqual(usd + 1e-9);
          if (tokens !== null) expect(meter.spent.input + meter.spent.output).toBeLessThanOrEqual(tokens);
        },
      ),
    );
  });
});

describe("the estimate of an input", () => {
  it("has a least below and a likely near what tokenizers say", () => {
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    const { least, likely } = estimateInput({ messages: [{ role: "user", content: text }] });
    // About ten tokens a sentence.
    expect(least).toBeLessThan(1000);
    expect(likely).toBeGreaterThan(1000);
    expect(likely).toBeLessThan(1400);
  });

  it("does not take an image for its bytes", () => {
    const url = `data:image/png;base64,${"A".repeat(4_000_000)}`;
    const { least, likely } = estimateInput({ messages: [{ content: [{ type: "image_url", image_url: { url } }] }] });
    expect(least).toBe(0);
    expect(likely).toBeLessThan(2000);
  });

  it("ends on whatever it is given", () => {
    let deep: unknown = "x";
    for (let n = 0; n < 10_000; n++) deep = [deep];
    expect(() => estimateInput({ messages: deep, tools: null })).not.toThrow();
  });
});
