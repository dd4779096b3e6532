/** Simulate: one step of writing the next user message. */
import { type SimulateResult, simulateEvent, simulateResult } from "../lib/attempt/functions.ts";
import { type SimulateDeps, simulateStep } from "../lib/roles/simulator/simulate.ts";

export function simulateHandler(deps: SimulateDeps): (event: unknown) => Promise<SimulateResult> {
  return async (event) => simulateResult.parse(await simulateStep(deps, simulateEvent.parse(event)));
}
