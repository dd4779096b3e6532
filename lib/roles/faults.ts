/** How a role's function says no: the error's name is what a state machine catches. */
import { machineFaults } from "../attempt/functions.ts";

/**
 * No verdict could be had; never the agent's fault. The attempt ends as `unjudged`, to be judged later from stored evidence.
 * The message becomes a row's reason, which everybody reads, so it is made of our own words alone.
 */
export class UnjudgedError extends Error {
  override readonly name = machineFaults.unjudged;
  /** What may quote the rubric, references or the judge's model: for the hidden store alone. */
  readonly hidden: string | null;
  constructor(message: string, options: ErrorOptions & { hidden?: string } = {}) {
    super(message, options);
    this.hidden = options.hidden ?? null;
  }
}

/** The user simulator's model cannot answer at all (no key, no credit, refused); the try ends as an infra fault. */
export class SimulatorSilentError extends Error {
  override readonly name = machineFaults.simulatorSilent;
}
