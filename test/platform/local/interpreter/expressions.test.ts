import fc from "fast-check";
import jsonata from "jsonata";
import { describe, expect, it } from "vitest";
import { type Json, plain } from "../../../../lib/platform/local/interpreter/data.ts";
import { direct, notDirect } from "../../../../lib/platform/local/interpreter/direct-evaluation.ts";
import { compile, evaluate } from "../../../../lib/platform/local/interpreter/expressions.ts";
import { ScriptedRandom, start } from "./setting.ts";

const ports = { clock: { now: () => start }, random: new ScriptedRandom() };
const scope = {
  variables: new Set(["a", "b", "list"]),
  states: new Set(["input", "context"] as const),
};
type Given = Record<string, unknown>;

async function value(template: Json, given: Given = {}): Promise<Json> {
  const { states = {}, ...variables } = given;
  return (await evaluate(compile(template, scope, ports), { ...variables, states }, "Field")).value;
}

describe("a template", () => {
  it("is taken as it stands but for strings between {% and %}", async () => {
    const template = { n: 1, s: "text {% no %}.", deep: [{ x: "{% $a + 1 %}" }, null, true], "{% key %}": "" };
    expect(await value(template, { a: 1 })).toEqual({ ...template, deep: [{ x: 2 }, null, true] });
  });

  it.each([
    ["{% $a.missing %}", "nothing"],
    ["{% $error('no') %}", "no"],
    ["{% $a + 'x' %}", "right side"],
    ["{% $string %}", "function"],
    ["{% {'f': $sum} %}", "function"],
    ["{% function($x){$x} %}", "function"],
    ["{% 1/0 %}", "Infinity"],
    ["{% $list.$missing($) %}", null],
  ])("%s fails as States.QueryEvaluationError", async (template, said) => {
    if (said === null) return expect(() => compile(template, scope, ports)).toThrow();
    await expect(value(template, { a: 1, list: [1] })).rejects.toMatchObject({
      error: "States.QueryEvaluationError",
      reason: expect.stringContaining(said) as string,
    });
  });

  it("measures what it gives in bytes of JSON", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (json) => {
        const copy = JSON.parse(JSON.stringify(json)) as Json;
        expect(plain(copy, "x").bytes).toBe(Buffer.byteLength(JSON.stringify(copy)));
        expect(plain(copy, "x").value).toEqual(copy);
      }),
      { numRuns: 300 },
    );
  });

  it("gives plain arrays, without the marks of JSONata's sequences", async () => {
    const list = (await value("{% $list[$ > 1] %}", { list: [1, 2, 3] })) as unknown[];
    expect(Object.keys(list)).toEqual(["0", "1"]);
  });
});

