/**
 * Where there is no sandbox, each attempt has a folder of its own that stands in for /tmp_workspace and /root. Texts that
 * name the canonical places (requests, tool arguments, scripted turns) are mapped to it by the one rule below.
 */

/** Stand-ins of an attempt, absolute and without a trailing slash. */
export interface PlaceMap {
  /** For /tmp_workspace. */
  workspace: string;
  /** For /root; only /root/skills is mapped, since other paths below /root are no business of a task. */
  home: string;
}

/** Names of the variables in which an agent of ours is told its stand-ins. */
export const placeMapEnv = { workspace: "PROCTOR_MAP_WORKSPACE", home: "PROCTOR_MAP_HOME" } as const;

const canonical = /(?<![\w./-])(\/tmp_workspace|\/root\/skills)(?![\w-])/g;

/** Replaces paths that begin with /tmp_workspace or /root/skills; longer names (/tmp_workspace2, /a/tmp_workspace) stay. */
export function mapPlaces(text: string, map: PlaceMap | null): string {
  if (!map) return text;
  return text.replace(canonical, (found) => (found === "/tmp_workspace" ? map.workspace : `${map.home}/skills`));
}

/** The stand-ins named in an environment; null in a sandbox, where nothing is to be mapped. */
export function placeMapOf(env: Record<string, string | undefined>): PlaceMap | null {
  const workspace = env[placeMapEnv.workspace];
  const home = env[placeMapEnv.home];
  return workspace && home ? { workspace, home } : null;
}
