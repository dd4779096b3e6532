/** Models that fail, through a whole sweep: each way ends in a status of its own, and none is taken for the agent's doing. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { type Ended, rubric, type SweepFolder, storedRows, sweepFolder } from "./sweep-folder.ts";

const fileExists = stringify({
  checkpoints: [{ id: "CP1", weight: 1, check: { kind: "file_exists", file: "results/a.txt" } }],
});
const work = { tools: [{ name: "bash", arguments: { command: "mkdir -p results; echo a > results/a.txt" } }] };
const end = { text: "I have finished the request." };

/** A sweep of one task whose models have these answers. */
function sweepOf(models: Record<string, unknown[]>, turnSeconds: number): { folder: SweepFolder; file: string } {
  const folder = sweepFolder();
  folder.packages.add("t", {
    fields: "codex: {max_user_followups: 0}",
    files: { "references/eval_rule.md": rubric(), "references/checks.yaml": fileExists },
  });
  for (const [model, answers] of Object.entries(models)) folder.script(model, "executor", answers);
  const file = folder.sweep({
    models: Object.keys(models).map((name) => ({ name, provider: "scripted" })),
    limits: { concurrency: 6, turnSeconds },
  });
  return { folder, file };
}

const always = (kind: string) => [{ fault: { kind } }];
/** It works, and is not there any more when the agent would say so. */
const late = (kind: string) => [work, { fault: { kind } }];
const once = (kind: string) => [{ ...work, fault: { kind, times: 1 } }, end];

const failing = sweepOf(
  {
    "server-error": always("server_error"),
    garbage: always("garbage"),
    html: always("html"),
    nothing: always("empty"),
    drops: always("disconnect"),
    "drops-late": late("disconnect"),
    "no-credit": always("quota"),
    "no-credit-late": late("quota"),
    recovers: once("garbage"),
    "recovers-connection": once("disconnect"),
  },
  60,
);
// A provider that asks to wait is waited for until the turn's time is up, so that is short here.
const limited = sweepOf({ limits: always("rate_limit"), "limits-late": late("rate_limit") }, 10);
const ended: Ended[] = [];

beforeAll(async () => {
  ended.push(...(await Promise.all([failing, limited].map(({ folder, file }) => folder.proctor(["run", file])))));
}, 120_000);
afterAll(() => {
  for (const { folder } of [failing, limited]) folder.remove();
});

const rowOf = (model: string) =>
  [...storedRows(failing.folder), ...storedRows(limited.folder)].find((row) => row.model === model);

it.each([
  ["server-error", /HTTP 500/],
  ["garbage", /no completion where a completion was expected/],
  ["html", /HTTP 200 with HTML/],
  ["nothing", /HTTP 200 with empty body/],
  ["drops", /connection did not hold/],
  ["drops-late", /connection did not hold/],
  ["no-credit", /HTTP 402/],
  ["no-credit-late", /HTTP 402/],
])("%s: infra_error by the provider's fault, which the row tells", (model, reason) => {
  expect(rowOf(model)).toMatchObject({
    status: "infra_error",
    stop_reason: "provider_fault",
    valid: false,
    score: null,
    reason: expect.stringMatching(reason),
  });
});

it.each(["limits", "limits-late"])("%s: 429 for ever is rate_limit", (model) => {
  expect(rowOf(model)).toMatchObject({ status: "rate_limit", stop_reason: "rate_limited", valid: false, score: null });
});

it.each(["recovers", "recovers-connection"])("%s: a fault that passes costs nothing", (model) => {
  expect(rowOf(model)).toMatchObject({ status: "pass", score: 1, valid: true });
});

it("says so at the end: exit 1, every attempt counted, and how to go on", () => {
  expect(ended.map(({ code }) => code)).toEqual([1, 1]);
  expect(ended[0]?.stdout).toContain("2 of 10 attempts valid");
  expect(ended[0]?.stdout).toContain("`proctor retry s` takes errors up again");
});
