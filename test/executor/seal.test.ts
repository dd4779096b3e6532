import { describe, expect, it } from "vitest";
import { SealError, seal, unseal } from "../../lib/executor/seal.ts";
import type { SealedMessage } from "../../lib/executor/sealed-message.ts";
import { aLine } from "../support/manifest-line.ts";

const line = aLine();
const message: SealedMessage = {
  v: 1,
  sweep: line.sweep,
  attempt: line.attempt,
  try: 1,
  turn: 1,
  epoch: 1,
  deadline: "2026-01-01T00:00:00Z",
  request: { kind: "task", text: "Löse das Rätsel 数独" },
  agent: line.agent,
  model: line.model,
  package: { task: line.task, digest: line.digest },
  env: { TOKEN: "private" },
  credentials: { kind: "local", objects: "/runs/objects", tokens: "/tmp/t.sock" },
  taskToken: "token",
  limits: { turnSeconds: 60, totalBinds: false, noStartSeconds: 20, stallSeconds: 30, usd: 1, tokens: null },
  secondsUsed: 0,
};
const key = Buffer.alloc(32, 7).toString("base64");
const iv = new Uint8Array(12).fill(3);

describe("sealed messages", () => {
  it("open with the key that sealed them, and hold nothing in the clear", () => {
    const sealed = seal(key, message, iv);
    expect(unseal(key, sealed)).toEqual(message);
    expect(Buffer.from(sealed).toString("latin1")).not.toContain("private");
    expect(Buffer.from(sealed).toString("latin1")).not.toContain(line.attempt);
  });

  it("do not open with another try's key", () => {
    expect(() => unseal(Buffer.alloc(32, 8).toString("base64"), seal(key, message, iv))).toThrow(SealError);
  });

  it("do not open when any byte was altered", () => {
    const sealed = seal(key, message, iv);
    for (const at of [0, 1, 13, 29, sealed.length - 1]) {
      const altered = Uint8Array.from(sealed);
      altered[at] = (altered[at] ?? 0) ^ 1;
      expect(() => unseal(key, altered), `byte ${at}`).toThrow(SealError);
    }
  });

  it("do not open when cut, empty or foreign", () => {
    const sealed = seal(key, message, iv);
    for (const bytes of [sealed.subarray(0, 20), sealed.subarray(0, -1), new Uint8Array(), Buffer.from("<html>")]) {
      expect(() => unseal(key, bytes)).toThrow(SealError);
    }
  });

  it("refuse keys and IVs of the wrong length", () => {
    expect(() => seal("c2hvcnQ=", message, iv)).toThrow(/key has 32 bytes/);
    expect(() => seal(key, message, iv.subarray(1))).toThrow(/IV has 12 bytes/);
  });
});
