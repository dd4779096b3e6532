/** Chooses how executors are kept apart on this machine, and refuses what must not run that way. */

import { openBubblewrapLauncher } from "../../lib/platform/local/launcher/bubblewrap.ts";
import { detectIsolation, isolationProblems } from "../../lib/platform/local/launcher/isolation.ts";
import { openUnisolatedLauncher } from "../../lib/platform/local/launcher/unisolated.ts";
import type { Launcher, Secrets } from "../../lib/platform/ports.ts";
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { CommandError } from "../command.ts";

export interface ChosenLauncher {
  open(at: { objects: string; tokens: string; secrets: Secrets }): Promise<Launcher>;
  /** The one loud line where there is no sandbox. */
  warning: string | null;
}

/** @throws CommandError for attempts that must not run without a sandbox here */
export async function chooseLauncher(lines: readonly ManifestLine[], unisolated: boolean): Promise<ChosenLauncher> {
  const found = await detectIsolation();
  if (found.bwrap) return { open: (at) => openBubblewrapLauncher({ ...at, bwrap: found }), warning: null };
  const problems = new Set(
    lines.flatMap((line) =>
      isolationProblems("none", line.network, line.model.api, unisolated).map(
        (problem) => `${line.model.name}: ${problem}`,
      ),
    ),
  );
  if (problems.size > 0) throw new CommandError(2, [...problems].join("\n"));
  return {
    open: openUnisolatedLauncher,
    warning: `WARNING: NO SANDBOX (isolation none): ${found.reason}. Agents run as you, with all that you may read and change. To have one: ${found.remedy}.`,
  };
}
