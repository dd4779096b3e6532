/** A text file that a user wrote, looked at before it is read: a device, a pipe or a giant is a problem, not a hang. */
import { readFileSync, statSync } from "node:fs";
import type { Problem } from "./problem.ts";

/** Bytes of one file. The largest public task file has 10 KB. */
const maxTextBytes = 1_048_576;

/** @param expected what the file should be, for the message */
export function readTextFile(file: string, expected: string): string | Problem {
  const wrong = (found: string, want: string): Problem => ({
    file,
    field: "",
    severity: "error",
    found,
    expected: want,
  });
  try {
    const stat = statSync(file);
    if (stat.isDirectory()) return wrong("a folder", expected);
    if (!stat.isFile()) return wrong("a device, pipe or socket", expected);
    if (stat.size > maxTextBytes) return wrong(`${stat.size} bytes`, `at most ${maxTextBytes}`);
    return readFileSync(file, "utf8");
  } catch (error) {
    return wrong(`a file that cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`, expected);
  }
}
