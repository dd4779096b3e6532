import { describe, expect, it } from "vitest";
import { Slots } from "../../../bin/engine/slots.ts";

const never = new AbortController().signal;

/** What a promise has come to, without waiting for it. */
async function now<T>(promise: Promise<T>): Promise<T | "waits"> {
  const later = new Promise<"waits">((resolve) => setImmediate(() => resolve("waits")));
  return Promise.race([promise, later]);
}

describe("places for attempts", () => {
  it("are given by turn, as many as there are", async () => {
    const slots = new Slots(2);
    const first = await slots.take(never);
    await slots.take(never);
    const third = slots.take(never);
    const fourth = slots.take(never);
    expect(await now(third)).toBe("waits");
    first!();
    expect(await now(third)).toBeTypeOf("function");
    expect(await now(fourth)).toBe("waits");
  });

  it("come back once, however often they are given back", async () => {
    const slots = new Slots(1);
    const first = await slots.take(never);
    first!();
    first!();
    await slots.take(never);
    expect(await now(slots.take(never))).toBe("waits");
  });

  it("are not lost on who stops waiting", async () => {
    const slots = new Slots(1);
    const first = await slots.take(never);
    const bored = new AbortController();
    const second = slots.take(bored.signal);
    const third = slots.take(never);
    bored.abort();
    expect(await now(second)).toBeNull();
    first!();
    expect(await now(third)).toBeTypeOf("function");
  });

  it("are not given after the end, and who waits learns of it", async () => {
    const slots = new Slots(1);
    await slots.take(never);
    const second = slots.take(never);
    slots.close();
    expect(await now(second)).toBeNull();
    expect(await now(slots.take(never))).toBeNull();
  });
});
