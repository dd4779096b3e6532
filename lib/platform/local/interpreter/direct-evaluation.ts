/**
 * The part of JSONata that control flow is made of (fields of variables, comparisons, object constructors, conditions),
 * compiled to plain functions: JSONata's own evaluator makes a dozen promises for one field. Wherever the general rules
 * would do more than these few lines (an array on the way, other types), a function answers `notDirect` and the whole
 * expression goes to JSONata; a test holds both against each other.
 */
import type jsonata from "jsonata";
import type { Bindings } from "./expressions.ts";

/** The expression's value, undefined where JSONata gives nothing, or `notDirect`. */
export type Direct = (bindings: Bindings) => unknown;
export const notDirect = Symbol("not direct");

/** A node of JSONata's tree: what its types leave out is read by name. */
type Node = jsonata.ExprNode & Record<string, unknown>;

/** Null where the expression has a part that is not covered. */
export function direct(ast: jsonata.ExprNode): Direct | null {
  const node = ast as Node;
  for (const key of [
    "predicate",
    "stages",
    "group",
    "focus",
    "index",
    "tuple",
    "keepArray",
    "keepSingletonArray",
    "nextFunction",
  ]) {
    if (node[key] !== undefined) return null;
  }
  switch (node.type as string) {
    case "string":
    case "number":
    case "value": {
      const value: unknown = node.value;
      return () => value;
    }
    case "variable":
      return variable(node);
    case "path":
      return path(node.steps as Node[]);
    case "condition":
      return condition(node);
    case "binary":
      return binary(node);
    case "unary":
      return node.value === "{" ? object(node) : node.value === "[" ? array(node) : null;
    case "block": {
      const expressions = node.expressions as Node[];
      return expressions.length === 1 ? direct(expressions[0] as Node) : null;
    }
    case "function":
      return call(node);
    default:
      return null;
  }
}

function variable(node: Node): Direct | null {
  const name = String(node.value);
  if (name === "" || name === "$") return null;
  return (bindings) => (Object.hasOwn(bindings, name) ? bindings[name] : notDirect);
}

function path(steps: Node[]): Direct | null {
  const [first, ...fields] = steps as [Node, ...Node[]];
  if (first.type !== "variable") return null;
  const start = direct(first);
  if (start === null || fields.some((field) => field.type !== "name" || direct({ ...field, type: "value" }) === null))
    return null;
  const names = fields.map((field) => String(field.value));
  return (bindings) => {
    let value = start(bindings);
    if (value === notDirect) return notDirect;
    for (const name of names) {
      if (typeof value !== "object" || value === null) return undefined;
      if (Array.isArray(value)) return notDirect;
      value = (value as Record<string, unknown>)[name];
    }
    return value;
  };
}

function condition(node: Node): Direct | null {
  const when = direct(node.condition as Node);
  const then = direct(node.then as Node);
  const otherwise = node.else === undefined ? () => undefined : direct(node.else as Node);
  if (when === null || then === null || otherwise === null) return null;
  return (bindings) => {
    const value = when(bindings);
    if (value === true) return then(bindings);
    return value === false || value === undefined ? otherwise(bindings) : notDirect;
  };
}

function binary(node: Node): Direct | null {
  const left = direct(node.lhs as Node);
  const right = direct(node.rhs as Node);
  const operator = operators[String(node.value)];
  if (left === null || right === null || operator === undefined) return null;
  return (bindings) => {
    const a = left(bindings);
    if (a === notDirect) return notDirect;
    if ((a === false && node.value === "and") || (a === true && node.value === "or")) return a;
    const b = right(bindings);
    return b === notDirect ? notDirect : operator(a, b);
  };
}

const scalar = (value: unknown): boolean => typeof value !== "object" || value === null;
const orderable = (a: unknown, b: unknown): boolean =>
  (typeof a === "number" && typeof b === "number") || (typeof a === "string" && typeof b === "string");
