/** Whether the packages that a sweep chose can be run as it says: limits, networks, who judges. */
import { z } from "zod";
import type { TaskPackage } from "../tasks/package.ts";
import type { Problem } from "../tasks/problem.ts";
import { runnableProblems } from "../tasks/runnable.ts";
import type { PlannedTask } from "./expand.ts";
import { limitsInForce, raisedLimits } from "./limits.ts";
import type { AgentChoice } from "./manifest-line.ts";
import type { KnownAgent } from "./resolve-agents.ts";
import type { SweepFile } from "./sweep-file.ts";

/**
 * Adds to `problems` what keeps the chosen packages from being run, with these limits, agents and this supervisor.
 * @param tasks the same packages, as they are planned
 */
export function checkChosen(
  file: string,
  sweep: SweepFile,
  { chosen, tasks }: { chosen: readonly TaskPackage[]; tasks: readonly PlannedTask[] },
  agents: readonly AgentChoice[],
  context: { agents: readonly KnownAgent[]; env: Readonly<Record<string, string | undefined>> },
  problems: Problem[],
): void {
  problems.push(...raisedLimits(file, tasks, sweep.limits));
  const { usd } = sweep.limits;
  if (usd !== null) {
    const own = tasks[0]?.limits ?? { turnSeconds: 1, totalSeconds: 1, maxFollowups: 0 };
    const { usdPerAttempt, usdJudging } = limitsInForce(own, sweep.limits);
    const judged = sweep.supervisor !== "checks" || sweep.userSimulator !== "none";
    const uncapped = usdPerAttempt === null ? "usdPerAttempt" : judged && usdJudging === null ? "usdJudging" : null;
    if (uncapped !== null) {
      const expected = "dollars: under limits.usd each attempt reserves its worst case";
      problems.push({ file, field: `limits.${uncapped}`, severity: "error", found: "no cap", expected });
    } else if ((usdPerAttempt ?? 0) + (judged ? (usdJudging ?? 0) : 0) > usd) {
      const found = `${usd}, less than the worst case of one attempt (usdPerAttempt ${usdPerAttempt}${judged ? `, usdJudging ${usdJudging}` : ""})`;
      problems.push({
        file,
        field: "limits.usd",
        severity: "error",
        found,
        expected: "enough for one attempt, or lower caps on it",
      });
    }
  }
  for (const pkg of chosen) {
    problems.push(...runnableProblems(pkg, context.env));
    for (const agent of agents) {
      const networks = context.agents.find((known) => known.name === agent.name)?.networks ?? [];
      if (networks.includes(pkg.network)) continue;
      const expected = `tasks with network ${networks.join(" or ")}, the ones that ${agent.name} works in`;
      problems.push({ file: pkg.file, field: "network", severity: "error", found: pkg.network, expected });
    }
    if (sweep.supervisor === "checks") undecidedCheckpoints(file, pkg, problems);
  }
}

/** Checkpoints of a checks file that are left to a model. Only this much of its form is known here. */
const judgedCheckpoints = z.object({
  checkpoints: z.array(z.object({ id: z.string(), judge: z.unknown().optional() })),
});

function undecidedCheckpoints(file: string, pkg: TaskPackage, problems: Problem[]): void {
  const expected = "checks that decide every checkpoint, or a supervisor with a model";
  if (pkg.checks === null) {
    problems.push({ file, field: "supervisor", severity: "error", found: `checks, but ${pkg.id} has none`, expected });
    return;
  }
  const parsed = judgedCheckpoints.safeParse(pkg.checks.value);
  const judged = parsed.success ? parsed.data.checkpoints.filter((checkpoint) => checkpoint.judge === true) : [];
  if (judged.length === 0) return;
  const found = `checks, but ${pkg.checks.file} leaves ${judged.map((checkpoint) => checkpoint.id).join(", ")} to a judge`;
  problems.push({ file, field: "supervisor", severity: "error", found, expected });
}
