/** The launcher that puts agents into bubblewrap. */
import { join } from "node:path";
import type { Launcher } from "../../ports.ts";
import { bundlesFolder, installationRoot } from "./bundles.ts";
import { listenFor, startChild } from "./child-side.ts";
import type { Bubblewrap } from "./isolation.ts";
import { LocalLauncher } from "./launcher.ts";
import { builtRunner, startRunnerProcess } from "./runner-process.ts";
import { inside, sandboxArguments, sandboxSystem } from "./sandbox.ts";
import type { ProcessLauncherOptions } from "./unisolated.ts";

export interface BubblewrapLauncherOptions extends ProcessLauncherOptions {
  /** As `detectIsolation` found it. */
  bwrap: Bubblewrap;
}

export function openBubblewrapLauncher(options: BubblewrapLauncherOptions): Promise<Launcher> {
  const bundles = options.bundles ?? bundlesFolder();
  const runner = options.runner ?? builtRunner(bundles);
  return LocalLauncher.open(async (session) => {
    const system = await sandboxSystem(options.bwrap.features, {
      files: join(session.folder, "sandbox"),
      bundles,
      hide: [
        installationRoot(),
        options.objects,
        session.folder,
        ...(options.work === undefined ? [] : [options.work]),
      ],
    });
    return {
      isolation: "bwrap",
      gatewayPath: () => `${inside.gateway}/s`,
      startAgentSide: (folder, spec) =>
        listenFor(folder.turnSocket, (listening) =>
          startChild({
            command: options.bwrap.path,
            // By a descriptor: the first process of a sandbox is bubblewrap, and its command line can be read there.
            args: ["--args", "4", "--", ...turnServer, ...system.guard],
            env: {},
            firstLine: spec.turnSecret,
            listening,
            data: sandboxArguments(system, spec.network, folder)
              .map((argument) => `${argument}\0`)
              .join(""),
            graceMs: 2000,
          }),
        ),
      startRunner: (input) => startRunnerProcess(runner, input),
    };
  }, options);
}

const turnServer = [
  ...[inside.node, `${inside.ours}/turn-server-main.js`, "--fd", "3", "--workspace", inside.workspace],
  ...["--home", inside.home, "--bundles", inside.ours, "--scope", "sandbox", "--"],
];
