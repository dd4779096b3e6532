import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseChecks } from "../../../lib/roles/checks/schema.ts";
import { checksOf, repository } from "./turn-of-files.ts";

const faults = (text: string): string[] => {
  const parsed = parseChecks(text, "checks.yaml");
  return Array.isArray(parsed) ? parsed.map(({ field, found, expected }) => `${field}: ${found} / ${expected}`) : [];
};
const one = (check: string): string => `checkpoints: [{ id: CP1, weight: 1, check: ${check} }]`;
const expression = (text: string): string =>
  one(
    `{ kind: expression, files: { answer: { file: results/a.json, as: json } }, expression: ${JSON.stringify(text)} }`,
  );

describe("checks.yaml", () => {
  it("is read with every kind", () => {
    const checks = checksOf(`
checkpoints:
  - { id: a, weight: 0.1, check: { kind: file_exists, file: results/a } }
  - { id: b, weight: 0.1, check: { kind: json_valid, file: results/a.json, required: [x] } }
  - { id: c, weight: 0.1, check: { kind: number_within, file: results/a.json, value: $file.x, bands: [{ min: 1, max: 2, credit: 1 }] } }
  - { id: d, weight: 0.1, check: { kind: set_equals, file: results/a.csv, as: csv, value: $file.name, expected: [a, b], partial: true } }
  - { id: e, weight: 0.1, check: { kind: set_equals, file: results/a.json, value: $file, expected: { file: hidden/references/b.json, value: $file } } }
  - { id: f, weight: 0.1, check: { kind: text_matches, file: results/a.txt, pattern: "^a+$", flags: im } }
  - { id: g, weight: 0.1, check: { kind: sqlite_query, file: results/a.db, query: "select 1", rows: [[1]] } }
  - { id: h, weight: 0.1, check: { kind: tool_used, tool: bash, max: 3 } }
  - { id: i, weight: 0.2, judge: true }
caps: [{ id: k, max: 0.5, when: { kind: file_exists, file: results/b, absent: true } }]
`);
    expect(checks.checkpoints).toHaveLength(9);
  });

  it("of this repository can all be read", () => {
    const files = readdirSync(join(repository, "checks"));
    expect(files).toHaveLength(5);
    for (const file of files) {
      expect([file, faults(readFileSync(join(repository, "checks", file), "utf8"))]).toEqual([file, []]);
    }
  });

  const cases: [string, string, RegExp][] = [
    ["no YAML", "checkpoints: [", /^: broken YAML at line 1/],
    ["no object", "- a", /expected|an object with `checkpoints`/],
    ["no checkpoints", "caps: []", /^checkpoints: nothing \/ a list/],
    ["an unknown field", `${one("{ kind: tool_used, tool: a }")}\ncap: []`, /^cap: an unknown field \/ `caps`/],
    [
      "an unknown kind",
      one("{ kind: file_exist, file: results/a }"),
      /kind: "file_exist" \/ `file_exists`, the nearest/,
    ],
    ["a kind nobody knows", one("{ kind: magic }"), /kind: "magic" \/ one of expression, file_exists/],
    ["a kind from a prototype", one("{ kind: constructor }"), /kind: "constructor" \/ one of/],
    ["interception", one("{ kind: intercepted, rule: x }"), /intercepted.*recording of the intercepted web/],
    [
      "an unknown field of a kind",
      one("{ kind: file_exists, path: results/a, file: results/a }"),
      /check\.path: an unknown field/,
    ],
    ["a path that leaves", one("{ kind: file_exists, file: results/../x }"), /check\.file.*no `\.\.`/],
    ["a path from nowhere", one("{ kind: file_exists, file: /etc/passwd }"), /begins with results\//],
    ["weights that do not sum to 1", "checkpoints: [{ id: a, weight: 0.5, judge: true }]", /weights that sum to 0\.5/],
    [
      "a weight that is no share",
      "checkpoints: [{ id: a, weight: 100, judge: true }]",
      /weight: 100 \/ a number from 0 to 1/,
    ],
    [
      "ids that stand twice",
      "checkpoints: [{ id: a, weight: 0.5, judge: true }, { id: a, weight: 0.5, judge: true }]",
      /a a second time/,
    ],
    ["neither check nor judge", "checkpoints: [{ id: a, weight: 1 }]", /neither check nor judge/],
    [
      "both check and judge",
      "checkpoints: [{ id: a, weight: 1, judge: true, check: { kind: tool_used, tool: a } }]",
      /both check and judge/,
    ],
    ["judge: false", "checkpoints: [{ id: a, weight: 1, judge: false }]", /judge: false \/ true/],
    ["a syntax error", expression("$answer.x ="), /expression: a syntax error at character \d+/],
    ["a misspelt file", expression("$anwser.x = 1"), /\$anwser, which nothing gives \/ `\$answer`/],
    ["a misspelt function", expression("$cuont($answer) = 1"), /\$cuont.*`\$count`/],
    ["a function of chance", expression("$random() < 1"), /\$random \/ .*refused/],
    ["a function that runs evidence", expression("$eval($answer.x)"), /\$eval \/ .*refused/],
    [
      "a broken pattern",
      one('{ kind: text_matches, file: results/a, pattern: "(" }'),
      /pattern: Invalid regular expression/,
    ],
    ["flags that keep state", one("{ kind: text_matches, file: results/a, pattern: a, flags: g }"), /flags: "g"/],
    [
      "a query that writes",
      one('{ kind: sqlite_query, file: results/a, query: "delete from t", rows: [] }'),
      /query.*one SELECT/,
    ],
    [
      "two queries",
      one('{ kind: sqlite_query, file: results/a, query: "select 1; attach x", rows: [] }'),
      /query.*one SELECT/,
    ],
    ["min above max", one("{ kind: tool_used, tool: a, max: 0 }"), /min 1 above max 0/],
    [
      "bands upside down",
      one("{ kind: number_within, file: results/a, value: $file, bands: [{ min: 2, max: 1, credit: 1 }] }"),
      /min <= max/,
    ],
  ];
  for (const [name, text, expected] of cases) {
    it(`is refused with ${name}`, () => {
      expect(faults(text).join("\n")).toMatch(expected);
    });
  }

  it("tells everything that is wrong at once", () => {
    const found = faults(
      "checkpoints: [{ id: '', weight: 2, chek: 1 }, { id: b, weight: 0.1, check: { kind: x } }]\ncaps: 3",
    );
    expect(found.length).toBeGreaterThanOrEqual(5);
  });

  it("lets an expression bind names of its own", () => {
    expect(
      faults(
        expression(
          "($f := function($x) { $x + $sum($answer.y) }; $map($answer.z, function($v, $i) { $f($v) + $i })[0] = 1)",
        ),
      ),
    ).toEqual([]);
    expect(faults(expression("$answer.items@$i.parts#$at[$i.id = $at].x = $$"))).toEqual([]);
  });
});
