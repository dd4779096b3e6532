/**
 * What the control flow of attempts costs: the real machines of lane and attempt, with functions that answer at once. A
 * lane is a Distributed Map whose items are executions of the attempt machine, as in a sweep.
 */
import { machineDefinitions, machinePlaceholders } from "../lib/attempt/machines.ts";
import { StatesInterpreter } from "../lib/platform/local/interpreter/interpreter.ts";
import { RealClock } from "../lib/platform/local/real-clock.ts";
import { systemRandom } from "../lib/platform/local/system-random.ts";
import { ordinaryLine } from "./manifest-line.ts";
import { type Measure, median } from "./measure.ts";

const batches = 9;
const perBatch = 100;
const concurrency = 4;
/** Nothing is retried. */
const turns = 3;

/**
 * CPU milliseconds of this process for one attempt of three turns with its share of the lane: the median of batches after
 * one that warms up, and that of the first attempts of a process; and the heap that is kept after all of them.
 */
export async function measure(): Promise<Measure[]> {
  let states = 0;
  let ended = 0;
  const { workflow, items } = attemptWorkflow((machine, type) => {
    if (machine === "attempt" && type === "StateEntered") states++;
    if (machine === "attempt" && type === "ExecutionEnded") ended++;
  });
  let batch = 0;
  const run = async (count: number): Promise<number> => {
    const name = `batch-${batch++}`;
    items.set(name, lines(name, count));
    const input = { v: 1, sweep: "bench", generation: 1, lane: "scripted-model", manifestKey: name, concurrency };
    [states, ended] = [0, 0];
    const before = process.cpuUsage();
    const { result } = await workflow.start("lane", name, input);
    const came = await result;
    const used = process.cpuUsage(before);
    items.delete(name);
    if (came.status !== "SUCCEEDED") throw new Error(`the lane ended as ${came.status}: ${came.error} ${came.cause}`);
    if (ended !== count || states !== count * statesEach) {
      throw new Error(`${ended} of ${count} attempts ended, after ${states} states, expected ${count * statesEach}`);
    }
    return (used.user + used.system) / 1000 / count;
  };

  const cold = await run(20);
  await run(perBatch);
  const kept = await settledHeap();
  const measured: number[] = [];
  for (let round = 0; round < batches; round++) measured.push(await run(perBatch));
  const growth = (await settledHeap()) - kept;
  return [
    {
      name: `control flow of an attempt, ${turns} turns, ${statesEach} states, its share of the lane`,
      value: median(measured),
      unit: "ms CPU",
      target: "at most 5",
    },
    { name: "the same, first 20 of a process", value: cold, unit: "ms CPU", target: null },
    { name: `heap kept by ${batches * perBatch} attempts`, value: growth / 1024 / 1024, unit: "MiB", target: null },
  ];
}

/** States that an attempt of three turns enters when nothing is retried. */
const statesEach = 18;

/** Manifest lines of a batch as the object that the lane reads. */
function lines(batch: string, count: number): string {
  return Array.from(
    { length: count },
    (_, index) => `${JSON.stringify({ ...ordinaryLine, attempt: `${batch}-${String(index).padStart(4, "0")}` })}\n`,
  ).join("");
}

async function settledHeap(): Promise<number> {
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function attemptWorkflow(onEvent: (machine: string, type: string) => void): {
  workflow: StatesInterpreter;
  /** Objects that lanes read, by key. */
  items: Map<string, string>;
} {
  const names = [...machinePlaceholders.attempt, ...machinePlaceholders.lane];
  const placeholders: Record<string, string> = Object.fromEntries(names.map((name) => [name, name]));
  placeholders.TaskDefinitions = "mini=mini:1 null=null:1";
  placeholders.AttemptMachine = "attempt";
  const items = new Map<string, string>();
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
  const workflow: StatesInterpreter = new StatesInterpreter({
    definitions: (["attempt", "lane"] as const).map((name) => ({
      name,
      file: `lib/attempt/${name}.asl.json`,
      definition: machineDefinitions[name],
    })),
    placeholders,
    clock: new RealClock(),
    random: systemRandom,
    onEvent: (event) => onEvent(event.machine, event.type),
    resources: {
      invoke: async (name, event) => answers[name]?.(event as unknown as { turn: number; taskToken: string }),
      runTask: async () => ({ Tasks: [{ TaskArn: "task-1" }], Failures: [] }),
      stopTask: async () => ({ Task: { TaskArn: "task-1" } }),
      async *readItems({ key }) {
        yield items.get(key) ?? "";
      },
      openResults: async ({ prefix, mapRun }) => ({
        add: () => undefined,
        close: async () => ({ key: `${prefix}/${mapRun}/manifest.json` }),
      }),
    },
  });
  return { workflow, items };
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
