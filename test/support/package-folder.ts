/** Task packages written into a temporary folder, in UniClawBench's layout. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface PackageFolder {
  path: string;
  write(path: string, content: string | Uint8Array): void;
  /** A package that loads; `fields` is YAML that follows its id, category and request. */
  add(
    id: string,
    given?: { category?: string; fields?: string; files?: Record<string, string>; task?: string },
  ): string;
  remove(): void;
}

export function packageFolder(): PackageFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "proctor-packages-")));
  const write = (name: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  };
  return {
    path,
    write,
    add(id, { category = "102_exploration", fields = "", files = {}, task = "Do it." } = {}) {
      write(
        `tasks/${category}/${id}.yaml`,
        `task_id: ${id}\ncategory: ${category}\ntask: ${JSON.stringify(task)}\n${fields}\n`,
      );
      const folder = `injection/${category}/${id}`;
      write(`${folder}/references/eval_rule.md`, "# Rubric\n");
      for (const [name, content] of Object.entries(files)) write(`${folder}/${name}`, content);
      return folder;
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

export const publicPackages = "test/fixtures/uniclawbench";
