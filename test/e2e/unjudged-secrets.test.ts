/** What goes wrong in judging is told in a row that everybody reads: in our words, never in those of what is hidden. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { type ModelServer, modelServer } from "./model-server.ts";
import { judged, rubric, type SweepFolder, storedRows, sweepFolder } from "./sweep-folder.ts";

const canary = "canary-hidden-2b86d0";
const check = (files: Record<string, string>, expression: string) =>
  stringify({
    checkpoints: [
      {
        id: "CP1",
        weight: 1,
        check: {
          kind: "expression",
          files: Object.fromEntries(
            Object.entries(files).map(([name, as]) => [name, { file: `hidden/references/${name}.json`, as }]),
          ),
          expression,
        },
      },
    ],
  });

let folder: SweepFolder;
let server: ModelServer;
let rows: ReturnType<typeof storedRows>;
let said = "";

beforeAll(async () => {
  folder = sweepFolder();
  // A judge that quotes what it was shown, wherever it can.
  server = await modelServer((asked) => {
    const task = /Do ([a-z_]+)\./.exec(asked.body)?.[1];
    switch (task) {
      case "refuses":
        return { status: 400, body: { error: { code: "content_filter", message: `flagged: ${canary}` } } };
      case "refuses_key":
        return { status: 402, body: { error: { code: canary, message: canary } } };
      case "garbage":
        return { text: `${canary} is what I think` };
      case "ids":
        return { text: JSON.stringify(judged({ [canary]: 1 }).json) };
      default:
        return {
          text: JSON.stringify(
            judged(
              { CP1: 1, CP2: 1 },
              {
                checkpoints: [
                  { id: "CP1", credit: 1, evidence: [canary] },
                  { id: "CP2", credit: 0 },
                ],
              },
            ).json,
          ),
        };
    }
  });
  const add = (id: string, files: Record<string, string> = {}) =>
    folder.packages.add(id, {
      task: `Do ${id}.`,
      fields: "codex: {max_user_followups: 0}",
      files: { "references/eval_rule.md": rubric(canary), ...files },
    });
  for (const id of ["refuses", "refuses_key", "garbage", "ids", "pointers"]) add(id);
  add("broken_json", {
    "references/truth.json": `${canary} {`,
    "references/checks.yaml": check({ truth: "json" }, "$truth.a = 1"),
  });
  add("broken_value", {
    "references/truth.json": JSON.stringify({ a: canary }),
    "references/checks.yaml": check({ truth: "json" }, "$number($truth.a) = 1"),
  });
  add("broken_error", {
    "references/truth.json": JSON.stringify({ a: canary }),
    "references/checks.yaml": check({ truth: "json" }, "$error($truth.a)"),
  });
  folder.script("quiet", "executor", [{ text: "I have finished the request." }]);
  const file = folder.sweep(
    {
      models: [{ name: "quiet", provider: "scripted" }],
      supervisor: { model: { name: "quoting", provider: "real" } },
      limits: { concurrency: 4 },
    },
    { real: { api: "chat", baseUrl: server.baseUrl } },
  );
  for (const args of [
    ["run", file],
    ["report", "s"],
    ["report", "s", "--json"],
    ["status", "s"],
  ]) {
    const ended = await folder.proctor(args);
    said += ended.stdout + ended.stderr;
  }
  rows = storedRows(folder);
}, 60_000);
afterAll(async () => {
  await server.close();
  folder.remove();
});

it("every one of them is unjudged, with a reason and the place of the rest", () => {
  expect(rows.map(({ task, status }) => `${task} ${status}`).sort()).toEqual(
    ["broken_error", "broken_json", "broken_value", "garbage", "ids", "pointers", "refuses", "refuses_key"].map(
      (task) => `${task} unjudged`,
    ),
  );
  for (const { reason } of rows)
    expect(reason).toMatch(/why is in hidden\/decisions\/\w+\/01\/turn-01\/unjudged-\w+\.json/);
  const reasonOf = (name: string) => rows.find(({ task }) => task === name)?.reason;
  expect(reasonOf("broken_json")).toContain("the checks of broken_json are broken (checkpoint CP1)");
  expect(reasonOf("refuses")).toContain("real: bad_request (HTTP 400)");
  expect(reasonOf("refuses_key")).toContain("real: quota_exhausted (HTTP 402)");
  expect(reasonOf("garbage")).toContain("3 answers could not be used");
});

it("quotes nothing hidden outside of the hidden store, and keeps the quotation in it", () => {
  expect(said).not.toContain(canary);
  const found = [...folder.files()].filter(([, content]) => content.includes(canary)).map(([path]) => path);
  expect(found.filter((path) => !path.startsWith("objects/hidden/"))).toEqual([]);
  expect(found.filter((path) => path.includes("unjudged-")).length).toBeGreaterThan(3);
});
