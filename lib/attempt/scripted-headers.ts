/**
 * Headers that a call of a scripted model carries: the server of scripted models serves many models, tasks and attempts
 * over one socket and chooses the answer by them. No other provider ever gets them.
 */
import type { ModelRole } from "./vocabulary.ts";

export interface ScriptedCaller {
  role: ModelRole;
  task: string;
  attempt: string;
  turn: number;
}

/** Values are percent-encoded: header values have no letters beyond Latin-1, folders have. `script`: the model's folder of turns. */
export function scriptedHeaders(script: string, caller: ScriptedCaller): Record<string, string> {
  return {
    "X-Proctor-Script": encodeURIComponent(script),
    "X-Proctor-Role": caller.role,
    "X-Proctor-Task": encodeURIComponent(caller.task),
    "X-Proctor-Attempt": encodeURIComponent(caller.attempt),
    "X-Proctor-Turn": String(caller.turn),
  };
}

/** The value of such a header; one that is not percent-encoded is taken as it is. */
export function headerText(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
