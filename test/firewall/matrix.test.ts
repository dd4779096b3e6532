import { describe, expect, it } from "vitest";
import {
  decisionFileKey,
  evidenceFileKey,
  followUpFileKey,
  followUpUsageKey,
  judgingUsageKey,
  mailboxKey,
  manifestKey,
  type ObjectName,
  packageFile,
  packagePrefix,
  rubricKey,
} from "../../lib/firewall/keys.ts";
import {
  allows,
  columnOf,
  type columns,
  matrix,
  type ObjectColumn,
  objectColumns,
  scoresAccess,
  type Verb,
} from "../../lib/firewall/matrix.ts";
import type { Identity, Role } from "../../lib/platform/ports.ts";

const digest = "d".repeat(64);
const own = { attempt: "attemptaaaaaaaaaaaaaaaaaaa", try: 1 };
const other = { attempt: "attemptbbbbbbbbbbbbbbbbbbb", try: 1 };

/** One object of each column that no right is narrowed to, of the grant's own package and try. */
const sample: Record<ObjectColumn, ObjectName> = {
  agent: packageFile("task_1", digest, "agent", "sources/a.txt"),
  runner: packageFile("task_1", digest, "runner", "package.json"),
  simulator: packageFile("task_1", digest, "simulator", "policy.json"),
  hidden: packageFile("task_1", digest, "hidden", "references/eval_rule.md"),
  evidence: evidenceFileKey(own, 1, "results/manifest.json"),
  followups: followUpFileKey(own, "turn-02.json"),
  decisions: decisionFileKey(own, 1, "step-01.json"),
  mailbox: mailboxKey("random", 1),
  results: { bucket: "results", key: "reports/sweep/index.html" },
};

/**
 * The table of the architecture once more, by hand: g get, c create, l list of unnarrowed objects, in the order of
 * `objectColumns` (agent, runner, simulator, hidden, evidence, followups, decisions, mailbox, results).
 */
const expected: Record<Role, readonly string[]> = {
  "executor-task": ["", "", "", "", "", "", "", "gl", ""],
  "turn-grant": ["gl", "gl", "", "", "c", "", "", "", ""],
  preflight: ["gl", "gl", "", "l", "", "", "", "", "gl"],
  prepare: ["gl", "gl", "gl", "l", "", "", "", "", ""],
  "open-turn": ["gl", "gl", "", "", "", "gl", "", "c", ""],
  supervisor: ["gl", "", "", "gl", "gl", "gl", "cgl", "", ""],
  "user-simulator": ["gl", "", "gl", "", "gl", "cgl", "", "", ""],
  record: ["", "", "", "", "", "gl", "", "", ""],
  compact: ["", "", "", "", "", "", "", "", "c"],
  reaper: ["", "", "", "", "", "", "", "", ""],
  "state-machine": ["", "", "", "", "", "", "", "", ""],
  "runner-container": ["", "", "", "", "", "", "", "", ""],
  operator: ["cl", "cl", "cl", "cl", "gl", "gl", "gl", "", "cgl"],
};
const roles = Object.keys(expected) as Role[];
const verbs: readonly Verb[] = ["get", "create", "list"];

function identityOf(role: Role): Identity {
  return role === "turn-grant" ? { role, try: own, package: { task: "task_1", digest } } : { role };
}
const folderOf = (name: ObjectName): ObjectName => ({ ...name, key: name.key.slice(0, name.key.lastIndexOf("/") + 1) });

describe("access matrix", () => {
  it("has every role and no other", () => {
    expect(Object.keys(matrix).sort()).toEqual([...roles].sort());
  });

  for (const role of roles) {
    for (const [at, column] of objectColumns.entries()) {
      for (const verb of verbs) {
        const may = expected[role][at]!.includes(verb[0]!);
        it(`${role} ${may ? "may" : "may not"} ${verb} in ${column}`, () => {
          const name = verb === "list" ? folderOf(sample[column]) : sample[column];
          expect(columnOf(sample[column])).toBe(column);
          expect(allows(identityOf(role), verb, name)).toBe(may);
        });
      }
    }
  }

  it("gives the scores table by role", () => {
    expect(Object.fromEntries(roles.map((role) => [role, scoresAccess(role)]))).toEqual({
      "executor-task": "none",
      "turn-grant": "none",
      preflight: "read",
      prepare: "write",
      "open-turn": "lease",
      supervisor: "none",
      "user-simulator": "none",
      record: "write",
      compact: "read",
      reaper: "write",
      "state-machine": "none",
      "runner-container": "none",
      operator: "write",
    });
  });

  it("gives privacy values and keys to those that need them", () => {
    const named = (column: (typeof columns)[number]): string[] =>
      roles.filter((role) => (matrix[role][column] ?? []).length > 0);
    expect(named("privacy")).toEqual(["open-turn", "supervisor", "operator"]);
    expect(named("keys")).toEqual(["supervisor", "user-simulator", "runner-container", "operator"]);
    expect(matrix["user-simulator"].keys).toEqual([{ right: "R", only: ["simulator key"] }]);
  });
});

