/** The shape of a flow: every way leads somewhere, every state is on one, every one can end. */
import { type Flow, isTerminal, successors } from "./machine.ts";

export interface StructureProblem {
  state: string | null;
  field: string;
  message: string;
}

export function structureProblems(flow: Flow): StructureProblem[] {
  const problems: StructureProblem[] = [];
  if (!flow.states.has(flow.startAt)) {
    return [{ state: null, field: "StartAt", message: `names ${flow.startAt}, which is no state here` }];
  }
  for (const [name, state] of flow.states) {
    for (const target of successors(state)) {
      if (!flow.states.has(target))
        problems.push({ state: name, field: "Next", message: `names ${target}, which is no state here` });
    }
  }
  if (problems.length > 0) return problems;

  const reached = closure([flow.startAt], (name) => {
    const state = flow.states.get(name);
    return state === undefined ? [] : successors(state);
  });
  for (const name of flow.states.keys()) {
    if (!reached.has(name)) problems.push({ state: name, field: "", message: "is never reached" });
  }

  const before = new Map<string, string[]>();
  for (const [name, state] of flow.states) {
    for (const target of successors(state)) before.set(target, [...(before.get(target) ?? []), name]);
  }
  const terminals = [...flow.states.values()].filter(isTerminal).map((state) => state.name);
  const ending = closure(terminals, (name) => before.get(name) ?? []);
  for (const name of flow.states.keys()) {
    if (!ending.has(name))
      problems.push({
        state: name,
        field: "",
        message: "leads to no state that ends: no End, Succeed or Fail follows it",
      });
  }
  return problems;
}

function closure(start: readonly string[], next: (name: string) => readonly string[]): Set<string> {
  const seen = new Set(start);
  const open = [...start];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    for (const target of next(name)) {
      if (seen.has(target)) continue;
      seen.add(target);
      open.push(target);
    }
  }
  return seen;
}
