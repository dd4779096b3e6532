/** Every agent that Proctor can put under test. A new agent is one folder beside this file and one line here. */
import type { Network } from "../attempt/vocabulary.ts";
import type { AgentAdapter } from "./adapter.ts";
import { mini } from "./mini/adapter.ts";
import { nullAgent } from "./null/adapter.ts";

export const adapters: readonly AgentAdapter[] = [mini, nullAgent];

/** What sweeps and `doctor` need to know of each agent. */
export const agents: readonly { name: string; version: string; networks: readonly Network[] }[] = adapters.map(
  ({ name, version, networks }) => ({ name, version, networks }),
);

/** The adapter of an agent; null when there is none of that name. */
export function agentByName(name: string): AgentAdapter | null {
  return adapters.find((adapter) => adapter.name === name) ?? null;
}
