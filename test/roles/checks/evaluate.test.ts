import { describe, expect, it } from "vitest";
import { ChecksBrokenError, evaluateChecks } from "../../../lib/roles/checks/evaluate.ts";
import { checksOf, type Files, inThread, readerOf } from "./turn-of-files.ts";

const facts = { turn: 2, toolCounts: { bash: 3 } };

/** Credit and note of one check over files. */
async function credit(check: string, files: Files): Promise<[number, string | undefined]> {
  const checks = checksOf(`checkpoints: [{ id: CP1, weight: 1, check: ${check} }]`);
  const turn = await evaluateChecks(checks, readerOf(files), facts, inThread);
  return [turn.checkpoints[0]!.credit, turn.checkpoints[0]!.note];
}
const expression = (text: string, as = "json"): string =>
  `{ kind: expression, files: { a: { file: results/a, as: ${as} } }, expression: ${JSON.stringify(text)} }`;

describe("kinds of checks", () => {
  const cases: [string, string, Files, number][] = [
    ["a file that is there", "{ kind: file_exists, file: results/a }", { "results/a": "x" }, 1],
    ["a file that is empty", "{ kind: file_exists, file: results/a }", { "results/a": "" }, 0],
    ["a file that is missing", "{ kind: file_exists, file: results/a }", {}, 0],
    ["a file that must not be", "{ kind: file_exists, file: results/a, absent: true }", {}, 1],
    ["JSON", "{ kind: json_valid, file: results/a, required: [x] }", { "results/a": '{"x":null}' }, 1],
    ["JSON that lacks", "{ kind: json_valid, file: results/a, required: [toString] }", { "results/a": "{}" }, 0],
    ["no JSON", "{ kind: json_valid, file: results/a }", { "results/a": "{x}" }, 0],
    ["an optimum", band("$file.x"), { "results/a": '{"x":1.5}' }, 1],
    ["a number near", band("$file.x"), { "results/a": '{"x":3}' }, 0.5],
    ["a number far", band("$file.x"), { "results/a": '{"x":9}' }, 0],
    ["a number as text", band("$file.x"), { "results/a": '{"x":"1.5"}' }, 0],
    ["an infinite number", band("$file.x"), { "results/a": '{"x":1e309}' }, 0],
    ["equal sets", set("[b, a]"), { "results/a": "name\na\n b \n" }, 1],
    ["sets of which half is there", set("[a, c, d]"), { "results/a": "name\na\nb\n" }, 0.25],
    ["no set", set("[a]"), { "results/a": "" }, 0],
    [
      "a text that matches",
      "{ kind: text_matches, file: results/a, pattern: '^b', flags: m }",
      { "results/a": "a\nb" },
      1,
    ],
    [
      "a text that must not match",
      "{ kind: text_matches, file: results/a, pattern: b, absent: true }",
      { "results/a": "ab" },
      0,
    ],
    ["a tool that was used", "{ kind: tool_used, tool: bash, min: 3 }", {}, 1],
    ["a tool that was used too much", "{ kind: tool_used, tool: bash, max: 2 }", {}, 0],
    ["a tool that was not used", "{ kind: tool_used, tool: constructor }", {}, 0],
  ];
  for (const [name, check, files, expected] of cases) {
    it(`${name}: ${expected}`, async () => {
      expect((await credit(check, files))[0]).toBe(expected);
    });
  }
  function band(value: string): string {
    return `{ kind: number_within, file: results/a, value: ${value}, bands: [{ min: 1, max: 2, credit: 1 }, { min: 0, max: 4, credit: 0.5 }] }`;
  }
  function set(expected: string): string {
    return `{ kind: set_equals, file: results/a, as: csv, value: $file.name, expected: ${expected}, partial: true }`;
  }
});

