/** The runner as a child process, where the launcher does not run it itself. */
import { join } from "node:path";
import type { RunnerInput } from "../../../executor/runner-input.ts";
import { bundlesFolder, runnerBundle } from "./bundles.ts";
import { startChild } from "./child-side.ts";
import type { Side } from "./launcher.ts";

export interface RunnerCommand {
  command: string;
  args: string[];
}

export function builtRunner(bundles = bundlesFolder()): RunnerCommand {
  return { command: process.execPath, args: [join(bundles, runnerBundle)] };
}

/** What a runner needs of our environment to reach a provider; keys are not among it. */
const passedOn = [
  "PATH",
  "HOME",
  "TMPDIR",
  "TZ",
  "LANG",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
];

export function startRunnerProcess(runner: RunnerCommand, input: RunnerInput): Promise<Side> {
  const env = Object.fromEntries(
    passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] as string]])),
  );
  return startChild({ ...runner, env, firstLine: JSON.stringify(input), graceMs: 2000 });
}
