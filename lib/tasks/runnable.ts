/** What a package needs that this version cannot give yet: a run refuses it rather than running it under a weaker setting. */
import { missingPrivacy, type TaskPackage } from "./package.ts";
import type { Problem } from "./problem.ts";

/** Each need by name; nothing when the package can run here. `env`: where privacy values are looked up. */
export function runnableProblems(
  pkg: Pick<TaskPackage, "file" | "task" | "privacy">,
  env: Readonly<Record<string, string | undefined>>,
): Problem[] {
  const { task } = pkg;
  const needs: { field: string; found: string }[] = [];
  const list = (names: readonly string[]): string => names.join(", ");
  if (task.services.length > 0) {
    needs.push({ field: "services", found: `services (${list(task.services.map((service) => service.name))})` });
  }
  if (task.pre_exec.length > 0) needs.push({ field: "pre_exec", found: `pre_exec scripts (${list(task.pre_exec)})` });
  if (task.skills.length > 0) needs.push({ field: "skills", found: `skills (${list(task.skills)})` });
  if (task.recording !== "none") needs.push({ field: "recording", found: `recording ${task.recording}` });
  if (task.type === "interception") needs.push({ field: "type", found: "type interception" });
  if (pkg.privacy.length > 0) needs.push({ field: ".privacy", found: `privacy values (${list(pkg.privacy)})` });
  const problems = needs.map(
    ({ field, found }): Problem => ({
      file: pkg.file,
      field,
      severity: "error",
      found,
      expected:
        "a package without it: this version cannot run that yet; leave the task out with `!` in the sweep's tasks",
    }),
  );
  const missing = missingPrivacy(pkg.privacy, env);
  if (missing.length > 0) {
    problems.push({
      file: pkg.file,
      field: ".privacy",
      severity: "error",
      found: `no value for ${list(missing)}`,
      expected: "these variables in the environment of the run",
    });
  }
  return problems;
}