const ordered =
  (compare: (a: number, b: number) => boolean) =>
  (a: unknown, b: unknown): unknown =>
    orderable(a, b) ? compare(a as number, b as number) : notDirect;
const arithmetic =
  (compute: (a: number, b: number) => number) =>
  (a: unknown, b: unknown): unknown => {
    if (typeof a !== "number" || typeof b !== "number") return notDirect;
    const value = compute(a, b);
    return Number.isFinite(value) ? value : notDirect;
  };
const text = (value: unknown): string | null =>
  typeof value === "string" ? value : Number.isSafeInteger(value) ? String(value) : null;

const operators: Record<string, (a: unknown, b: unknown) => unknown> = {
  "=": (a, b) => (scalar(a) && scalar(b) ? a !== undefined && b !== undefined && a === b : notDirect),
  "!=": (a, b) => (scalar(a) && scalar(b) ? a !== undefined && b !== undefined && a !== b : notDirect),
  and: (a, b) => (typeof a === "boolean" && typeof b === "boolean" ? a && b : notDirect),
  or: (a, b) => (typeof a === "boolean" && typeof b === "boolean" ? a || b : notDirect),
  "<": ordered((a, b) => a < b),
  "<=": ordered((a, b) => a <= b),
  ">": ordered((a, b) => a > b),
  ">=": ordered((a, b) => a >= b),
  "+": arithmetic((a, b) => a + b),
  "-": arithmetic((a, b) => a - b),
  "*": arithmetic((a, b) => a * b),
  "/": arithmetic((a, b) => a / b),
  "&": (a, b) => {
    const first = text(a);
    const second = text(b);
    return first === null || second === null ? notDirect : first + second;
  },
};

function object(node: Node): Direct | null {
  const entries: [string, Direct][] = [];
  for (const [key, value] of node.lhs as unknown as [Node, Node][]) {
    const compiled = direct(value);
    if (key.type !== "string" || compiled === null || key.value === "__proto__") return null;
    if (entries.some(([name]) => name === key.value)) return null;
    entries.push([String(key.value), compiled]);
  }
  return (bindings) => {
    const result: Record<string, unknown> = {};
    for (const [key, compiled] of entries) {
      const value = compiled(bindings);
      if (value === notDirect) return notDirect;
      if (value !== undefined) result[key] = value;
    }
    return result;
  };
}

function array(node: Node): Direct | null {
  const items: [constructed: boolean, Direct][] = [];
  for (const item of node.expressions as Node[]) {
    const compiled = direct(item);
    if (compiled === null) return null;
    items.push([item.value === "[", compiled]);
  }
  return (bindings) => {
    const result: unknown[] = [];
    for (const [constructed, compiled] of items) {
      const value = compiled(bindings);
      if (value === notDirect) return notDirect;
      if (Array.isArray(value) && !constructed) for (const part of value as unknown[]) result.push(part);
      else if (value !== undefined) result.push(value);
    }
    return result;
  };
}

/** Functions of one argument. */
const functions: Record<string, (value: unknown) => unknown> = {
  exists: (value) => (typeof value === "function" ? notDirect : value !== undefined),
  not: (value) => (typeof value === "boolean" ? !value : notDirect),
  string: (value) => text(value) ?? notDirect,
};

function call(node: Node): Direct | null {
  const procedure = node.procedure as unknown as Node;
  const name = String(procedure.value);
  const parameters = node.arguments as Node[];
  if (procedure.type !== "variable" || !Object.hasOwn(functions, name) || parameters.length !== 1) return null;
  const apply = functions[name] as (value: unknown) => unknown;
  const argument = direct(parameters[0] as Node);
  if (argument === null) return null;
  return (bindings) => {
    if (Object.hasOwn(bindings, name)) return notDirect;
    const value = argument(bindings);
    return value === notDirect ? notDirect : apply(value);
  };
}
