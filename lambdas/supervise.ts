/** Supervise: one step of judging a turn. */
import { type SuperviseResult, superviseEvent, superviseResult } from "../lib/attempt/functions.ts";
import { type SuperviseDeps, superviseStep } from "../lib/roles/supervisor/supervise.ts";

export function superviseHandler(deps: SuperviseDeps): (event: unknown) => Promise<SuperviseResult> {
  return async (event) => superviseResult.parse(await superviseStep(deps, superviseEvent.parse(event)));
}