describe("rights narrowed to kinds of files", () => {
  const cases: [Role, Verb, ObjectName, boolean][] = [
    ["record", "get", evidenceFileKey(own, 1, "report.json"), true],
    ["record", "get", evidenceFileKey(own, 1, "manifest.json"), true],
    ["record", "get", evidenceFileKey(own, 1, "usage.jsonl"), true],
    ["record", "get", evidenceFileKey(own, 1, "transcript.jsonl"), false],
    ["record", "get", evidenceFileKey(own, 1, "results/report.json"), false],
    ["record", "get", decisionFileKey(own, 1, "decision.json"), true],
    ["record", "get", judgingUsageKey(own, 1, 12), true],
    ["record", "get", decisionFileKey(own, 1, "model-calls.jsonl"), false],
    ["record", "get", rubricKey(digest), false],
    ["record", "list", { bucket: "evidence", key: "attempts/" }, false],
    ["compact", "get", evidenceFileKey(own, 1, "usage.jsonl"), true],
    ["compact", "get", followUpUsageKey(own, 2, 1), true],
    ["compact", "get", followUpFileKey(own, "turn-02.json"), false],
    ["compact", "get", judgingUsageKey(own, 1, 12), true],
    ["compact", "get", decisionFileKey(own, 1, "decision.json"), false],
    ["compact", "get", { bucket: "results", key: "scores/sweep_id=s/compaction=01/a.parquet" }, false],
    ["state-machine", "get", manifestKey("s", 1, "model"), true],
    ["state-machine", "get", { bucket: "results", key: "reports/s/manifest-model.jsonl" }, false],
    ["state-machine", "create", { bucket: "results", key: "maps/run/result.json" }, true],
    ["state-machine", "create", manifestKey("s", 1, "model"), false],
    ["supervisor", "create", rubricKey(digest), true],
    ["user-simulator", "get", rubricKey(digest), false],
  ];
  for (const [role, verb, name, may] of cases) {
    it(`${role} ${may ? "may" : "may not"} ${verb} ${name.bucket}/${name.key}`, () => {
      expect(allows(identityOf(role), verb, name)).toBe(may);
    });
  }
});

describe("what is a role's own", () => {
  const grant = identityOf("turn-grant");

  it("ends at the try and the package of a turn's grant", () => {
    expect(allows(grant, "create", evidenceFileKey(other, 1, "report.json"))).toBe(false);
    expect(allows(grant, "create", evidenceFileKey({ ...own, try: 2 }, 1, "report.json"))).toBe(false);
    expect(allows(grant, "get", packageFile("task_2", digest, "agent", "request.md"))).toBe(false);
    expect(allows(grant, "get", packageFile("task_1", "e".repeat(64), "agent", "request.md"))).toBe(false);
    expect(allows(grant, "list", packagePrefix("task_1", digest, "agent"))).toBe(true);
    expect(allows(grant, "list", { bucket: "tasks", key: `packages/task_1@${digest}/` })).toBe(false);
    expect(allows(grant, "get", evidenceFileKey(own, 1, "report.json"))).toBe(false);
  });

  it("ends at the attempt of a function that is bound to one", () => {
    const simulator: Identity = { role: "user-simulator", attempt: own.attempt };
    const supervisor: Identity = { role: "supervisor", attempt: own.attempt };
    expect(allows(simulator, "create", followUpFileKey({ ...own, try: 3 }, "turn-02.json"))).toBe(true);
    expect(allows(simulator, "get", followUpFileKey(other, "turn-02.json"))).toBe(false);
    expect(allows(supervisor, "create", decisionFileKey(own, 2, "decision.json"))).toBe(true);
    expect(allows(supervisor, "get", decisionFileKey(other, 2, "decision.json"))).toBe(false);
    expect(allows(supervisor, "get", rubricKey(digest))).toBe(true);
  });
});

describe("keys outside the columns", () => {
  const nowhere: ObjectName[] = [
    { bucket: "tasks", key: "packages/t@d/secret/a" },
    { bucket: "tasks", key: "packages/t@d/hidden/references/eval_rule.md" },
    { bucket: "tasks", key: "other/t@d/agent/a" },
    { bucket: "hidden", key: "stray" },
    { bucket: "evidence", key: "attempt/x" },
    { bucket: "results", key: "manifest.jsonl" },
  ];
  for (const name of nowhere) {
    it(`are closed to everyone: ${name.bucket}/${name.key}`, () => {
      for (const role of roles) {
        for (const verb of verbs) expect(allows(identityOf(role), verb, name)).toBe(false);
      }
    });
  }

  it("a prefix over several columns may be listed only by who may list them all", () => {
    const all = { bucket: "evidence", key: "" } as const;
    expect(allows({ role: "supervisor" }, "list", all)).toBe(false);
    expect(allows({ role: "operator" }, "list", all)).toBe(false);
    expect(allows({ role: "operator" }, "list", { bucket: "tasks", key: "pack" })).toBe(true);
    expect(allows({ role: "supervisor" }, "list", { bucket: "tasks", key: "packages/" })).toBe(false);
    expect(allows({ role: "preflight" }, "list", { bucket: "hidden", key: "" })).toBe(false);
    expect(allows({ role: "preflight" }, "list", { bucket: "hidden", key: "packages/" })).toBe(true);
  });
});
