/** Phrases by which agents say that they are done, in English and Chinese (UniClawBench's closed list). */

const marker = "i have finished the request";
const englishSentences = new Set([
  marker,
  "i finished the request",
  "i have completed the request",
  "i completed the request",
  "the request is finished",
  "the request is complete",
  "the task is complete",
  "task complete",
  "task is complete",
  "task is done",
  "done",
  "completed",
  "already complete",
  "appears complete",
  "all required files have been created",
]);
/** Their negations (还没完成, 未完成) do not contain them, so they count inside a longer sentence. */
const chineseMarkers = ["已完成", "已经完成", "任务完成"];

/** Whether a message says anywhere that the work is done. */
export function claimsCompletion(text: string): boolean {
  if (text.toLowerCase().includes(marker)) return true;
  if (chineseMarkers.some((phrase) => text.includes(phrase))) return true;
  // Whole sentences only: "not done yet" contains "done" and is not equal to it.
  return text.split(/[.!?。！？\n]+/).some(isCompletionPhrase);
}

/** Whether a line is a completion phrase and nothing else, punctuation, spacing and case aside. */
export function isCompletionPhrase(line: string): boolean {
  const bare = line
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/^[ .!?:;。！？]+|[ .!?:;。！？]+$/g, "");
  return englishSentences.has(bare) || chineseMarkers.includes(bare);
}
