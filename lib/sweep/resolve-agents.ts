/** The agents of a sweep file, looked up among those that can be run here. */
import type { z } from "zod";
import type { Network } from "../attempt/vocabulary.ts";
import { nearest, type Problem } from "../tasks/problem.ts";
import type { AgentChoice } from "./manifest-line.ts";
import type { SweepFile } from "./sweep-file.ts";

/** An agent that can be run; an adapter of lib/agents is one. */
export interface KnownAgent {
  name: string;
  version: string;
  networks: readonly Network[];
  /** Refuses options that the agent does not have. */
  options?: z.ZodType<Record<string, unknown>>;
}

/** Adds to `problems` what is unknown, of another version, or has options that its agent refuses. */
export function resolveAgents(
  file: string,
  sweep: SweepFile,
  known: readonly KnownAgent[],
  problems: Problem[],
): AgentChoice[] {
  const add = (field: string, found: string, expected: string): void => {
    problems.push({ file, field, severity: "error", found, expected });
  };
  const references = sweep.agents.map((agent) => (typeof agent === "string" ? { name: agent, options: {} } : agent));
  sameNames(
    file,
    "agents",
    references.map((agent) => agent.name),
    problems,
  );
  return references.flatMap((reference, index): AgentChoice[] => {
    const field = typeof sweep.agents[index] === "string" ? `agents.${index}` : `agents.${index}.name`;
    const agent = known.find((candidate) => candidate.name === reference.name);
    if (!agent) {
      const near = nearest(
        reference.name,
        known.map((candidate) => candidate.name),
      );
      const all = known.map((candidate) => candidate.name).join(", ");
      add(
        field,
        `the unknown agent ${reference.name}`,
        near ? `\`${near}\`, the nearest known agent` : `one of ${all}`,
      );
      return [];
    }
    const version = "version" in reference ? reference.version : undefined;
    if (version !== undefined && version !== agent.version) {
      add(`agents.${index}.version`, version, `${agent.version}, the version of ${agent.name} that is here`);
    }
    const options = agent.options?.safeParse(reference.options);
    if (options && !options.success) {
      for (const issue of options.error.issues) {
        const at = ["agents", index, "options", ...issue.path].map(String).join(".");
        add(at, JSON.stringify(reference.options), `options of ${agent.name}: ${issue.message}`);
      }
    }
    return [{ name: agent.name, version: agent.version, options: reference.options }];
  });
}

/** Adds a problem for each name that stands twice. */
export function sameNames(file: string, field: string, names: readonly string[], problems: Problem[]): void {
  names.forEach((name, index) => {
    if (names.indexOf(name) === index) return;
    problems.push({
      file,
      field: `${field}.${index}`,
      severity: "error",
      found: `${name} a second time`,
      expected: "each name once: rows are told apart by it; run the other one under a sweep of its own",
    });
  });
}
