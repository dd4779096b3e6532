/** The request as the agent gets it: the preamble, then the task's own words, untouched. */
import type { TaskPackage } from "./package.ts";
import { preambles } from "./preamble.ts";

export function renderRequest(pkg: Pick<TaskPackage, "language" | "snapshot" | "task">): string {
  const words = preambles[pkg.language];
  const names = pkg.task.skills.map((name) => `\`/root/skills/${name}/SKILL.md\``);
  const skills =
    names.length === 0 ? words.noSkills : words.skills.replace("{list}", () => names.join(words.separator));
  return words.text.replace("{skills}", () => skills) + requestText(pkg);
}

/** The words of the task itself; in snapshot mode those written for it, where there are any. */
export function requestText(pkg: Pick<TaskPackage, "snapshot" | "task">): string {
  return pkg.snapshot ? (pkg.task.task_snapshot ?? pkg.task.task) : pkg.task.task;
}
