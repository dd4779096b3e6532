import { describe, expect, it } from "vitest";
import { readTaskFile } from "../../lib/tasks/task-file.ts";
import { readYaml } from "../../lib/tasks/yaml-text.ts";

const least = { task_id: "task_1", category: "102_exploration", task: "Do it." };
const errors = (fields: Record<string, unknown>): string[] =>
  readTaskFile({ ...least, ...fields }, "t.yaml").problems.map(
    ({ field, found, expected }) => `${field}: ${found} -> ${expected}`,
  );

describe("a task file", () => {
  it("has the format's defaults", () => {
    const { task, problems } = readTaskFile(least, "t.yaml");
    expect(problems).toEqual([]);
    expect(task).toMatchObject({
      agent_sys: "openclaw",
      agent_id: "main",
      model: "gpt-5.4",
      timeout_seconds: 1200,
      max_total_seconds: 1800,
      success_threshold: 1,
      recording: "none",
      headed: "auto",
      references: [],
      pre_exec_parallel_safe: false,
      network: "web",
      type: "closed_loop",
      codex: {
        max_user_followups: 2,
        user_simulator: { model: "gpt-5.4", reasoning_effort: "high" },
        supervisor: { model: "gpt-5.4", reasoning_effort: "high" },
      },
    });
  });

  it("takes a field without a value as absent", () => {
    expect(readTaskFile({ ...least, sources: null, codex: { supervisor: null } }, "t.yaml").problems).toEqual([]);
  });

  it.each([
    ["timeout_second", "`timeout_seconds`, the nearest known field"],
    ["refrences", "`references`, the nearest known field"],
  ])("names the known field nearest to %s", (field, expected) => {
    expect(errors({ [field]: 1 })).toEqual([`${field}: an unknown field -> ${expected}`]);
  });

  it("names the nearest field in nested objects too", () => {
    expect(errors({ codex: { supervisor: { instruction: "x" }, max_user_followup: 1 } })).toEqual([
      "codex.supervisor.instruction: an unknown field -> `instructions`, the nearest known field",
      "codex.max_user_followup: an unknown field -> `max_user_followups`, the nearest known field",
    ]);
    expect(errors({ services: [{ name: "a", path: "a", start: "x", onshot: true }] })[0]).toContain("`oneshot`");
  });

  it.each([
    ["edict", "`openclaw_edict`"],
    ["openclaw+edict", "`openclaw_edict`"],
    ["nanobott", "`nanobot`"],
    ["something", "one of openclaw, openclaw_edict, nanobot"],
  ])("refuses the agent system %s with the right name", (name, right) => {
    expect(errors({ agent_sys: name })).toEqual([expect.stringContaining(right)]);
  });

  it("refuses privacy and task_live, also when they are empty", () => {
    expect(errors({ privacy: null, task_live: "x" })).toEqual([
      expect.stringMatching(/^privacy: .*`\.privacy`/),
      expect.stringMatching(/^task_live: .*`task_snapshot`/),
    ]);
  });

  it.each(["../x", "a/../b", "/etc/passwd", "C:\\x", "a\\b", "./a", "a//b", ""])(
    "refuses the path %j everywhere",
    (path) => {
      expect(errors({ references: [path] })).toHaveLength(1);
      expect(errors({ sources: [path] })).toHaveLength(1);
      expect(errors({ skills: [path] })).toHaveLength(1);
      expect(errors({ pre_exec: [path] })).toHaveLength(1);
      expect(errors({ services: [{ name: "s", path, start: "x" }] })).toHaveLength(1);
    },
  );

  it("refuses a pre_exec script that the agent could read", () => {
    expect(errors({ pre_exec: ["sources/setup.py"] })[0]).toContain("outside sources/");
    expect(errors({ pre_exec: ["ops/setup.py"] })).toEqual([]);
  });

  it.each([
    [true, true],
    ["headed", true],
    [1, true],
    ["yes", true],
    [false, false],
    ["headless", false],
    [0, false],
    ["no", false],
    ["auto", "auto"],
  ])("reads headed: %j as %j", (written, meant) => {
    expect(readTaskFile({ ...least, headed: written }, "t.yaml").task?.headed).toBe(meant);
  });

  it.each([
    ["task_id", "-x"],
    ["task_id", "a b"],
    ["task_id", "x".repeat(181)],
    ["category", "../x"],
    ["task", "  "],
    ["timeout_seconds", 0],
    ["timeout_seconds", "1200"],
    ["success_threshold", 1.5],
    ["recording", "medium"],
    ["headed", "maybe"],
    ["network", "none"],
    ["codex", { max_user_followups: -1 }],
    ["codex", { supervisor: { reasoning_effort: "extreme" } }],
  ])("refuses %s: %j with what was found and what is expected", (field, value) => {
    const { task, problems } = readTaskFile({ ...least, [field]: value }, "t.yaml");
    expect(task).toBeNull();
    expect(problems).toHaveLength(1);
    expect(problems[0]?.field.startsWith(field)).toBe(true);
    expect(problems[0]?.expected).not.toBe("");
  });

  it("takes an id of 120 characters", () => {
    expect(errors({ task_id: `t${"x".repeat(119)}` })).toEqual([]);
  });

  it("tells every problem at once", () => {
    expect(errors({ task: "", timeout_seconds: -1, recording: "x", sourses: [] })).toHaveLength(4);
  });

  it("warns of a total that no turn fits into", () => {
    const { task, problems } = readTaskFile({ ...least, max_total_seconds: 60 }, "t.yaml");
    expect(task).not.toBeNull();
    expect(problems).toMatchObject([{ severity: "warning", field: "max_total_seconds" }]);
  });

  it.each([[null], [[]], ["text"], [3]])("refuses a document that is %j", (document) => {
    expect(readTaskFile(document, "t.yaml").problems).toHaveLength(1);
  });
});

describe("YAML of a user", () => {
  it("tells the line of a fault", () => {
    const read = readYaml("a: 1\nb: [1, 2\nc: 3\n", "t.yaml");
    expect(read).toMatchObject({
      ok: false,
      problem: { file: "t.yaml", found: expect.stringMatching(/line [23], column \d+/) },
    });
  });

  it.each([
    ["a key twice", "a: 1\na: 2\n"],
    ["two documents", "a: 1\n---\nb: 2\n"],
    ["an alias bomb", `a: &a [1,2,3,4,5,6,7,8,9]\n${bomb()}`],
    ["absurd nesting", "[".repeat(100_000)],
    ["a huge file", `a: ${"x".repeat(1_100_000)}`],
  ])("refuses %s with one problem", (_, text) => {
    expect(readYaml(text, "t.yaml").ok).toBe(false);
  });
});

function bomb(): string {
  const names = "abcdefghij";
  return [...names.slice(1)]
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${names[index]}`).join(",")}]`)
    .join("\n");
}