describe("hostile deliverables", () => {
  const cases: [string, string, string | Uint8Array, number][] = [
    ["1e309 as a credit", "$a.score", '{"score":1e309}', 0],
    ["a credit above 1", "$a.score", '{"score":2}', 0],
    ["a credit as text", "$a.done", '{"done":"yes"}', 0],
    ["deep JSON", "$exists($a)", "[".repeat(50_000) + "]".repeat(50_000), 0],
    ["__proto__ as a name", "$exists($a.x)", '{"__proto__":{"x":1}}', 0],
    ["a prototype's members", "$exists($a.constructor) or $exists($a.toString)", "{}", 0],
    [
      "names of prototypes as data",
      "$a.constructor = 1 and $a.hasOwnProperty = 2",
      '{"constructor":1,"hasOwnProperty":2}',
      1,
    ],
    ["half a surrogate pair", "$length($a.x) > 0", '{"x":"\\ud800"}', 1],
    ["NUL and 0xFF", "$exists($a)", Uint8Array.from([0x5b, 0, 0xff, 0x5d]), 0],
    ["numbers as text", "$a.x + 1 = 2", '{"x":"1"}', 0],
    ["a byte order mark", "$a.x = 1", '\ufeff{"x":1}', 1],
  ];
  for (const [name, text, file, expected] of cases) {
    it(`${name}: ${expected}`, async () => {
      expect((await credit(expression(text), { "results/a": file }))[0]).toBe(expected);
    });
  }

  it("a file too large to read is 0, with a note", async () => {
    const [value, note] = await credit(expression("true"), { "results/a": Buffer.alloc(9_000_000, " ") });
    expect(value).toBe(0);
    expect(note).toMatch(/9000000 bytes/);
  });

  it("a CSV of too many cells is 0, with a note", async () => {
    const [value, note] = await credit(expression("true", "csv"), { "results/a": ",".repeat(1_500_000) });
    expect(value).toBe(0);
    expect(note).toMatch(/cells/);
  });

  it("CSV is read with quotes, and hostile names are data", async () => {
    const csv = 'name,__proto__,"a ""b"""\r\n"x, y","1\n2",z\n\n';
    expect(
      await credit(expression('$a[0].name = "x, y" and $a[0]."a \\"b\\"" = "z" and $count($a) = 1', "csv"), {
        "results/a": csv,
      }),
    ).toEqual([1, undefined]);
  });
});

describe("whose fault a failure is", () => {
  const broken = async (check: string, files: Files): Promise<string> => {
    const error = await credit(check, files).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ChecksBrokenError);
    return (error as Error).message;
  };

  it("a missing deliverable is the agent's", async () => {
    expect(await credit(expression("true"), {})).toEqual([0, "results/a is not there"]);
  });

  it("a failure that any deliverable would give is ours", async () => {
    expect(await broken(expression('1 + "a"'), { "results/a": "{}" })).toMatch(/checkpoint CP1.*number/);
    expect(await broken(expression("$substring(1)"), { "results/a": "{}" })).toMatch(/CP1/);
  });

  it("a failure that this deliverable gives is the agent's", async () => {
    const [value, note] = await credit(expression("$sum($a.x) = 3"), { "results/a": '{"x":["1"]}' });
    expect(value).toBe(0);
    expect(note).toMatch(/the check failed/);
  });

  it("a missing or unreadable file of the package is ours", async () => {
    const truth = "{ kind: set_equals, file: results/a, value: $file, expected: { file: hidden/t, value: $file } }";
    expect(await broken(truth, { "results/a": "1" })).toMatch(/hidden\/t is not there, and it belongs to the package/);
    expect(await broken(truth, { "results/a": "1", "hidden/t": "x" })).toMatch(/hidden\/t can not be read as json/);
  });

  it("nothing is 0, with a note", async () => {
    expect(await credit(expression("$a.x.y"), { "results/a": "{}" })).toEqual([0, "the expression gave nothing"]);
  });
});

describe("a turn's checks", () => {
  const text = `
checkpoints:
  - { id: CP1, weight: 0.5, check: { kind: json_valid, file: results/a.json } }
  - { id: CP2, weight: 0.5, judge: true }
caps:
  - { id: no_b, max: 0.7, when: { kind: file_exists, file: results/b, absent: true } }
  - { id: bad_a, max: 0.3, when: { kind: expression, files: { a: { file: results/a.json, as: json } }, expression: "$a.x + 1 > 5" } }
`;
  const turn = (files: Files) => evaluateChecks(checksOf(text), readerOf(files), facts, inThread);

  it("give credits with their evidence, what is left to a judge, and every cap that fired", async () => {
    expect(await turn({ "results/a.json": '{"x":9}' })).toEqual({
      checkpoints: [{ id: "CP1", weight: 0.5, credit: 1, decidedBy: "check", evidence: ["turn-02/results/a.json"] }],
      judged: [{ id: "CP2", weight: 0.5 }],
      caps: [
        { id: "no_b", max: 0.7, note: null },
        { id: "bad_a", max: 0.3, note: null },
      ],
    });
    expect((await turn({ "results/a.json": '{"x":1}', "results/b": "b" })).caps).toEqual([]);
  });

  it("a cap is not escaped by a file that makes its check fail, and does not fire for a missing one", async () => {
    expect((await turn({ "results/a.json": '{"x":"9"}', "results/b": "b" })).caps).toMatchObject([{ id: "bad_a" }]);
    expect((await turn({ "results/b": "b" })).caps).toEqual([]);
  });
});