describe("functions that Step Functions adds", () => {
  it.each<[string, Json]>([
    ["$partition([1,2,3,4,5], 2)", [[1, 2], [3, 4], [5]]],
    ["$range(0, 10, 4)", [0, 4, 8]],
    ["$range(3, 1, -1)", [3, 2, 1]],
    ["$hash('abc', 'SHA-256')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["$hash('abc', 'MD5')", "900150983cd24fb0d6963f7d28e17f72"],
    ["$hash('', 'SHA-1')", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
    ["$parse('{\"a\": [1, null]}')", { a: [1, null] }],
    ["$random()", 0.5],
    ["$random(7) = $random(7)", true],
    ["$random(7) >= 0 and $random(7) < 1 and $random(7) != $random(8)", true],
    ["$contains($uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)", true],
    ["$now()", new Date(start).toISOString()],
    ["$millis()", start],
  ])("%s", async (text, expected) => {
    expect(await value(`{% ${text} %}`)).toEqual(expected);
  });

  it.each(["$partition([1], 0)", "$range(0, 1, 0)", "$range(0, 5000, 1)", "$hash('a', 'CRC')", "$parse('{')"])(
    "%s is an error",
    async (text) => {
      await expect(value(`{% ${text} %}`)).rejects.toMatchObject({ error: "States.QueryEvaluationError" });
    },
  );
});

describe("an expression that cannot work is refused when it is loaded", () => {
  it.each([
    ["{% $eval('1') %}", "$parse"],
    ["{% $shuffle($list) %}", "random"],
    ["{% $c %}", "$c is neither"],
    ["{% $lenght($a) %}", "$lenght is neither"],
    ["{% $a.b[$c = 1] %}", "$c is neither"],
    ["{% ($x := 1; $y) %}", "$y is neither"],
    ["{% $map($list, function($v) { $v + $w }) %}", "$w is neither"],
    ["{% $states.result %}", "$states.result has no value"],
    ["{% $states.errorOutput.Error %}", "$states.errorOutput has no value"],
    ["{% $states.inputs %}", "$states has no inputs"],
    ["{% field %}", "the field field stands alone"],
    ["{% a.b %}", "the field a stands alone"],
    ["{% $ %}", "no value here"],
    ["{% $$.a %}", "no value here"],
    ["{% $list[$$.a] %}", "no value here"],
    ["{% * %}", "stands alone"],
    ["{% $a + %}", "no JSONata"],
    ["{% $a", "{%"],
    [" {% $a %}", "%}"],
    ["{% $a %} ", "{%"],
  ])("%s", (template, said) => {
    expect(() => compile([template], scope, ports)).toThrow(said);
  });

  it("so is a field of JSONPath", () => {
    expect(() => compile({ "x.$": "$.a" }, scope, ports)).toThrow("JSONPath");
  });

  it.each([
    "$list[$ > 1]",
    "$list.(field + $a)",
    "$list.{'k': field}",
    "$list^(>field).x",
    "$list@$v.($v.x)",
    "$list#$i[$i = 0]",
    "$a ~> |$|{'x': 1}|",
    "($x := 1; $f := function($n) { $n + $x }; $f(2))",
    "$map($list, function($v, $i) { $v.x + $i })",
    "$reduce($list, function($p, $v) { $p + $v })",
    "$list{name: $sum(n)}",
    "$a ? $b : null",
    "$exists($states.input.a) and $states.context.State.Name = 'x'",
    "$list.**.x",
    "$a.`odd name`",
  ])("%s is not", (text) => {
    expect(() => compile(`{% ${text} %}`, scope, ports)).not.toThrow();
  });
});

describe("direct evaluation", () => {
  const texts = [
    "$a",
    "$a.b",
    "$a.b.c",
    "$a.list",
    "$a.list.x",
    "$a = $b",
    "$a.b != $b",
    "$a < $b",
    "$a.b >= $b.b",
    "$a + $b",
    "$a.b * 2 - 1",
    "$a & '/' & $b",
    "$a and $b",
    "$exists($a.b) and $a.b > 2",
    "$exists($a.b) or $a.b > 2",
    "$not($a)",
    "$string($a.b)",
    "$a.b ? $a : $b",
    "$a.b = null ? '' : $a.b",
    "$exists($a.b) ? $a.b : 1",
    "{'x': $a.b, 'y': [$b], 'z': null}",
    "[$a, [$b], 1, $a.b]",
    "($a.b)",
    "-1",
    "$a.b.constructor",
  ];

  it.each(texts)("of %s gives what JSONata gives, or leaves it to it", async (text) => {
    const full = jsonata(text);
    const quick = direct(full.ast());
    expect(quick).not.toBeNull();
    const scalar = fc.constantFrom<unknown>(
      undefined,
      null,
      true,
      false,
      0,
      1,
      2.5,
      -3,
      1e300,
      "",
      "a",
      "b",
      [],
      [1],
      {},
    );
    const leaf = fc.oneof(
      scalar,
      fc.record({ b: scalar, list: scalar }, { requiredKeys: [] }),
      fc.array(fc.constantFrom(1, "a", null)),
    );
    const given = fc.oneof(leaf, fc.record({ b: leaf, list: leaf }, { requiredKeys: [] }));
    await fc.assert(
      fc.asyncProperty(given, given, async (a, b) => {
        const bindings = { a, b, states: {} };
        const found = quick?.(bindings);
        if (found === notDirect) return;
        const expected: unknown = await full.evaluate(undefined, bindings);
        // As JSON, which is what becomes of both; undefined stays undefined.
        expect(typeof found === "function" ? "function" : JSON.stringify(found)).toEqual(
          typeof expected === "function" ? "function" : JSON.stringify(expected),
        );
      }),
      { numRuns: 300 },
    );
  });

  it("covers what control flow is made of", () => {
    const given = { a: { b: 3 }, b: 1, states: { input: {} } };
    const covered = (text: string): unknown => direct(jsonata(text).ast())?.(given);
    expect(covered("$a.b + 1")).toBe(4);
    expect(covered("$exists($states.input.round) ? $states.input.round : 1")).toBe(1);
    expect(covered("$a.b > 2 and $b = 1")).toBe(true);
  });
});
