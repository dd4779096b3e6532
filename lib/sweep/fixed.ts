/**
 * An edited sweep of the same name keeps its finished attempts, so what would mix results under that name is refused.
 * New agents, models, tasks and epochs may come, others go; a higher dollar cap, other concurrency, retries, seed and order are fine.
 */
import { canonicalJson } from "../tasks/canonical.ts";
import { type Problem, shown } from "../tasks/problem.ts";

/** Members that hold one value for each name; only names that both texts have are compared. */
const byName = new Set(["agents", "models"]);

/**
 * Differences between the stored `fixed` text of a sweep and that of the file as it is now.
 * @param file the sweep file, for messages
 */
export function fixedProblems(file: string, stored: string, now: string): Problem[] {
  const before = JSON.parse(stored) as Record<string, unknown>;
  const after = JSON.parse(now) as Record<string, unknown>;
  const problems: Problem[] = [];
  const compare = (field: string, a: unknown, b: unknown): void => {
    if (canonicalJson(a ?? null) === canonicalJson(b ?? null)) return;
    problems.push({
      file,
      field,
      severity: "error",
      found: `${shown(b ?? null)} where this sweep has run with ${shown(a ?? null)}`,
      expected: "what it has run with, or a new name: results under one name have to be comparable",
    });
  };
  const members = (value: unknown): Record<string, unknown> =>
    typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [a, b] = [members(before[field]), members(after[field])];
    if (byName.has(field)) {
      for (const name of Object.keys(a)) if (Object.hasOwn(b, name)) compare(`${field}.${name}`, a[name], b[name]);
    } else if (field === "limits") {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) compare(`limits.${name}`, a[name], b[name]);
    } else compare(field, before[field], after[field]);
  }
  return problems;
}
