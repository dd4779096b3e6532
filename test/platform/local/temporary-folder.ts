import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryFolder {
  path: string;
  remove(): void;
}

/** A new folder for one test, by its real path. */
export function temporaryFolder(): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "proctor-test-")));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
