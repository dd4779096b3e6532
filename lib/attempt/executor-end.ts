/**
 * What it means that an executor ended while a turn was open: the error that its token is failed with. It is always a
 * fault of ours or of the platform for the row, since a turn without a report left nothing that could be judged; the
 * name tells the kinds apart for people and for alarms.
 */
import type { TaskStoppedEvent } from "./functions.ts";

export interface ExecutorEnd {
  error:
    | "Proctor.ExecutorOutOfMemory"
    | "Proctor.ExecutorInterrupted"
    | "Proctor.ExecutorNotStarted"
    | "Proctor.ExecutorStopped"
    | "Proctor.ExecutorExited";
  cause: string;
}

/** By ECS's stopCode, the exit code or signal, and the container's reason, in this order of weight. */
export function executorEnd(stopped: Pick<TaskStoppedEvent, "code" | "signal" | "stopCode" | "reason">): ExecutorEnd {
  const how = stopped.signal !== null ? `signal ${stopped.signal}` : `exit code ${stopped.code ?? "unknown"}`;
  const said = (text: string): string => `${text} (${how}${stopped.reason === "" ? "" : `: ${stopped.reason}`})`;
  // On one machine, where there is no stop code, the reason holds words of the agent's side, which decide nothing.
  if (stopped.stopCode !== null && /OutOfMemory|out of memory/i.test(stopped.reason)) {
    return { error: "Proctor.ExecutorOutOfMemory", cause: said("the executor ran out of memory") };
  }
  switch (stopped.stopCode) {
    case "SpotInterruption":
    case "InfrastructureHealth":
    case "TerminationNotice":
      return {
        error: "Proctor.ExecutorInterrupted",
        cause: said("the platform took the executor away"),
      };
    case "TaskFailedToStart":
      return { error: "Proctor.ExecutorNotStarted", cause: said("the executor did not start") };
    case "UserInitiated":
    case "ServiceSchedulerInitiated":
      return {
        error: "Proctor.ExecutorStopped",
        cause: said("the executor was stopped from outside"),
      };
  }
  if (stopped.code === 137 || stopped.signal === "SIGKILL") {
    return {
      error: "Proctor.ExecutorOutOfMemory",
      cause: said("the executor was killed, as it is for want of memory"),
    };
  }
  if (stopped.signal === "SIGTERM" || stopped.signal === "SIGINT") {
    return { error: "Proctor.ExecutorInterrupted", cause: said("the executor was told to end") };
  }
  return {
    error: "Proctor.ExecutorExited",
    cause: said("the executor ended before the turn did"),
  };
}
