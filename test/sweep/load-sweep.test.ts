import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { expandSweep } from "../../lib/sweep/expand.ts";
import { type LoadedSweep, loadSweep, type SweepContext } from "../../lib/sweep/load-sweep.ts";
import { type Problem, ProblemsError } from "../../lib/tasks/problem.ts";
import { type PackageFolder, packageFolder } from "../support/package-folder.ts";

const checked = { "references/checks.yaml": "checkpoints: [{id: CP1, weight: 1, check: {kind: file_exists}}]" };
const providers = {
  rehearsed: { api: "scripted", script: "scripts", models: { a: null, b: null } },
  real: {
    api: "chat",
    baseUrl: "https://api.example.org/v1",
    keyName: "KEY",
    models: { gpt: { price: { input: 1, output: 2 } }, unpriced: null },
  },
};

describe("loading a sweep", () => {
  let folder: PackageFolder;
  let sweep: Record<string, unknown>;
  beforeEach(() => {
    folder = packageFolder();
    folder.add("task_1", { files: checked });
    folder.add("task_2", { category: "103_long_context", files: checked });
    folder.write("sweeps/models.yaml", JSON.stringify({ providers }));
    mkdirSync(join(folder.path, "sweeps/scripts"));
    sweep = {
      name: "s",
      packages: "..",
      agents: ["mini"],
      models: [{ name: "a", provider: "rehearsed" }],
      supervisor: "checks",
      userSimulator: "none",
    };
  });
  afterEach(() => folder.remove());

  const file = (): string => join(folder.path, "sweeps/sweep.yaml");
  const load = (change: Record<string, unknown> = {}, context: Partial<SweepContext> = {}): Promise<LoadedSweep> => {
    folder.write("sweeps/sweep.yaml", JSON.stringify({ ...sweep, ...change }));
    const agents = [
      {
        name: "mini",
        version: "1.2",
        networks: ["web", "offline"] as const,
        options: z.strictObject({ steps: z.number().optional() }),
      },
      { name: "browser", version: "1", networks: ["guarded"] as const },
    ];
    return loadSweep(file(), { agents, socket: "/run/s.sock", env: {}, ...context });
  };
  const problems = async (
    change: Record<string, unknown>,
    context?: Partial<SweepContext>,
  ): Promise<readonly Problem[]> => {
    const error = await load(change, context).then(
      () => null,
      (reason: unknown) => reason,
    );
    if (!(error instanceof ProblemsError)) throw new Error(`no problems, but ${String(error)}`);
    return error.problems;
  };

  it("gives a plan that expands, and the contents to publish", async () => {
    const loaded = await load({
      agents: [{ name: "mini", options: { steps: 3 } }],
      models: [...(sweep.models as []), { name: "gpt", provider: "real" }],
    });
    expect(loaded.warnings).toEqual([]);
    expect(loaded.contents.map((content) => content.task)).toEqual(["task_1", "task_2"]);
    const { lanes, planned } = expandSweep(loaded.plan, 1);
    expect(planned).toBe(4);
    expect(lanes[0]?.lines[0]).toMatchObject({
      agent: { name: "mini", version: "1.2", options: { steps: 3 } },
      model: { api: "scripted", socket: "/run/s.sock", script: join(folder.path, "sweeps/scripts") },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(lanes[1]?.lines[0]?.model).toEqual({
      name: "gpt",
      provider: "real",
      api: "chat",
      baseUrl: "https://api.example.org/v1",
      keyName: "KEY",
      price: { input: 1, output: 2 },
    });
  });

  it("hashes and judges only what it runs", async () => {
    folder.add("task_3", { fields: "sources: [gone.txt]", files: checked });
    folder.write("tasks/102_exploration/task_4.yaml", "broken: [");
    expect((await load({ tasks: ["task_1"] })).contents).toHaveLength(1);
    expect(await problems({})).toMatchObject([
      { found: expect.stringContaining("broken YAML") },
      { field: "sources.0" },
    ]);
  });

  it.each([
    ["an unknown agent", { agents: ["minni"] }, "agents.0", "`mini`"],
    ["another version", { agents: [{ name: "mini", version: "2" }] }, "agents.0.version", "1.2"],
    ["unknown options", { agents: [{ name: "mini", options: { stepz: 1 } }] }, "agents.0.options", "options of mini"],
    ["an agent twice", { agents: ["mini", "mini"] }, "agents.1", "once"],
    ["an unknown provider", { models: [{ name: "a", provider: "reel" }] }, "models.0.provider", "`real`"],
    ["an unknown model", { models: [{ name: "gtp", provider: "real" }] }, "models.0.name", "`gpt`"],
    [
      "a model twice",
      {
        models: [
          { name: "a", provider: "rehearsed" },
          { name: "a", provider: "rehearsed" },
        ],
      },
      "models.1",
      "once",
    ],
    [
      "a supervisor that is unknown",
      { supervisor: { model: { name: "x", provider: "real" } } },
      "supervisor.model.name",
      "gpt",
    ],
    ["an unknown field", { epoch: 2 }, "epoch", "`epochs`"],
    ["a raised limit", { limits: { turnSeconds: 3600 } }, "limits.turnSeconds", "at most 1200"],
    ["a glob that matches nothing", { tasks: ["task_11"] }, "tasks.0", "`task_1`"],
    ["globs that leave nothing", { tasks: ["*", "!*"] }, "tasks", "at least one task"],
    ["a missing folder of packages", { packages: "gone" }, "packages", "tasks/<category>"],
    ["a missing folder of checks", { checks: "gone" }, "checks", "folder"],
    ["a cap below one attempt", { limits: { usd: 1 } }, "limits.usd", "enough for one attempt"],
    ["a cap without a worst case", { limits: { usd: 9, usdPerAttempt: null } }, "limits.usdPerAttempt", "reserves"],
    ["a cap of an unknown model", { limits: { perModel: { aa: 1 } } }, "limits.perModel.aa", "`a`"],
  ])("refuses %s", async (_, change, field, expected) => {
    const found = await problems(change);
    expect(found.map((problem) => problem.field)).toEqual([field]);
    expect(found[0]?.expected).toContain(expected);
    expect(found[0]?.file).toContain("sweep.yaml");
  });

  it("refuses a real model without a price under any dollar cap, and warns of it without", async () => {
    const models = [{ name: "unpriced", provider: "real" }];
    for (const limits of [{ usd: 50 }, { usdPerAttempt: 1 }, { usdJudging: 1 }]) {
      expect(await problems({ models, limits })).toMatchObject([{ field: "models.0.price", severity: "error" }]);
    }
    expect((await load({ models })).warnings).toMatchObject([{ field: "models.0.price", severity: "warning" }]);
    const priced = [{ ...models[0], price: { input: 0, output: 0 } }];
    expect((await load({ models: priced, limits: { usd: 50 } })).warnings).toEqual([]);
  });

  it("refuses a scripted model whose folder is missing, or that has none", async () => {
    folder.write(
      "sweeps/models.yaml",
      JSON.stringify({ providers: { rehearsed: { api: "scripted", models: { a: null, b: { script: "gone" } } } } }),
    );
    expect(await problems({})).toMatchObject([{ field: "providers.rehearsed", found: "no script" }]);
    expect(await problems({ models: [{ name: "b", provider: "rehearsed" }] })).toMatchObject([
      { found: expect.stringContaining("sweeps/gone") },
    ]);
  });

  it("refuses a task in a network that the agent does not work in", async () => {
    folder.add("task_1", { fields: "network: guarded", files: checked });
    expect(await problems({})).toMatchObject([
      { field: "network", found: "guarded", expected: expect.stringContaining("web or offline") },
    ]);
  });

  it("refuses what a package needs and this version cannot give", async () => {
    folder.add("task_1", { files: { ...checked, ".privacy": "TOKEN\n" } });
    expect((await problems({})).map((problem) => problem.found)).toEqual([
      "privacy values (TOKEN)",
      "no value for TOKEN",
    ]);
    expect((await load({ tasks: ["*", "!task_1"] })).packages).toHaveLength(1);
  });

  it("wants every checkpoint decided when checks alone supervise", async () => {
    folder.add("task_3");
    folder.write(
      "checks/task_2.yaml",
      "checkpoints: [{id: CP1, weight: 0.5, judge: true}, {id: CP2, weight: 0.5, check: {kind: x}}]",
    );
    expect((await problems({ checks: "../checks" })).map((problem) => problem.found)).toEqual([
      expect.stringMatching(/task_3 has none/),
      expect.stringMatching(/leaves CP1 to a judge/),
    ]);
    const supervisor = { model: { name: "a", provider: "rehearsed" } };
    expect((await load({ checks: "../checks", supervisor })).packages).toHaveLength(3);
  });

  it("makes the checks beside a sweep part of the digest", async () => {
    const digest = async (change = {}) => (await load({ tasks: ["task_1"], ...change })).contents[0]?.digest;
    folder.write("checks/task_1.yaml", "checkpoints: [{id: CP1, weight: 1, check: {kind: other}}]");
    expect(await digest({ checks: "../checks" })).not.toBe(await digest());
  });

  it.each([
    ["sweep", "sweeps/sweep.yaml"],
    ["models", "sweeps/models.yaml"],
  ])("tells a broken %s file with its line", async (_, path) => {
    folder.write("sweeps/sweep.yaml", JSON.stringify(sweep));
    folder.write(path, "a: 1\nb: [\n");
    await expect(loadSweep(file(), { agents: [], socket: "", env: {} })).rejects.toThrow(/broken YAML at line \d/);
  });

  it("warns of checks whose file name is almost a task's id", async () => {
    for (const name of ["task_1.yml", "task1.yaml", "other.yaml", "task_2.yaml"]) {
      folder.write(`sweeps/checks/${name}`, checked["references/checks.yaml"]);
    }
    const { warnings } = await load({ checks: "checks" });
    const names = warnings.map((warning) => [warning.file.split("/").at(-1), warning.expected.split(",")[0]]);
    expect(names).toEqual([
      ["task1.yaml", "task_1.yaml"],
      ["task_1.yml", "task_1.yaml"],
    ]);
  });

  it("says which file is missing", async () => {
    await expect(loadSweep(join(folder.path, "gone.yaml"), { agents: [], socket: "", env: {} })).rejects.toThrow(
      "gone.yaml",
    );
    expect(await problems({ modelsFile: "gone.yaml" })).toMatchObject([{ file: expect.stringMatching(/gone\.yaml$/) }]);
  });

  it("tells what is wrong in every file at once", async () => {
    folder.add("task_1", { fields: "sources: [gone.txt]", files: checked });
    const found = await problems({
      agents: ["x"],
      models: [{ name: "y", provider: "z" }],
      limits: { turnSeconds: 9999 },
      tasks: ["*", "nope"],
    });
    expect(found.map((problem) => problem.field)).toEqual([
      "models.0.provider",
      "agents.0",
      "sources.0",
      "tasks.1",
      "limits.turnSeconds",
    ]);
  });
});
