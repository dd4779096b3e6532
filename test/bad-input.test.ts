/** docs/bad-input.md names a test for each kind of bad input: this holds it against the tests that there are. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const rows = readFileSync(new URL("../docs/bad-input.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|") && line.includes(".test.ts"))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));

it("has rows", () => expect(rows.length).toBeGreaterThan(30));

it.each(rows.map((cells) => [cells[3] ?? "", cells[4] ?? ""]))("%s: %s", (file, title) => {
  expect(title).not.toBe("");
  expect(readFileSync(new URL(file, import.meta.url), "utf8")).toContain(title);
});
