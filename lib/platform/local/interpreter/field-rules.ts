/** Rules between the fields of one state that a schema does not say. */
import { errorNames } from "./data.ts";
import type { CatcherDefinition, RetrierDefinition, TaskDefinition, TaskKind } from "./definition.ts";

export interface FieldProblem {
  field: string;
  message: string;
}

/** Arguments that each resource takes and needs; what ECS takes for a launch is ECS's matter. */
const taskArguments: Record<TaskKind, { needed: string; known: readonly string[] | null }> = {
  invoke: { needed: "FunctionName", known: ["FunctionName", "Payload"] },
  invokeWithToken: { needed: "FunctionName", known: ["FunctionName", "Payload"] },
  startExecution: { needed: "StateMachineArn", known: ["StateMachineArn", "Name", "Input"] },
  runTask: { needed: "TaskDefinition", known: null },
  stopTask: { needed: "Task", known: ["Task", "Cluster", "Reason"] },
};

export function taskProblems(kind: TaskKind, state: TaskDefinition): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const { needed, known } = taskArguments[kind];
  for (const field of Object.keys(state.Arguments)) {
    if (known !== null && !known.includes(field)) {
      problems.push({ field: `Arguments.${field}`, message: `is not supported; expected ${known.join(", ")}` });
    }
  }
  if (!(needed in state.Arguments)) problems.push({ field: `Arguments.${needed}`, message: "is missing" });

  const { HeartbeatSeconds: heartbeat, TimeoutSeconds: timeout } = state;
  if (kind === "invokeWithToken") {
    if (!JSON.stringify(state.Arguments).includes("$states.context.Task.Token")) {
      problems.push({ field: "Arguments", message: "hand out no $states.context.Task.Token, so nobody could answer" });
    }
  } else if (heartbeat !== undefined) {
    problems.push({ field: "HeartbeatSeconds", message: "has a meaning only with .waitForTaskToken" });
  }
  if (typeof heartbeat === "number" && typeof timeout === "number" && heartbeat >= timeout) {
    const message = `is ${heartbeat}; expected less than TimeoutSeconds, ${timeout}`;
    problems.push({ field: "HeartbeatSeconds", message });
  }
  return problems;
}

const stateErrors = new Set<string>(Object.values(errorNames));

export function errorListProblems(
  field: "Retry" | "Catch",
  list: readonly (RetrierDefinition | CatcherDefinition)[],
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const [index, entry] of list.entries()) {
    const at = `${field}[${index}].ErrorEquals`;
    for (const error of entry.ErrorEquals) {
      if (error === errorNames.runtime) {
        problems.push({ field: at, message: "names States.Runtime, which always ends the execution" });
      } else if (error.startsWith("States.") && !stateErrors.has(error)) {
        problems.push({ field: at, message: `names ${error}, which no state here can give` });
      }
    }
    const all = entry.ErrorEquals.includes(errorNames.all);
    if (all && (entry.ErrorEquals.length > 1 || index < list.length - 1)) {
      problems.push({ field: at, message: "has States.ALL; expected it alone and in the last entry" });
    }
    if (!("MaxDelaySeconds" in entry) || entry.MaxDelaySeconds === undefined) continue;
    if (entry.MaxDelaySeconds <= entry.IntervalSeconds) {
      const message = `is ${entry.MaxDelaySeconds}; expected more than IntervalSeconds, ${entry.IntervalSeconds}`;
      problems.push({ field: `${field}[${index}].MaxDelaySeconds`, message });
    }
  }
  return problems;
}
