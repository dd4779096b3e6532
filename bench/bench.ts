/**
 * `npm run bench`: the figures that Proctor holds itself to, measured here and now; a table, then one JSON object.
 * Each measure is a median or a ratio within one run. They are figures for people, not tests: a slow machine is no bug.
 *
 *     npm run bench                 all
 *     npm run bench -- attempts     those whose name has the word in it
 *     npm run -s bench -- --json    the JSON alone
 */
import { cpus, loadavg, totalmem } from "node:os";
import Table from "cli-table3";
import { measure as afterExit } from "./after-exit.ts";
import { measure as attempts } from "./attempts.ts";
import { measure as interpreter } from "./interpreter.ts";
import { measure as launch } from "./launch.ts";
import type { Measure } from "./measure.ts";
import { measure as startup } from "./startup.ts";
import { measure as tasks } from "./tasks.ts";

const suites: Readonly<Record<string, () => Promise<Measure[]>>> = {
  startup,
  interpreter,
  tasks,
  "after-exit": afterExit,
  launch,
  attempts,
};

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const json = process.argv.includes("--json");
const chosen = Object.entries(suites).filter(
  ([name]) => words.length === 0 || words.some((word) => name.includes(word)),
);
if (chosen.length === 0) {
  process.stderr.write(`no suite is called so; there are ${Object.keys(suites).join(", ")}\n`);
  process.exit(2);
}

const started = new Date().toISOString();
const loadBefore = loadavg()[0] ?? 0;
const measured: (Measure & { suite: string })[] = [];
for (const [suite, measure] of chosen) {
  process.stderr.write(`measuring ${suite} …\n`);
  for (const one of await measure()) measured.push({ suite, ...one });
}

if (!json) {
  const table = new Table({ head: ["suite", "figure", "value", "unit", "target"], style: { head: [], border: [] } });
  for (const { suite, name, value, unit, target, reason } of measured) {
    const figure = value === null ? (reason ?? "not measured") : Number(value.toPrecision(4)).toString();
    table.push([suite, name, figure, value === null ? "" : unit, target ?? ""]);
  }
  process.stdout.write(`${table.toString()}\n`);
}
/** Others that use the machine at the same time make every figure worse: their number goes with it. */
const machine = {
  node: process.version,
  cpus: cpus().length,
  cpu: cpus()[0]?.model ?? "",
  memory: totalmem(),
  loadBefore,
  loadAfter: loadavg()[0] ?? 0,
};
process.stdout.write(
  `${JSON.stringify({ v: 1, started, seconds: Math.round(performance.now() / 1000), machine, measured })}\n`,
);
