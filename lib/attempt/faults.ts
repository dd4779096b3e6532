/** What a fault that the machine caught makes of an attempt, and who caused it. */
import { machineFaults } from "./functions.ts";
import type { Culprit, ErrorStatus } from "./vocabulary.ts";

export interface FaultMeaning {
  status: Exclude<ErrorStatus, "missing">;
  culprit: Culprit;
  /** For people. */
  text: string;
  /** True where the name alone decides; a fault with an unknown name is read together with what the try left behind. */
  certain: boolean;
}

const meanings: Record<string, Omit<FaultMeaning, "certain">> = {
  [machineFaults.unjudged]: {
    status: "unjudged",
    culprit: "provider",
    text: "the supervisor gave no decision in time",
  },
  [machineFaults.simulatorSilent]: {
    status: "infra_error",
    culprit: "provider",
    text: "the user simulator gave no message in time",
  },
  [machineFaults.launchFailed]: { status: "infra_error", culprit: "platform", text: "no executor could be started" },
  [machineFaults.cancelled]: { status: "cancelled", culprit: "user", text: "cancelled" },
  [machineFaults.costStopped]: { status: "cost_stopped", culprit: "limits", text: "the sweep's cap was reached" },
  [machineFaults.preExecFailed]: { status: "pre_exec_failed", culprit: "task", text: "the package's pre_exec failed" },
  "States.Timeout": { status: "infra_error", culprit: "platform", text: "the turn's runner did not answer in time" },
  "States.HeartbeatTimeout": { status: "infra_error", culprit: "platform", text: "the turn's runner fell silent" },
};

export function faultMeaning(error: string): FaultMeaning {
  const known = Object.hasOwn(meanings, error) ? meanings[error] : undefined;
  if (known) return { ...known, certain: true };
  return { status: "infra_error", culprit: "platform", text: `a fault of ours (${error})`, certain: false };
}
