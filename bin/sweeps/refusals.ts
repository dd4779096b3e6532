/** What stops a sweep before anything of it is started or paid for. */
import type { ManifestLine } from "../../lib/sweep/manifest-line.ts";
import { type Problem, ProblemsError, problemLine } from "../../lib/tasks/problem.ts";

/**
 * What can be seen to fail: keys that are not there, an API that this version does not speak.
 * @param file the sweep file, or the sweep's name where it goes on without one
 * @throws ProblemsError with all of it
 */
export function refuseWhatFails(file: string, planned: readonly ManifestLine[]): void {
  const problems: Problem[] = [];
  const missing = new Set<string>();
  for (const line of planned) {
    for (const role of [line.model, roleModel(line.supervisor), roleModel(line.userSimulator)]) {
      if (role === null || role.api === "scripted") continue;
      if (role.keyName !== null && !process.env[role.keyName]) missing.add(role.keyName);
      if (role.api !== "chat") {
        problems.push({
          file,
          field: "models",
          severity: "error",
          found: `${role.name} of ${role.provider} with the api \`${role.api}\``,
          expected: "the api `chat` (or `scripted`): this version speaks no other",
        });
      }
    }
  }
  for (const key of missing) {
    problems.push({
      file,
      field: "models",
      severity: "error",
      found: `no value of ${key}`,
      expected: `the provider's key in the environment variable ${key}`,
    });
  }
  refuseOnErrors(problems);
}

/** @throws ProblemsError with all problems, each once, when one of them is an error */
export function refuseOnErrors(problems: readonly Problem[]): void {
  const unique = [...new Map(problems.map((problem) => [problemLine(problem), problem])).values()];
  if (unique.some((problem) => problem.severity === "error")) throw new ProblemsError(unique);
}

function roleModel(role: ManifestLine["supervisor"] | ManifestLine["userSimulator"]): ManifestLine["model"] | null {
  return role.kind === "model" ? role.model : null;
}
