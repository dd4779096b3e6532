import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Parts of the house, from the bottom up; a part may import from the parts named beside it and from itself. */
const core = ["tasks", "sweep", "attempt", "roles", "trajectory", "interception", "results", "firewall"] as const;
const mayImport: Record<string, readonly string[]> = {
  ...Object.fromEntries(core.map((part) => [part, core])),
  agents: core,
  executor: [...core, "agents"],
  platform: [...core, "agents", "executor"],
  // A handler speaks the executor's wire formats: open-turn seals what the runner opens.
  lambdas: [...core, "agents", "executor"],
  stack: [...core, "agents", "executor", "platform", "lambdas"],
  bin: [...core, "agents", "executor", "platform", "lambdas", "stack"],
  bench: [...core, "agents", "executor", "platform", "lambdas", "bin"],
};

/** What a pure part must not touch: the network, the clock, randomness, processes, AWS. */
const impureModules =
  /^(node:)?(net|http|https|http2|dgram|dns|tls|child_process|cluster|worker_threads)$|^(undici|openai|libsql|@aws-sdk\/)/;
const impureCalls =
  /\bDate\.now\(|new Date\(\)|Math\.random\(|\bsetTimeout\(|\bsetInterval\(|\bfetch\(|randomBytes\(|randomUUID\(/;
/** Files of core parts that are an edge, each with its reason. */
const edges: Record<string, string> = {
  "lib/roles/checks/checks-worker.ts":
    "a worker's entry: it talks over its channel, and starts a process for a database",
};

function partOf(path: string): string {
  const [top, second] = relative(root, path).split("/");
  return top === "lib" ? (second ?? "") : (top ?? "");
}

function sources(): string[] {
  const found: string[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (entry.name.endsWith(".ts")) found.push(path);
    }
  };
  for (const top of ["lib", "lambdas", "bin", "bench"]) walk(join(root, top));
  return found;
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g;

describe("import rules", () => {
  const files = sources().map((path) => {
    const text = readFileSync(path, "utf8");
    const imports = [...text.matchAll(importPattern)].map((match) => (match[1] ?? match[2] ?? match[3]) as string);
    return { path, name: relative(root, path), part: partOf(path), text, imports };
  });

  it("reads the house", () => {
    expect(files.length).toBeGreaterThan(10);
  });

  it("nothing imports upwards", () => {
    const wrong: string[] = [];
    for (const file of files) {
      for (const target of file.imports.filter((name) => name.startsWith("."))) {
        const path = resolve(dirname(file.path), target);
        // The ports are interfaces that import nothing which runs: everyone may name them.
        if (relative(root, path) === "lib/platform/ports.ts") continue;
        const part = partOf(path);
        const allowed = mayImport[file.part];
        if (part !== file.part && !allowed?.includes(part)) wrong.push(`${file.name} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("the core touches no network, clock, randomness or process", () => {
    const wrong: string[] = [];
    for (const file of files) {
      if (!(core as readonly string[]).includes(file.part) || edges[file.name]) continue;
      for (const name of file.imports.filter((target) => impureModules.test(target))) {
        wrong.push(`${file.name} imports ${name}`);
      }
      const call = impureCalls.exec(file.text);
      if (call) wrong.push(`${file.name} calls ${call[0]}`);
    }
    expect(wrong).toEqual([]);
  });

  it("every named edge still exists", () => {
    expect(Object.keys(edges).filter((name) => !files.some((file) => file.name === name))).toEqual([]);
  });
});
