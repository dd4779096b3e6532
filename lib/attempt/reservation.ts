/** Dollars that an attempt may cost at most: what Prepare holds back from the sweep's cap until the try is closed. */
import type { ManifestLine, ModelChoice } from "../sweep/manifest-line.ts";

/**
 * Executor and judging together, in dollars. The executor's part is the lesser of its dollar cap and its token cap at
 * the model's dearest price. A part without any cap, or of a free model, counts as 0: nothing bounds it.
 */
export function worstCaseUsd(line: Pick<ManifestLine, "model" | "limits" | "supervisor" | "userSimulator">): number {
  const { usdPerAttempt, tokensPerAttempt } = line.limits;
  const bounds = [
    ...(usdPerAttempt === null ? [] : [usdPerAttempt]),
    ...(tokensPerAttempt === null ? [] : [(tokensPerAttempt * dearest(line.model)) / 1_000_000]),
  ];
  const executor = dearest(line.model) === 0 || bounds.length === 0 ? 0 : Math.min(...bounds);
  return executor + worstJudgingUsd(line);
}

/** The part of supervisor and user simulator: also what judging a try again is held back for. */
export function worstJudgingUsd({
  limits,
  supervisor,
  userSimulator,
}: Pick<ManifestLine, "limits" | "supervisor" | "userSimulator">): number {
  const judges = [supervisor, userSimulator].flatMap((role) => (role.kind === "model" ? [role.model] : []));
  return judges.some((model) => dearest(model) > 0) ? (limits.usdJudging ?? 0) : 0;
}

function dearest(model: ModelChoice): number {
  return Math.max(model.price.input, model.price.cached ?? 0, model.price.output);
}
