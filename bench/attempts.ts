/**
 * Whole attempts, from the sweep file to the row: checks only, one turn. In process with the null agent (the same runner,
 * turn server, HTTP and evidence, no child processes), and with real processes in bubblewrap.
 */
import { openInProcessLauncher } from "../lib/platform/local/launcher/in-process.ts";
import { localRunner } from "../lib/platform/local/runner.ts";
import { type Measure, median } from "./measure.ts";
import { type BenchSweep, bubblewrapHere, runBenchSweep } from "./sweep.ts";

const many = 3000;
/** Resident memory is looked at so often, as it is: nothing is collected for the measure. */
const sampleMs = 50;

export async function measure(): Promise<Measure[]> {
  return [...(await inProcess()), ...(await inBubblewrap())];
}

async function inProcess(): Promise<Measure[]> {
  const sweep: Omit<BenchSweep, "attempts"> = {
    concurrency: 16,
    launcher: { open: (at) => openInProcessLauncher({ ...at, runner: localRunner() }), warning: null },
    agent: "null",
    decides: "results/a.txt",
  };
  const short = 200 / (await runBenchSweep({ ...sweep, attempts: 200 }));
  const fifths: number[][] = [[], [], [], [], []];
  let ended = 0;
  const sampling = setInterval(() => {
    fifths[Math.min(4, Math.floor((ended / many) * 5))]?.push(process.memoryUsage.rss() / 1e6);
  }, sampleMs);
  try {
    const before = process.cpuUsage();
    const seconds = await runBenchSweep({
      ...sweep,
      attempts: many,
      onEnded: () => {
        ended += 1;
      },
    });
    const used = process.cpuUsage(before);
    const cpuMs = (used.user + used.system) / 1000 / many;
    const [first, last] = [median(fifths[0] ?? []), median(fifths[4] ?? [])];
    return [
      { name: "attempts in process, 200", value: short, unit: "1/s", target: "at least 30" },
      { name: `attempts in process, ${many}`, value: many / seconds, unit: "1/s", target: "at least 30" },
      { name: "CPU of an attempt in process, its files removed too", value: cpuMs, unit: "ms CPU", target: null },
      {
        name: `RSS over ${many} attempts, highest`,
        value: Math.max(...fifths.flat()),
        unit: "MB",
        target: "at most 400",
      },
      { name: "RSS in the first fifth, median", value: first, unit: "MB", target: null },
      { name: "RSS in the last fifth, median", value: last, unit: "MB", target: null },
      { name: "RSS, last fifth over first fifth", value: last / first, unit: "ratio", target: "about 1" },
    ];
  } finally {
    clearInterval(sampling);
  }
}

async function inBubblewrap(): Promise<Measure[]> {
  const real = { name: "attempts in bubblewrap, null agent", unit: "1/s", target: "at least 4" };
  const mini = { name: "attempts in bubblewrap, mini with a scripted model of two calls", unit: "1/s", target: null };
  const launcher = await bubblewrapHere();
  if ("missing" in launcher) return [real, mini].map((one) => ({ ...one, value: null, reason: launcher.missing }));
  const [nulls, minis] = [80, 40];
  const sweep = { concurrency: 4, launcher, decides: "results/a.txt" };
  const ofNull = await runBenchSweep({ ...sweep, attempts: nulls, agent: "null" });
  const ofMini = await runBenchSweep({ ...sweep, attempts: minis, agent: { mini: "echo a > results/a.txt" } });
  return [
    { ...real, value: nulls / ofNull },
    { ...mini, value: minis / ofMini },
  ];
}
