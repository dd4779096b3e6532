/** What an expression may name, checked when it is loaded, so that a misspelt variable never waits for its branch to run. */
import type jsonata from "jsonata";
import { addedFunctions, refusedFunctions } from "./functions.ts";

/** What is in sight of an expression. */
export interface ExpressionScope {
  variables: ReadonlySet<string>;
  /** Parts of `$states` that have a value here. */
  states: ReadonlySet<"input" | "result" | "errorOutput" | "context">;
}

/** JSONata 2.0.6's own functions. */
const builtIn = new Set(
  (
    "sum count max min average string substring substringBefore substringAfter lowercase uppercase length trim pad match " +
    "contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs sqrt power " +
    "boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error assert type " +
    "sort distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl toMillis fromMillis clone"
  ).split(" "),
);

/** A node of JSONata's tree: what its types leave out is read by name. */
type Node = jsonata.ExprNode & Record<string, unknown>;

/** What is wrong with the expression, for a person; null: nothing. */
export function checkExpression(ast: jsonata.ExprNode, scope: ExpressionScope): string | null {
  return new Checker(scope).node(ast as Node, new Set(), false);
}

class Checker {
  readonly #scope: ExpressionScope;
  constructor(scope: ExpressionScope) {
    this.#scope = scope;
  }

  /** @param local names bound inside the expression. @param context whether `$` and bare field names have a meaning. */
  node(node: Node, local: ReadonlySet<string>, context: boolean): string | null {
    switch (node.type as string) {
      case "path":
        return this.#path(node, local, context);
      case "variable":
        return this.#variable(node, local, context) ?? this.#suffixes(node, local);
      case "name":
      case "wildcard":
      case "descendant":
        if (context) return this.#suffixes(node, local);
        return `${node.type === "name" ? `the field ${String(node.value)}` : `the step ${String(node.value)}`} stands alone; data has no root here, so begin with $states or a variable`;
      case "block": {
        const inner = new Set(local);
        return this.#each(node.expressions as Node[], inner, context) ?? this.#suffixes(node, inner);
      }
      case "bind": {
        const problem = this.node(node.rhs as Node, local, context);
        // A block hands in one set for all its expressions, so the name is known to those that follow.
        (local as Set<string>).add(String((node.lhs as Node).value));
        return problem;
      }
      case "lambda": {
        const inner = new Set(local);
        for (const argument of node.arguments as Node[]) inner.add(String(argument.value));
        return this.node(node.body as unknown as Node, inner, context);
      }
      default:
        return this.#children(node, local, context) ?? this.#suffixes(node, local);
    }
  }

  #path(path: Node, local: ReadonlySet<string>, context: boolean): string | null {
    const inner = new Set(local);
    const steps = path.steps as Node[];
    const [first, second] = steps as [Node, Node | undefined];
    if (first.type === "variable" && first.value === "states" && !local.has("states")) {
      const part = second?.type === "name" ? String(second.value) : null;
      if (part === null || !["input", "result", "errorOutput", "context"].includes(part)) {
        return `$states has no ${part ?? "such part"}; expected input, result, errorOutput or context`;
      }
      if (!(this.#scope.states as ReadonlySet<string>).has(part)) return `$states.${part} has no value in this field`;
    }
    for (const [index, step] of steps.entries()) {
      for (const bound of [step.focus, step.index]) if (typeof bound === "string") inner.add(bound);
      const problem = this.node(step, inner, context || index > 0);
      if (problem !== null) return problem;
    }
    return this.#suffixes(path, inner);
  }

  #variable(node: Node, local: ReadonlySet<string>, context: boolean): string | null {
    const name = String(node.value);
    if (name === "" || name === "$") {
      if (name === "" && context) return null;
      return `$${name} has no value here: data has no root, so begin with $states or a variable`;
    }
    if (local.has(name) || name === "states" || this.#scope.variables.has(name)) return null;
    if (name in refusedFunctions) return refusedFunctions[name] as string;
    if (builtIn.has(name) || name in addedFunctions) return null;
    return `$${name} is neither a function nor a variable that an Assign in sight sets`;
  }

  /** Filters, groupings and stages: inside them `$` is the item. */
  #suffixes(node: Node, local: ReadonlySet<string>): string | null {
    for (const key of ["predicate", "stages"] as const) {
      for (const stage of (node[key] as Node[] | undefined) ?? []) {
        if (typeof stage.expr !== "object") continue;
        const problem = this.node(stage.expr as Node, local, true);
        if (problem !== null) return problem;
      }
    }
    const group = node.group as { lhs: Node[][] } | undefined;
    return group === undefined ? null : this.#each(group.lhs.flat(), local, true);
  }

  #children(node: Node, local: ReadonlySet<string>, context: boolean): string | null {
    const found: Node[] = [];
    for (const key of [
      "lhs",
      "rhs",
      "expressions",
      "arguments",
      "procedure",
      "expression",
      "condition",
      "then",
      "else",
    ]) {
      const child = node[key];
      if (Array.isArray(child)) found.push(...(child.flat() as Node[]));
      else if (typeof child === "object" && child !== null) found.push(child as Node);
    }
    const problem = this.#each(found, local, context);
    if (problem !== null) return problem;
    const item: Node[] = [];
    for (const key of ["pattern", "update", "delete"]) {
      if (typeof node[key] === "object" && node[key] !== null) item.push(node[key] as Node);
    }
    for (const term of (node.terms as Node[] | undefined) ?? []) item.push(term.expression as Node);
    return this.#each(item, local, true);
  }

  #each(nodes: readonly Node[], local: ReadonlySet<string>, context: boolean): string | null {
    for (const node of nodes) {
      const problem = this.node(node, local, context);
      if (problem !== null) return problem;
    }
    return null;
  }
}
