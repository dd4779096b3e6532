/** Without a sandbox: the turn server is a plain child process, and the agent can do what its user can. */
import { join } from "node:path";
import { markedScope } from "../../../executor/turn-server/process-scope.ts";
import type { Launcher } from "../../ports.ts";
import { bundlesFolder } from "./bundles.ts";
import { listenFor, startChild } from "./child-side.ts";
import { LocalLauncher, type LocalLauncherOptions } from "./launcher.ts";
import { builtRunner, type RunnerCommand, startRunnerProcess } from "./runner-process.ts";

export interface ProcessLauncherOptions extends LocalLauncherOptions {
  /** Folder of the bundles; that of this installation when it is not given. */
  bundles?: string;
  /** The runner's command; the built one when it is not given. */
  runner?: RunnerCommand;
}

export function openUnisolatedLauncher(options: ProcessLauncherOptions): Promise<Launcher> {
  const bundles = options.bundles ?? bundlesFolder();
  const runner = options.runner ?? builtRunner(bundles);
  return LocalLauncher.open(
    async () => ({
      isolation: "none",
      gatewayPath: (folder) => folder.gatewaySocket,
      startAgentSide: (folder, spec) =>
        listenFor(folder.turnSocket, (listening) =>
          startChild({
            command: process.execPath,
            args: [
              join(bundles, "turn-server-main.js"),
              ...["--fd", "3", "--workspace", folder.workspace, "--home", folder.home, "--bundles", bundles],
              ...["--scope", `mark:${folder.name}`],
            ],
            env: { PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin", TMPDIR: folder.tmp },
            firstLine: spec.turnSecret,
            listening,
            graceMs: 3000,
            // The turn server ends what it started; this is for one that was killed.
            sweep: () => markedScope(folder.name).endAll(),
          }),
        ),
      startRunner: (input) => startRunnerProcess(runner, input),
    }),
    options,
  );
}
