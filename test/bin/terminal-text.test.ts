import { expect, it } from "vitest";
import { harmless } from "../../bin/terminal-text.ts";

it("signs that a terminal obeys are written out, others stay", () => {
  const given = "a\u001b[31mred\u0007\r\u009b2J\u202eback";
  expect(harmless(given)).toBe("a\\u001b[31mred\\u0007\\u000d\\u009b2J\\u202eback");
  expect(harmless("line\n\ttab 数独 é 😀")).toBe("line\n\ttab 数独 é 😀");
});

it("inside of JSON they are the same string", () => {
  const value = { name: "x\u009b\u2066\u0000y" };
  expect(JSON.parse(harmless(JSON.stringify(value)))).toEqual(value);
});
