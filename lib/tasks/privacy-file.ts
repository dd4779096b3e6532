/** `.privacy`: names of the environment variables that a task needs, one a line. It never holds values. */
import type { Problem } from "./problem.ts";

/** Blank lines and `#` comments are skipped; a name that stands twice counts once. */
export function readPrivacyFile(text: string, file: string): { names: string[]; problems: Problem[] } {
  const names = new Set<string>();
  const problems: Problem[] = [];
  text.split(/\r?\n/).forEach((raw, index) => {
    const line = raw
      .replace(/^\ufeff/, "")
      .replace(/#.*$/, "")
      .trim();
    if (line === "") return;
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(line)) names.add(line);
    else {
      const assigned = /^([A-Za-z_][A-Za-z0-9_]*)\s*=/.exec(line);
      problems.push({
        file,
        field: `line ${index + 1}`,
        severity: "error",
        // The line may hold a secret: it is not repeated.
        found: assigned ? `a value for ${assigned[1]}` : "something that is no name",
        expected: "the name of an environment variable alone; its value belongs into the environment",
      });
    }
  });
  return { names: [...names], problems };
}
