/** Which tasks a list of globs chooses. */
import picomatch from "picomatch";

export interface Choice<T> {
  /** In the order of the tasks that were given. */
  chosen: T[];
  /** Globs that matched nothing. */
  idle: string[];
}

/**
 * Globs on task id or category, `!` excludes; a list of exclusions alone starts from every task. An exclusion wins wherever
 * it stands in the list.
 */
export function chooseTasks<T extends { id: string; category: string }>(
  tasks: readonly T[],
  globs: readonly string[],
): Choice<T> {
  const rules = globs.map((glob) => {
    const excludes = glob.startsWith("!");
    const matches = picomatch(excludes ? glob.slice(1) : glob, { nonegate: true, dot: true });
    return { glob, excludes, matches: (task: T): boolean => matches(task.id) || matches(task.category), used: false };
  });
  const includes = rules.filter((rule) => !rule.excludes);
  const excludes = rules.filter((rule) => rule.excludes);
  const chosen = tasks.filter((task) => {
    // Every rule is tried, so that a glob counts as used although another one decided.
    const wanted = includes.filter((rule) => rule.matches(task));
    const unwanted = excludes.filter((rule) => rule.matches(task));
    for (const rule of [...wanted, ...unwanted]) rule.used = true;
    return (includes.length === 0 || wanted.length > 0) && unwanted.length === 0;
  });
  return { chosen, idle: rules.filter((rule) => !rule.used).map((rule) => rule.glob) };
}
