/** What a fault that the machine caught makes of an attempt. */
import type { ExecutorEnd } from "./executor-end.ts";
import { machineFaults, openTurnErrors } from "./functions.ts";
import type { ErrorStatus } from "./vocabulary.ts";

export interface FaultMeaning {
  status: Exclude<ErrorStatus, "missing">;
  /** For people. */
  text: string;
  /** True where the name alone decides; a fault with an unknown name is read together with what the try left behind. */
  certain: boolean;
}

/** Entries are certain where they do not say otherwise. */
const meanings: Record<string, Omit<FaultMeaning, "certain"> & { certain?: false }> = {
  [machineFaults.unjudged]: {
    status: "unjudged",
    text: "the supervisor gave no decision in time",
  },
  [machineFaults.simulatorSilent]: {
    status: "infra_error",
    text: "the user simulator gave no message in time",
  },
  [machineFaults.launchFailed]: { status: "infra_error", text: "no executor could be started" },
  [machineFaults.cancelled]: { status: "cancelled", text: "cancelled" },
  [machineFaults.costStopped]: { status: "cost_stopped", text: "the sweep's cap was reached" },
  [machineFaults.preExecFailed]: { status: "pre_exec_failed", text: "the package's pre_exec failed" },
  "States.Timeout": { status: "infra_error", text: "the turn's runner did not answer in time" },
  "States.HeartbeatTimeout": { status: "infra_error", text: "the turn's runner fell silent" },
  ...executorFault("Proctor.ExecutorOutOfMemory", "the executor ran out of memory"),
  ...executorFault("Proctor.ExecutorInterrupted", "the executor was taken away"),
  ...executorFault("Proctor.ExecutorNotStarted", "the executor did not start"),
  ...executorFault("Proctor.ExecutorStopped", "the executor was stopped from outside"),
  ...executorFault("Proctor.ExecutorExited", "the executor ended before the turn did"),
  [openTurnErrors.turnExists]: { status: "infra_error", text: "the turn had been opened before" },
  [openTurnErrors.tryClosed]: { status: "infra_error", text: "the try was closed meanwhile" },
  [openTurnErrors.privacyValueMissing]: {
    status: "infra_error",
    text: "a privacy value of the package is not set",
  },
};

/** An executor may end after it wrote all evidence and before it could answer: what it left behind is read too. */
function executorFault(error: ExecutorEnd["error"], text: string): typeof meanings {
  return { [error]: { status: "infra_error", text, certain: false } };
}

export function faultMeaning(error: string): FaultMeaning {
  const known = Object.hasOwn(meanings, error) ? meanings[error] : undefined;
  if (known) return { ...known, certain: known.certain ?? true };
  return { status: "infra_error", text: `a fault of ours (${error})`, certain: false };
}
