/** Keys and privacy values of one machine: its environment. */
import type { Secrets } from "../ports.ts";

/** An empty variable counts as none. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>> = process.env): Secrets {
  return { get: async (name) => env[name] || null };
}
