/** Bundles and launchers for tests: the real turn server with an agent that runs any command, and a runner that waits. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type BuildOptions, build } from "esbuild";
import type { RunnerInput, RunRunner } from "../../../../lib/executor/runner-input.ts";
import { runnerInput } from "../../../../lib/executor/runner-input.ts";
import { until } from "../../../executor/turn-server/processes.ts";
import { TurnClient } from "../../../executor/turn-server/turn-client.ts";

const common: BuildOptions = {
  entryNames: "[name]",
  bundle: true,
  platform: "node",
  format: "esm",
  logLevel: "error",
  banner: { js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);" },
};
const turnServerEntry = "lib/executor/turn-server/turn-server-main.ts";
const agentEntries = ["lib/agents/null/null-main.ts", "lib/agents/mini/mini-main.ts"];

/** Builds a file of the test's own beside the bundles in `folder`. */
export async function buildInto(folder: string, entry: string): Promise<void> {
  await build({ ...common, entryPoints: [entry], outdir: folder });
}

/** The bundles as they are, in a new folder of temporary files; the caller removes it. */
export async function buildRealBundles(): Promise<string> {
  const folder = newFolder();
  const entryPoints = [turnServerEntry, ...agentEntries, "lib/platform/local/runner-main.ts"];
  await build({ ...common, entryPoints, outdir: folder });
  return folder;
}

/** The real turn server, whose only agent runs any command, and the runner that waits; the caller removes the folder. */
export async function buildBundles(): Promise<string> {
  const folder = newFolder();
  await build({
    ...common,
    entryPoints: [turnServerEntry, ...agentEntries],
    outdir: folder,
    plugins: [
      {
        name: "script-agent",
        setup(plugins) {
          plugins.onResolve({ filter: /agents\/registry\.ts$/ }, () => ({
            path: resolve("test/executor/turn-server/script-agent.ts"),
          }));
        },
      },
    ],
  });
  writeFileSync(join(folder, "runner-main.js"), waitingRunner);
  return folder;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bundles-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return folder;
}

/** Writes what it was given where the test finds it, and waits for the end of its standard input. */
const waitingRunner = `
import { renameSync, writeFileSync } from "node:fs";
let text = "";
process.stdin.on("data", (part) => {
  text += part;
  if (!text.includes("\\n")) return;
  const input = JSON.parse(text);
  const path = input.objects + "/" + input.mailbox;
  writeFileSync(path + ".part", JSON.stringify({ input, pid: process.pid, env: process.env, argv: process.argv }));
  renameSync(path + ".part", path + ".json");
});
process.stdin.on("end", () => process.exit(0));
`;

export const waitingRunnerHere: RunRunner = (input, stop) => {
  writeFileSync(join(input.objects, `${input.mailbox}.json`), JSON.stringify({ input }));
  return new Promise((done) => {
    if (stop.aborted) done();
    stop.addEventListener("abort", () => done());
  });
};

/** Waits for what the waiting runner of a mailbox was given. */
export async function runnerOf(
  objects: string,
  mailbox: string,
): Promise<{ input: RunnerInput; client: TurnClient; pid: number; env: Record<string, string>; argv: string[] }> {
  const path = join(objects, `${mailbox}.json`);
  await until(() => existsSync(path));
  const found = JSON.parse(readFileSync(path, "utf8"));
  const input = runnerInput.parse(found.input);
  return { ...found, input, client: new TurnClient(input.turnServer, input.turnSecret) };
}
