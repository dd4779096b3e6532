/** Where an agent's files stand on its side. */
import { join } from "node:path";
import type { TurnPlace } from "../../agents/adapter.ts";
import type { PlaceMap } from "../../agents/place-map.ts";

export interface AgentPlace {
  /** /tmp_workspace, or its stand-in. */
  workspace: string;
  /** /root, or its stand-in. */
  home: string;
  /** Folder of our bundles as the agent's side sees it. */
  bundles: string;
  /** Node as the agent's side sees it. */
  node: string;
}

export const stateFolder = (place: AgentPlace, agent: string): string => join(place.home, ".proctor", agent);

export function turnPlace(place: AgentPlace, agent: string): TurnPlace {
  return { ...place, state: stateFolder(place, agent) };
}

/** The stand-ins that texts are mapped to; null inside a sandbox, where the paths that tasks name are there. */
export function placeMap({ workspace, home }: AgentPlace): PlaceMap | null {
  return workspace === "/tmp_workspace" && home === "/root" ? null : { workspace, home };
}
