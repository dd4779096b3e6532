/** The agent's last words of a turn, as the supervisor and the user see them first. */
import type { TrajectoryEvent } from "../trajectory/events.ts";
import { headAndTailText } from "../trajectory/plain-text.ts";

/** Characters of head and of tail that are shown of it; the whole is in the transcript. */
const shownCharacters = 8000;

/** Null when the agent said nothing in words. */
export function lastMessage(events: readonly TrajectoryEvent[]): string | null {
  const spoken = events.filter(
    (event) => event.kind === "message" && event.role === "assistant" && (event.text ?? "").trim() !== "",
  );
  const text = spoken.at(-1)?.text;
  return text === undefined ? null : headAndTailText(text, shownCharacters);
}
