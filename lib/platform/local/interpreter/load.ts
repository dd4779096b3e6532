/**
 * Loads a States Language file: placeholders, schema, expressions, structure. All that is wrong is told at once, each
 * with file, state and field, and nothing that this interpreter would run otherwise than Step Functions gets through.
 */
import type { z } from "zod";
import { isObject, type Json, type JsonObject, nameProblem } from "./data.ts";
import {
  type CatcherDefinition,
  machineSchema,
  type RetrierDefinition,
  stateSchemas,
  taskResources,
} from "./definition.ts";
import { compile, type ExpressionScope, type FunctionPorts, type Template, TemplateProblem } from "./expressions.ts";
import { errorListProblems, type FieldProblem, taskProblems } from "./field-rules.ts";
import type { Entries, Faults, Flow, Machine, Results, State } from "./machine.ts";
import { structureProblems } from "./structure.ts";

export interface DefinitionProblem {
  file: string;
  /** Null: the file as a whole. */
  state: string | null;
  field: string;
  message: string;
}

/** A definition that is refused. Its message has a line for each problem. */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
  constructor(readonly problems: readonly DefinitionProblem[]) {
    super(
      problems
        .map(({ file, state, field, message }) => {
          const what = field === "" ? message : `${field} ${message}`;
          return [file, ...(state === null ? [] : [state]), what].join(": ");
        })
        .join("\n"),
    );
  }
}

export interface DefinitionSource {
  /** Name of the machine. */
  name: string;
  /** For messages. */
  file: string;
  /** The file's text, or what JSON.parse made of it. */
  definition: unknown;
}

/**
 * @param placeholders values of `${Name}` in the definition's strings
 * @throws DefinitionError
 */
export function loadMachine(
  source: DefinitionSource,
  placeholders: Record<string, string>,
  ports: FunctionPorts,
): Machine {
  const loader = new Loader(source.file, ports);
  const machine = loader.machine(source, placeholders);
  if (machine === null || loader.problems.length > 0) throw new DefinitionError(loader.problems);
  return machine;
}

/** Names in an Assign, on states, rules and catchers of one flow (not of the flows inside it). */
function assignedNames(states: Record<string, unknown>): Set<string> {
  const names = new Set<string>();
  const add = (holder: unknown): void => {
    if (isObject(holder) && isObject(holder.Assign)) for (const name of Object.keys(holder.Assign)) names.add(name);
  };
  for (const state of Object.values(states)) {
    if (!isObject(state)) continue;
    add(state);
    for (const list of [state.Choices, state.Catch]) if (Array.isArray(list)) list.forEach(add);
  }
  return names;
}

const inputOnly = ["input", "context"] as const;
const withResult = ["input", "result", "context"] as const;
const withError = ["input", "errorOutput", "context"] as const;
type Sight = readonly ("input" | "result" | "errorOutput" | "context")[];

class Loader {
  readonly problems: DefinitionProblem[] = [];
  readonly #file: string;
  readonly #ports: FunctionPorts;
  readonly #stateNames = new Set<string>();

  constructor(file: string, ports: FunctionPorts) {
    this.#file = file;
    this.#ports = ports;
  }

  machine(source: DefinitionSource, placeholders: Record<string, string>): Machine | null {
    const wrongName = nameProblem(source.name);
    if (wrongName !== null) this.#problem(null, "name", `${source.name} ${wrongName}`);
    let definition = source.definition;
    if (typeof definition === "string") {
      try {
        definition = JSON.parse(definition) as unknown;
      } catch (error) {
        this.#problem(null, "", `is no JSON: ${error instanceof Error ? error.message : String(error)}`);
        return null;
      }
    }
    const parsed = this.#parse(machineSchema, this.#fill(definition as Json, placeholders, ""), null);
    if (parsed === null) return null;
    return {
      name: source.name,
      timeoutSeconds: parsed.TimeoutSeconds ?? null,
      flow: this.#flow(parsed, new Set(), null),
    };
  }

