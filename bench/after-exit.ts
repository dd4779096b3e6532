/**
 * From an agent's exit to the moment in which its attempt's Supervise state is entered, through the whole engine:
 * collecting, evidence, the token's answer, the state machine. One attempt at a time.
 *
 * Nothing of what agents leave here is still running, so no settling of files is in the figures: the turn server waits
 * for files only while something lives that could change them. In process the exit is the return of the agent's
 * function; in bubblewrap it is what the turn's report calls its end, the moment at which the runner hears of the exit.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nullJob } from "../lib/agents/null/adapter.ts";
import { runNull } from "../lib/agents/null/run-null.ts";
import type { FunctionAgent } from "../lib/executor/turn-server/agent-process.ts";
import { evidenceFileKey, evidenceFiles } from "../lib/firewall/keys.ts";
import type { HistoryEvent } from "../lib/platform/local/interpreter/interpreter.ts";
import { openInProcessLauncher } from "../lib/platform/local/launcher/in-process.ts";
import { openRuns } from "../lib/platform/local/open-runs.ts";
import { localRunner } from "../lib/platform/local/runner.ts";
import { turnReport } from "../lib/trajectory/turn-report.ts";
import { type Measure, median } from "./measure.ts";
import { bubblewrapHere, runBenchSweep } from "./sweep.ts";

const inProcessAttempts = 15;
const sandboxAttempts = 10;
const target = "at most 150";

interface Left {
  name: string;
  files: number;
  bytes: number;
}

const cases: Left[] = [
  { name: "nothing left", files: 0, bytes: 0 },
  { name: "20 files of 20 KB", files: 20, bytes: 20_000 },
  { name: "one file of 20 MB", files: 1, bytes: 20_000_000 },
];

export async function measure(): Promise<Measure[]> {
  const measures: Measure[] = [];
  for (const left of cases) {
    const value = median(await inProcess(left));
    measures.push({ name: `exit to Supervise in process, ${left.name}`, value, unit: "ms", target });
  }
  const launcher = await bubblewrapHere();
  for (const left of cases) {
    const figure = { name: `exit to Supervise in bubblewrap, ${left.name}`, unit: "ms", target };
    if ("missing" in launcher) measures.push({ ...figure, value: null, reason: launcher.missing });
    else measures.push({ ...figure, value: median(await inSandbox(left, launcher)) });
  }
  return measures;
}

const isSupervise = (event: HistoryEvent): boolean =>
  event.machine === "attempt" && event.type === "StateEntered" && event.state === "Supervise";

async function inProcess(left: Left): Promise<number[]> {
  const took: number[] = [];
  let exited = 0;
  const agent: FunctionAgent = async ({ place, assignment, write, signal }) => {
    const results = join(place.workspace, "results");
    await mkdir(results, { recursive: true });
    for (let n = 0; n < left.files; n++) await writeFile(join(results, `${n}.bin`), Buffer.alloc(left.bytes, n + 1));
    const code = await runNull(nullJob(place, assignment), (text) => write("out", text), signal);
    exited = performance.now();
    return code;
  };
  await runBenchSweep({
    attempts: inProcessAttempts,
    concurrency: 1,
    launcher: {
      open: (at) => openInProcessLauncher({ ...at, runner: localRunner(), agents: { null: agent } }),
      warning: null,
    },
    agent: "null",
    decides: "results/a.txt",
    onEvent: (event) => {
      if (isSupervise(event)) took.push(performance.now() - exited);
    },
  });
  // The first attempt of a process is slower, and stays in: its share of a median is small.
  return took;
}

async function inSandbox(left: Left, launcher: Parameters<typeof runBenchSweep>[0]["launcher"]): Promise<number[]> {
  const entered = new Map<string, number>();
  const took: number[] = [];
  const loop = `for n in $(seq 1 ${left.files}); do head -c ${left.bytes} /dev/urandom > results/$n.bin; done`;
  await runBenchSweep({
    attempts: sandboxAttempts,
    concurrency: 1,
    launcher,
    agent: { mini: `echo a > results/a.txt; ${left.files === 0 ? "true" : loop}` },
    decides: "results/a.txt",
    onEvent: (event) => {
      if (isSupervise(event)) entered.set(event.execution.replace(/-g\d+$/, ""), event.at);
    },
    look: async (folder) => {
      const runs = openRuns(folder, "operator");
      try {
        for (const [attempt, at] of entered) {
          const key = evidenceFileKey({ attempt, try: 1 }, 1, evidenceFiles.report);
          const report = turnReport.parse(JSON.parse(Buffer.from(await runs.objects.get(key)).toString("utf8")));
          took.push(at - Date.parse(report.ended));
        }
      } finally {
        await runs.close();
      }
    },
  });
  return took;
}
