/** A loaded machine: checked, placeholders filled in, every expression compiled. */
import type { RetrierDefinition, TaskKind } from "./definition.ts";
import type { Template } from "./expressions.ts";

export interface Machine {
  name: string;
  timeoutSeconds: number | null;
  flow: Flow;
}

export interface Flow {
  startAt: string;
  states: ReadonlyMap<string, State>;
}

export type Entries = readonly (readonly [name: string, value: Template])[];

/** What a state, a rule or a catcher leaves behind: variables and output, both evaluated from the same data. */
export interface Results {
  assign: Entries;
  /** Null: the state's result, or its input where it has none. */
  output: Template | null;
}

export interface Catcher extends Results {
  errorEquals: readonly string[];
  next: string;
}

export interface Faults {
  retry: readonly RetrierDefinition[];
  catch: readonly Catcher[];
}

interface Step extends Results {
  name: string;
  /** Null: the flow ends here. */
  next: string | null;
}

export interface TaskState extends Step, Faults {
  type: "Task";
  kind: TaskKind;
  arguments: Template;
  timeoutSeconds: Template | null;
  heartbeatSeconds: Template | null;
}
export interface ChoiceState extends Results {
  type: "Choice";
  name: string;
  rules: readonly (Results & { condition: Template; next: string })[];
  /** Taken when no rule holds; null: States.NoChoiceMatched. */
  default: string | null;
}
export interface WaitState extends Step {
  type: "Wait";
  seconds: Template;
}
export interface PassState extends Step {
  type: "Pass";
}
export interface SucceedState extends Results {
  type: "Succeed";
  name: string;
}
export interface FailState {
  type: "Fail";
  name: string;
  error: Template;
  cause: Template;
}
interface MapCommon extends Step, Faults {
  itemSelector: Template | null;
  maxConcurrency: Template;
  flow: Flow;
}
export interface InlineMapState extends MapCommon {
  type: "InlineMap";
  /** Null: the state's input. */
  items: Template | null;
}
export interface DistributedMapState extends MapCommon {
  type: "DistributedMap";
  label: string;
  reader: Template;
  writer: Template;
  toleratedPercentage: Template | null;
  toleratedCount: Template | null;
}
export type MapState = InlineMapState | DistributedMapState;
export type State =
  | TaskState
  | ChoiceState
  | WaitState
  | PassState
  | SucceedState
  | FailState
  | InlineMapState
  | DistributedMapState;

/** Every state that may follow. */
export function successors(state: State): string[] {
  switch (state.type) {
    case "Succeed":
    case "Fail":
      return [];
    case "Choice":
      return [...state.rules.map((rule) => rule.next), ...(state.default === null ? [] : [state.default])];
    case "Wait":
    case "Pass":
      return state.next === null ? [] : [state.next];
    case "Task":
    case "InlineMap":
    case "DistributedMap":
      return [...(state.next === null ? [] : [state.next]), ...state.catch.map((catcher) => catcher.next)];
  }
}

/** Whether a flow may end in this state. */
export function isTerminal(state: State): boolean {
  return state.type === "Succeed" || state.type === "Fail" || (state.type !== "Choice" && state.next === null);
}
