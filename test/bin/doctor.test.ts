import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import doctor, { type Check, examine, type Machine } from "../../bin/commands/doctor.ts";

let folder: string;
let well: Machine;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "doctor-"));
  mkdirSync(join(folder, "dist"));
  for (const name of ["runner-main", "turn-server-main", "mini-main", "null-main", "checks-worker"]) {
    writeFileSync(join(folder, "dist", `${name}.js`), "");
  }
  well = {
    nodeVersion: "v22.12.0",
    bundles: join(folder, "dist"),
    isolation: async () => ({
      bwrap: true,
      path: "/usr/bin/bwrap",
      version: "bubblewrap 0.8.0",
      features: { size: true, disableUserns: true },
    }),
    runs: join(folder, "runs"),
    folder,
    secrets: { get: async (name) => (name === "SET_KEY" ? "sk-canary" : null) },
    temporary: "/tmp",
    openFiles: async () => 1_048_576,
    trySqlite: async () => {},
  };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const named = (checks: Check[], name: string): Check => checks.find((check) => check.name === name) as Check;

describe("proctor doctor", () => {
  it("finds nothing wrong with a machine that has all", async () => {
    const checks = await examine(well);
    expect(checks.filter((check) => check.status !== "ok" && check.name !== "runs folder")).toEqual([]);
    expect(named(checks, "runs folder").status).not.toBe("error");
  });

  it.each<[string, Partial<Machine>, string, Check["status"], RegExp]>([
    ["an old Node", { nodeVersion: "v20.18.3" }, "node", "error", /20\.19/],
    ["an odd Node", { nodeVersion: "v23.1.0" }, "node", "error", /24/],
    ["bundles that were not built", { bundles: "/nowhere" }, "bundles", "error", /npm run build/],
    [
      "no sandbox",
      { isolation: async () => ({ bwrap: false, reason: "bwrap is not on PATH", remedy: "install it" }) },
      "sandbox",
      "warning",
      /install it/,
    ],
    ["a folder that cannot be made", { runs: "/proc/1/runs" }, "runs folder", "error", /--runs/],
    [
      "SQLite that does not load",
      {
        trySqlite: async () => {
          throw new Error("no binary for this platform");
        },
      },
      "sqlite",
      "error",
      /npm ci/,
    ],
    ["a long path of temporary files", { temporary: `/${"t".repeat(90)}` }, "temporary files", "error", /TMPDIR/],
    ["few open files", { openFiles: async () => 256 }, "open files", "warning", /ulimit/],
  ])("names %s and what to do", async (_what, lacks, name, status, remedy) => {
    const check = named(await examine({ ...well, ...lacks }), name);
    expect(check.status).toBe(status);
    expect(check.remedy).toMatch(remedy);
  });

  it("says which keys of models.yaml are there, and shows none", async () => {
    const provider = (key: string): string => `{ api: chat, baseUrl: "https://x.example/v1", keyName: ${key} }`;
    writeFileSync(
      join(folder, "models.yaml"),
      `providers:\n  a: ${provider("SET_KEY")}\n  b: ${provider("UNSET_KEY")}\n  c: { api: scripted, script: s }\n`,
    );
    const checks = await examine(well);
    expect(named(checks, "provider a")).toMatchObject({ status: "ok", found: "SET_KEY is set" });
    expect(named(checks, "provider b")).toMatchObject({ status: "warning", found: "UNSET_KEY is not set" });
    expect(named(checks, "provider c").status).toBe("ok");
    expect(JSON.stringify(checks)).not.toContain("sk-canary");
  });

  it.each([
    ["broken YAML", "providers: [", /models\.yaml/],
    ["an unknown field", "providers:\n  a: { api: scripted, scrip: s }\n", /scrip/],
  ])("names what is wrong with a models.yaml with %s", async (_what, text, names) => {
    writeFileSync(join(folder, "models.yaml"), text);
    const checks = (await examine(well)).filter((check) => check.status === "error");
    expect(checks).toHaveLength(1);
    expect(checks[0]?.found).toMatch(names);
  });

  it("answers as one object, and with exit code 1 where something is an error", async () => {
    const { exitCode, text } = await doctor([], { json: true, runs: "/proc/1/runs" });
    const answer = JSON.parse(text);
    expect(answer.ok).toBe(false);
    expect(exitCode).toBe(1);
    for (const check of answer.checks) expect(Object.keys(check).sort()).toEqual(["found", "name", "remedy", "status"]);
  });

  it("is readable as text", async () => {
    const { text } = await doctor([], { runs: "/proc/1/runs" });
    expect(text).toMatch(/^ok +node/m);
    expect(text).toMatch(/-> name a folder/);
    expect(text.endsWith("Proctor cannot run here yet.")).toBe(true);
  });
});
