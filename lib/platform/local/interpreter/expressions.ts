/**
 * Values of a definition that may hold JSONata: a string from `{%` to `%}` is an expression, objects and arrays may
 * hold such strings at any depth, all else is taken as it stands. Everything is compiled once, when a machine is loaded.
 */
import jsonata from "jsonata";
import { errorNames, type Json, type JsonObject, plain, StateFailure } from "./data.ts";
import { type Direct, direct, notDirect } from "./direct-evaluation.ts";
import { checkExpression, type ExpressionScope } from "./expression-check.ts";
import { addedFunctions, type FunctionPorts } from "./functions.ts";

/** What an expression sees: `$states` and the variables, by name without the dollar. */
export type Bindings = { states: unknown } & Record<string, unknown>;

/** A value of a definition, ready to be evaluated. */
export type Template =
  | { kind: "literal"; value: Json }
  | { kind: "expression"; expression: Expression }
  | { kind: "array"; items: Template[] }
  | { kind: "object"; entries: [key: string, value: Template][] };

/** One compiled expression. */
export interface Expression {
  text: string;
  /** Null where the text needs all of JSONata. */
  direct: Direct | null;
  full: jsonata.Expression;
}

/** Thrown by `compile`: what is wrong and where in the value, such as `.Payload.turn`. */
export class TemplateProblem extends Error {
  override readonly name = "TemplateProblem";
  constructor(
    readonly path: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * @param scope which variables and parts of `$states` the value may name
 * @throws TemplateProblem
 */
export function compile(value: Json, scope: ExpressionScope, ports: FunctionPorts, path = ""): Template {
  if (typeof value === "string") {
    const text = expressionText(value, path);
    return text === null
      ? { kind: "literal", value }
      : { kind: "expression", expression: parse(text, scope, ports, path) };
  }
  if (typeof value !== "object" || value === null) return { kind: "literal", value };
  if (Array.isArray(value)) {
    const items = value.map((item, index) => compile(item, scope, ports, `${path}[${index}]`));
    return items.every((item) => item.kind === "literal") ? { kind: "literal", value } : { kind: "array", items };
  }
  const entries = Object.entries(value).map(([key, item]): [string, Template] => {
    if (key.endsWith(".$"))
      throw new TemplateProblem(`${path}.${key}`, "is JSONPath; expected JSONata, a key without `.$`");
    return [key, compile(item, scope, ports, `${path}.${key}`)];
  });
  return entries.every(([, item]) => item.kind === "literal")
    ? { kind: "literal", value }
    : { kind: "object", entries };
}

/** The text between `{%` and `%}`; null for a string that is no expression. */
function expressionText(value: string, path: string): string | null {
  const opens = value.startsWith("{%");
  const closes = value.endsWith("%}");
  if (opens && closes && value.length >= 4) return value.slice(2, -2);
  if (opens || closes) {
    throw new TemplateProblem(
      path,
      `is ${JSON.stringify(value)}; expected {% at the very start and %} at the very end, or neither`,
    );
  }
  return null;
}

function parse(text: string, scope: ExpressionScope, ports: FunctionPorts, path: string): Expression {
  let full: jsonata.Expression;
  try {
    full = jsonata(text);
  } catch (error) {
    throw new TemplateProblem(path, `is no JSONata: ${jsonataMessage(error)}, in {%${text}%}`);
  }
  const problem = checkExpression(full.ast(), scope);
  if (problem !== null) throw new TemplateProblem(path, `${problem}, in {%${text}%}`);
  for (const [name, added] of Object.entries(addedFunctions)) {
    full.registerFunction(name, added.make(ports) as (...args: unknown[]) => unknown, added.signature);
  }
  return { text, full, direct: direct(full.ast()) };
}

/**
 * The template's value.
 * @param what names the field in messages, such as `Arguments`
 * @throws StateFailure States.QueryEvaluationError when an expression fails, or gives nothing or what is not JSON
 */
export async function evaluate(
  template: Template,
  bindings: Bindings,
  what: string,
): Promise<{ value: Json; bytes: number }> {
  const value = raw(template, bindings, what);
  return plain(value instanceof Promise ? await value : value, what);
}

/** Values of several templates from the same data, by key. */
export async function evaluateEntries(
  entries: readonly (readonly [string, Template])[],
  bindings: Bindings,
  what: string,
): Promise<[string, { value: Json; bytes: number }][]> {
  const values: [string, { value: Json; bytes: number }][] = [];
  for (const [key, template] of entries) values.push([key, await evaluate(template, bindings, `${what}.${key}`)]);
  return values;
}

/** A promise only where an expression needs all of JSONata. */
function raw(template: Template, bindings: Bindings, what: string): unknown {
  switch (template.kind) {
    case "literal":
      return template.value;
    case "expression":
      return rawExpression(template.expression, bindings, what);
    case "array": {
      const items = template.items.map((item, index) =>
        defined(raw(item, bindings, `${what}[${index}]`), `${what}[${index}]`),
      );
      return items.some((item) => item instanceof Promise) ? Promise.all(items) : items;
    }
    case "object": {
      const object: Record<string, unknown> = {};
      const waiting: Promise<void>[] = [];
      for (const [key, item] of template.entries) {
        const value = raw(item, bindings, `${what}.${key}`);
        if (value instanceof Promise) {
          object[key] = null;
          waiting.push(
            value.then((result: unknown) => {
              object[key] = defined(result, `${what}.${key}`);
            }),
          );
        } else object[key] = defined(value, `${what}.${key}`);
      }
      return waiting.length === 0 ? object : Promise.all(waiting).then(() => object);
    }
  }
}

function rawExpression(expression: Expression, bindings: Bindings, what: string): unknown {
  if (expression.direct !== null) {
    const value = expression.direct(bindings);
    if (value !== notDirect) return value;
  }
  return expression.full.evaluate(undefined, bindings).catch((error: unknown) => {
    throw new StateFailure(errorNames.query, `${what}: ${jsonataMessage(error)}, in {%${expression.text}%}`);
  });
}

function defined(value: unknown, what: string): unknown {
  if (value === undefined)
    throw new StateFailure(errorNames.query, `${what} gave nothing (undefined); expected a JSON value`);
  return value;
}

/** JSONata throws plain objects with a message; functions of ours throw errors. */
function jsonataMessage(error: unknown): string {
  if (typeof error === "object" && error !== null && "message" in error) return String(error.message);
  return String(error);
}

export type { ExpressionScope, FunctionPorts, JsonObject };
