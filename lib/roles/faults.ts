/** How a role's function says no: the error's name is what a state machine catches. */
import { machineFaults } from "../attempt/functions.ts";

/**
 * No verdict could be had; never the agent's fault. The attempt ends as `unjudged`, to be judged later from stored evidence.
 *
 * The message becomes the row's reason, which everybody may read. What it quotes comes from a judge's answer or from a
 * reference that a check read, so quotations are left out; whole, they stand in the hidden steps of the turn.
 */
export class UnjudgedError extends Error {
  override readonly name = machineFaults.unjudged;
  constructor(message: string, options?: ErrorOptions) {
    super(message.replace(/"(?:[^"\\]|\\.)*"?/gs, '"…"'), options);
  }
}

/** The user simulator's model cannot answer at all (no key, no credit, refused); the try ends as an infra fault. */
export class SimulatorSilentError extends Error {
  override readonly name = machineFaults.simulatorSilent;
}
