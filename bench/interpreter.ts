/** What the control flow of one attempt costs: the real attempt machine, with functions that answer at once. */
import { machineDefinitions, machinePlaceholders } from "../lib/attempt/machines.ts";
import { StatesInterpreter } from "../lib/platform/local/interpreter/interpreter.ts";
import { RealClock } from "../lib/platform/local/real-clock.ts";
import { systemRandom } from "../lib/platform/local/system-random.ts";
import { type Measure, median } from "./measure.ts";

const batches = 9;
const perBatch = 100;
/** Three turns, nothing retried. */
const turns = 3;

/**
 * CPU milliseconds of this process for one attempt of three turns: the median of batches after one that warms up, and
 * that of the first attempts of a fresh process; and the heap that is kept after all of them.
 */
export async function measure(): Promise<Measure[]> {
  const workflow = attemptWorkflow();
  let number = 0;
  const run = async (count: number): Promise<{ cpuMs: number; states: number }> => {
    const before = process.cpuUsage();
    let states = 0;
    for (let index = 0; index < count; index++) {
      const { result } = await workflow.start("attempt", `attempt-${number++}`, line);
      const ended = await result;
      if (ended.status !== "SUCCEEDED")
        throw new Error(`an attempt ended as ${ended.status}: ${ended.error} ${ended.cause}`);
      states = ended.statesEntered;
    }
    const used = process.cpuUsage(before);
    return { cpuMs: (used.user + used.system) / 1000 / count, states };
  };

  const cold = await run(20);
  await run(perBatch);
  const kept = await settledHeap();
  const measured: number[] = [];
  for (let batch = 0; batch < batches; batch++) measured.push((await run(perBatch)).cpuMs);
  const growth = (await settledHeap()) - kept;
  return [
    {
      name: `control flow of an attempt, ${cold.states} states`,
      value: median(measured),
      unit: "ms CPU",
      target: "at most 5",
    },
    { name: "the same, first 20 of a process", value: cold.cpuMs, unit: "ms CPU", target: null },
    { name: `heap kept by ${batches * perBatch} attempts`, value: growth / 1024 / 1024, unit: "MiB", target: null },
  ];
}

async function settledHeap(): Promise<number> {
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function attemptWorkflow(): StatesInterpreter {
  const placeholders: Record<string, string> = Object.fromEntries(
    machinePlaceholders.attempt.map((name) => [name, name]),
  );
  placeholders.TaskDefinitions = "mini=mini:1 null=null:1";
  const answers: Record<string, (event: { turn: number; taskToken: string }) => unknown> = {
    PrepareFunction: () => prepared,
    OpenTurnFunction: ({ turn, taskToken }) => {
      setImmediate(() => void workflow.tokens.succeed(taskToken, { ...report, turn }));
      return { v: 1 };
    },
    SuperviseFunction: ({ turn }) => (turn < turns ? goOn : passed),
    SimulateFunction: () => ({ v: 1, next: "turn", followUpKey: "turn-02.json", fallback: false, waitedSeconds: 0 }),
    RecordFunction: () => ({ v: 1, status: "pass", next: "done", delaySeconds: 0 }),
  };
  const unused = (): never => {
    throw new Error("the attempt machine reads and writes no objects");
  };
  const workflow: StatesInterpreter = new StatesInterpreter({
    definitions: [{ name: "attempt", file: "lib/attempt/attempt.asl.json", definition: machineDefinitions.attempt }],
    placeholders,
    clock: new RealClock(),
    random: systemRandom,
    resources: {
      invoke: async (name, event) => answers[name]?.(event as unknown as { turn: number; taskToken: string }),
      runTask: async () => ({ Tasks: [{ TaskArn: "task-1" }], Failures: [] }),
      stopTask: async () => ({ Task: { TaskArn: "task-1" } }),
      readItems: unused,
      openResults: unused,
    },
  });
  return workflow;
}

const prepared = {
  v: 1,
  next: "launch",
  try: 1,
  mailbox: "0123456789abcdef",
  sealKey: "k".repeat(44),
  turnSecret: "s".repeat(44),
  image: "image@sha256:0",
  keyName: null,
  turnTimeoutSeconds: 1800,
  heartbeatSeconds: 180,
};

const report = {
  v: 1,
  exit: { code: 0, stopReason: "ended" },
  started: "2026-01-01T00:00:00.000Z",
  ended: "2026-01-01T00:01:00.000Z",
  executorSeconds: 60,
  completion: { complete: true, reason: "exit" },
  usage: { input: 1000, cached: 0, output: 100, usd: 0.01 },
  manifestKey: "attempts/attempt/01/turn-01/manifest.json",
};

const decided = { v: 1, decisionKey: "decisions/attempt/01/turn-01/decision.json", waitedSeconds: 0 };
const goOn = {
  ...decided,
  next: "continue",
  verdict: "continue",
  attempt_state: "incomplete",
  recoverable: true,
  score: 0.5,
};
const passed = {
  ...decided,
  next: "stop",
  verdict: "pass",
  attempt_state: "complete_and_passed",
  recoverable: false,
  score: 1,
};

/** A manifest line of ordinary size. */
const line = {
  v: 1,
  sweep: "bench",
  generation: 1,
  attempt: "abcdefghijklmnopqrstuvwxyz",
  task: "task_102_35_sudoku_9x9_easiest",
  digest: "d".repeat(64),
  category: "102_exploration",
  capability: "exploration",
  language: "en",
  cluster: "sudoku_9x9_easiest",
  network: "offline",
  threshold: 1,
  agent: { name: "null", version: "1.0.0", options: {} },
  model: {
    name: "scripted-model",
    provider: "scripted",
    price: { input: 1, output: 2 },
    api: "scripted",
    socket: "/tmp/models.sock",
    script: "/tmp/script",
  },
  epoch: 1,
  supervisor: { kind: "checks" },
  userSimulator: { kind: "none" },
  limits: {
    turnSeconds: 60,
    totalSeconds: 180,
    noStartSeconds: 20,
    stallSeconds: 30,
    maxFollowups: 2,
    usdPerAttempt: 1,
    usdJudging: 0.5,
    tokensPerAttempt: null,
  },
  retries: { infra: 2, rateLimit: 2 },
  placement: "one",
  seed: 1,
  compat: null,
};