  /** Puts the placeholders' values in. */
  #fill(value: Json, placeholders: Record<string, string>, path: string): Json {
    if (typeof value === "string") {
      return value.replace(/\$\{([^}]*)\}/g, (whole, name: string) => {
        const known = Object.hasOwn(placeholders, name) ? placeholders[name] : undefined;
        if (known !== undefined) return known;
        this.#problem(null, path, `has the placeholder ${whole}, for which no value is given`);
        return whole;
      });
    }
    if (Array.isArray(value)) return value.map((item, index) => this.#fill(item, placeholders, `${path}[${index}]`));
    if (!isObject(value)) return value;
    const filled: JsonObject = {};
    for (const [key, item] of Object.entries(value))
      filled[key] = this.#fill(item, placeholders, path === "" ? key : `${path}.${key}`);
    return filled;
  }

  #flow(
    definition: { StartAt: string; States: Record<string, unknown> },
    outer: ReadonlySet<string>,
    within: string | null,
  ): Flow {
    const own = assignedNames(definition.States);
    for (const name of own) {
      if (outer.has(name))
        this.#problem(
          within,
          "ItemProcessor",
          `assigns $${name}, which is a variable of the scope around it; give it another name`,
        );
    }
    const variables = new Set([...outer, ...own]);
    const states = new Map<string, State>();
    for (const [name, raw] of Object.entries(definition.States)) {
      if (this.#stateNames.has(name)) this.#problem(name, "", "has the name of another state of this machine");
      this.#stateNames.add(name);
      const state = this.#state(name, raw, variables);
      if (state !== null) states.set(name, state);
    }
    const flow = { startAt: definition.StartAt, states };
    // A state that could not be read is told already; what follows from its absence is noise.
    if (states.size === Object.keys(definition.States).length) {
      for (const { state, field, message } of structureProblems(flow)) this.#problem(state, field, message);
    }
    return flow;
  }

  #state(name: string, raw: unknown, variables: ReadonlySet<string>): State | null {
    const type = isObject(raw) ? raw.Type : undefined;
    const sight = (parts: Sight): ExpressionScope => ({ variables, states: new Set(parts) });
    const input = sight(inputOnly);
    const template = (value: Json, field: string): Template => this.#template(name, field, value, input);
    const optional = (value: Json | undefined, field: string): Template | null =>
      value === undefined ? null : template(value, field);
    const results = (
      holder: { Assign?: JsonObject | undefined; Output?: Json | undefined },
      parts: Sight,
      field = "",
    ): Results => ({
      assign: this.#entries(name, `${field}Assign`, holder.Assign, sight(parts)),
      output: holder.Output === undefined ? null : this.#template(name, `${field}Output`, holder.Output, sight(parts)),
    });
    const next = (state: { Next?: string | undefined; End?: true | undefined }): string | null => {
      if ((state.Next === undefined) === (state.End === undefined))
        this.#problem(name, "Next", "or End: expected one of the two");
      return state.Next ?? null;
    };
    const faults = (state: {
      Retry?: RetrierDefinition[] | undefined;
      Catch?: CatcherDefinition[] | undefined;
    }): Faults => {
      this.#tell(name, [
        ...errorListProblems("Retry", state.Retry ?? []),
        ...errorListProblems("Catch", state.Catch ?? []),
      ]);
      return {
        retry: state.Retry ?? [],
        catch: (state.Catch ?? []).map((catcher, index) => ({
          errorEquals: catcher.ErrorEquals,
          next: catcher.Next,
          ...results(catcher, withError, `Catch[${index}].`),
        })),
      };
    };

    switch (type) {
      case "Task": {
        const state = this.#parse(stateSchemas.Task, raw, name);
        if (state === null) return null;
        const kind = taskResources[state.Resource];
        this.#tell(name, taskProblems(kind, state));
        return {
          type,
          name,
          kind,
          arguments: template(state.Arguments, "Arguments"),
          timeoutSeconds: optional(state.TimeoutSeconds, "TimeoutSeconds"),
          heartbeatSeconds: optional(state.HeartbeatSeconds, "HeartbeatSeconds"),
          ...results(state, withResult),
          ...faults(state),
          next: next(state),
        };
      }
      case "Choice": {
        const state = this.#parse(stateSchemas.Choice, raw, name);
        if (state === null) return null;
        return {
          type,
          name,
          rules: state.Choices.map((rule, index) => {
            const field = `Choices[${index}].`;
            const condition = template(rule.Condition, `${field}Condition`);
            if (condition.kind === "literal")
              this.#problem(name, `${field}Condition`, `is ${rule.Condition}; expected an expression {% … %}`);
            return { condition, next: rule.Next, ...results(rule, inputOnly, field) };
          }),
          default: state.Default ?? null,
          ...results(state, inputOnly),
        };
      }
      case "Wait": {
        const state = this.#parse(stateSchemas.Wait, raw, name);
        return (
          state && {
            type,
            name,
            seconds: template(state.Seconds, "Seconds"),
            ...results(state, inputOnly),
            next: next(state),
          }
        );
      }
      case "Pass": {
        const state = this.#parse(stateSchemas.Pass, raw, name);
        return state && { type, name, ...results(state, inputOnly), next: next(state) };
      }
      case "Succeed": {
        const state = this.#parse(stateSchemas.Succeed, raw, name);
        return state && { type, name, ...results({ Output: state.Output }, inputOnly) };
      }
      case "Fail": {
        const state = this.#parse(stateSchemas.Fail, raw, name);
        return (
          state && {
            type,
            name,
            error: template(state.Error ?? "", "Error"),
            cause: template(state.Cause ?? "", "Cause"),
          }
        );
      }
      case "Map":
        return this.#map(name, raw as JsonObject, variables, { template, optional, results, faults, next });
      default:
        this.#problem(
          name,
          "Type",
          `is ${JSON.stringify(type)}; expected Task, Choice, Wait, Pass, Succeed, Fail or Map`,
        );
        return null;
    }
  }

  #map(name: string, raw: JsonObject, variables: ReadonlySet<string>, read: MapReaders): State | null {
    const { template, optional } = read;
    const processor = isObject(raw.ItemProcessor) ? raw.ItemProcessor : {};
    const config = isObject(processor.ProcessorConfig) ? processor.ProcessorConfig : {};
    if (config.Mode !== "DISTRIBUTED") {
      const state = this.#parse(stateSchemas.InlineMap, raw, name);
      if (state === null) return null;
      return {
        type: "InlineMap",
        name,
        items: optional(state.Items, "Items"),
        itemSelector: optional(state.ItemSelector, "ItemSelector"),
        maxConcurrency: template(state.MaxConcurrency ?? 0, "MaxConcurrency"),
        flow: this.#flow(state.ItemProcessor, variables, name),
        ...read.results(state, withResult),
        ...read.faults(state),
        next: read.next(state),
      };
    }
    const state = this.#parse(stateSchemas.DistributedMap, raw, name);
    if (state === null) return null;
    return {
      type: "DistributedMap",
      name,
      label: state.Label ?? name.slice(0, 40).replaceAll(/[^A-Za-z0-9_-]/g, "-"),
      itemSelector: optional(state.ItemSelector, "ItemSelector"),
      maxConcurrency: template(state.MaxConcurrency ?? 0, "MaxConcurrency"),
      reader: template(state.ItemReader.Arguments, "ItemReader.Arguments"),
      writer: template(state.ResultWriter.Arguments, "ResultWriter.Arguments"),
      toleratedPercentage: optional(state.ToleratedFailurePercentage, "ToleratedFailurePercentage"),
      toleratedCount: optional(state.ToleratedFailureCount, "ToleratedFailureCount"),
      // Its children are executions of their own: no variable reaches them.
      flow: this.#flow(state.ItemProcessor, new Set(), name),
      ...read.results(state, withResult),
      ...read.faults(state),
      next: read.next(state),
    };
  }

  #entries(state: string, field: string, assign: JsonObject | undefined, scope: ExpressionScope): Entries {
    if (assign !== undefined && "states" in assign) this.#problem(state, field, "sets $states, which is reserved");
    return Object.entries(assign ?? {}).map(
      ([name, value]) => [name, this.#template(state, `${field}.${name}`, value, scope)] as const,
    );
  }

  #template(state: string, field: string, value: Json, scope: ExpressionScope): Template {
    try {
      return compile(value, scope, this.#ports);
    } catch (error) {
      if (!(error instanceof TemplateProblem)) throw error;
      this.#problem(state, `${field}${error.path}`, error.message);
      return { kind: "literal", value: null };
    }
  }

  #parse<Schema extends z.ZodType>(schema: Schema, raw: unknown, state: string | null): z.output<Schema> | null {
    const parsed = schema.safeParse(raw);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) {
      const field = issue.path
        .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
        .join("")
        .replace(/^\./, "");
      if (issue.code === "unrecognized_keys") {
        for (const key of issue.keys)
          this.#problem(state, field === "" ? key : `${field}.${key}`, "is a field that is not supported here");
      } else this.#problem(state, field, `is ${found(raw, issue.path)}: ${issue.message}`);
    }
    return null;
  }

  #tell(state: string, problems: readonly FieldProblem[]): void {
    for (const { field, message } of problems) this.#problem(state, field, message);
  }

  #problem(state: string | null, field: string, message: string): void {
    this.problems.push({ file: this.#file, state, field, message });
  }
}

/** How the fields that both kinds of Map share are read. */
interface MapReaders {
  template(value: Json, field: string): Template;
  optional(value: Json | undefined, field: string): Template | null;
  results(holder: { Assign?: JsonObject | undefined; Output?: Json | undefined }, parts: Sight): Results;
  faults(state: { Retry?: RetrierDefinition[] | undefined; Catch?: CatcherDefinition[] | undefined }): Faults;
  next(state: { Next?: string | undefined; End?: true | undefined }): string | null;
}

function found(raw: unknown, path: readonly PropertyKey[]): string {
  let value = raw;
  for (const part of path)
    value = typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined;
  return value === undefined ? "missing" : (JSON.stringify(value)?.slice(0, 120) ?? "not JSON");
}
