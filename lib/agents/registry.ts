/** Every agent that Proctor can put under test. A new agent is one folder beside this file and one line here. */
import type { AgentAdapter } from "./adapter.ts";
import { mini } from "./mini/adapter.ts";
import { nullAgent } from "./null/adapter.ts";

export const adapters: readonly AgentAdapter[] = [mini, nullAgent];

/** The adapter of an agent; null when there is none of that name. */
export function agentByName(name: string): AgentAdapter | null {
  return adapters.find((adapter) => adapter.name === name) ?? null;
}
