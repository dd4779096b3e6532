/** Time, randomness and secrets of this machine. */
import { environmentSecrets } from "../../lib/platform/local/environment-secrets.ts";
import { RealClock } from "../../lib/platform/local/real-clock.ts";
import { systemRandom } from "../../lib/platform/local/system-random.ts";
import type { Clock, Random, Secrets } from "../../lib/platform/ports.ts";

export function localPorts(): { clock: Clock; random: Random; secrets: Secrets } {
  return { clock: new RealClock(), random: systemRandom, secrets: environmentSecrets() };
}
