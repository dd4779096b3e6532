/** A plan of a sweep for tests of its expansion. */
import type { PlannedTask, SweepPlan } from "../../lib/sweep/expand.ts";
import type { ResolvedModel } from "../../lib/sweep/resolve-model.ts";
import { readSweepFile, type SweepFile } from "../../lib/sweep/sweep-file.ts";

export function plannedTask(id: string, change: Partial<PlannedTask> = {}): PlannedTask {
  return {
    id,
    digest: `digest of ${id}`,
    category: "102_exploration",
    capability: "exploration",
    language: "en",
    cluster: id,
    network: "web",
    threshold: 0.9,
    limits: { turnSeconds: 1200, totalSeconds: 1800, maxFollowups: 2 },
    supervisorEffort: "high",
    ...change,
  };
}

export function scripted(name: string, socket = "/run/s.sock", base = "/here"): ResolvedModel {
  return {
    choice: {
      name,
      provider: "rehearsed",
      api: "scripted",
      price: { input: 0, output: 0 },
      socket,
      script: `${base}/${name}`,
    },
    identity: { name, provider: "rehearsed", api: "scripted", script: name },
    priced: true,
  };
}

/** `fields`: members of the sweep file. */
export function sweepPlan(
  given: { tasks?: PlannedTask[]; agents?: string[]; models?: ResolvedModel[]; fields?: Record<string, unknown> } = {},
): SweepPlan {
  const models = given.models ?? [scripted("a"), scripted("b")];
  const agents = given.agents ?? ["mini"];
  const document = {
    name: "s",
    packages: ".",
    agents,
    models: models.map(({ choice }) => ({ name: choice.name, provider: choice.provider })),
    supervisor: "checks",
    userSimulator: "none",
    ...given.fields,
  };
  const { sweep, problems } = readSweepFile(document, "sweep.yaml");
  if (sweep === null) throw new Error(JSON.stringify(problems));
  return {
    sweep: sweep satisfies SweepFile,
    tasks: given.tasks ?? [plannedTask("task_1"), plannedTask("task_2")],
    agents: agents.map((name) => ({ name, version: "1", options: {} })),
    models,
    supervisor: { kind: "checks" },
    userSimulator: { kind: "none" },
  };
}
