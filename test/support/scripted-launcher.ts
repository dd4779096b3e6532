/** runTask by script: what it answers when it starts an executor, and the ways in which it does not. */
import { launchedAnswer, launchFailure, launchSpecOf } from "../../lib/attempt/launch-request.ts";
import { LaunchError } from "../../lib/platform/ports.ts";
import type { ScriptedExecutors } from "./scripted-executors.ts";

export type LaunchFaultScript =
  | "starts"
  | LaunchError["kind"]
  /** Answers well and has placed nothing, without a word. */
  | "nothing"
  | { error: string; message: string };

export function launchScripted(executors: ScriptedExecutors, request: unknown, script: LaunchFaultScript): unknown {
  const spec = launchSpecOf(request);
  if (script === "starts") return launchedAnswer({ id: executors.launch(spec), isolation: "none" }, spec.startedBy);
  if (script === "nothing") return { Tasks: [], Failures: [] };
  if (typeof script === "object") throw named(script.error, script.message);
  const failure = launchFailure(new LaunchError(script, `no luck: ${script}`));
  if ("answer" in failure) return failure.answer;
  throw named(failure.error, failure.cause);
}

function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}
