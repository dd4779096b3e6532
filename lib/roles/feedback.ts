/**
 * The rewriter: what of a user simulator's words reaches the agent. It keeps at most three lines that ask for something,
 * and sends a fixed sentence where none is left (UniClawBench, feedback rewriter).
 */
import { isCompletionPhrase } from "../attempt/completion-phrases.ts";
import type { AttemptState, Language } from "../attempt/vocabulary.ts";

export const maxFeedbackLines = 3;

export interface Rewritten {
  /** What is sent, lines joined by line breaks; never empty. */
  message: string;
  lines: string[];
  /** True when nothing usable was left and the fixed sentence is sent. */
  fallback: boolean;
}

/** @param candidate the simulator's `candidate_feedback` */
export function rewriteFeedback(candidate: string, state: AttemptState, language: Language): Rewritten {
  const lines = feedbackLines(candidate);
  if (lines.length === 0) return { message: fixedSentence(state, language), lines, fallback: true };
  return { message: lines.join("\n"), lines, fallback: false };
}

/** The lines that are kept, in order. */
export function feedbackLines(candidate: string): string[] {
  const kept: string[] = [];
  const keys: string[] = [];
  for (const line of splitLines(candidate)) {
    if (isCompletionPhrase(line)) continue;
    const key = comparable(line);
    // A line of punctuation alone says nothing, and would be contained in every other.
    if (key === "" || keys.some((seen) => seen.includes(key) || key.includes(seen))) continue;
    kept.push(line);
    keys.push(key);
  }
  return kept.slice(0, maxFeedbackLines);
}

/** The sentence that is sent where the simulator has nothing to say, by the state of the attempt and its language. */
export function fixedSentence(state: AttemptState, language: Language): string {
  return fixedSentences[language][state];
}

/** The last two states end an attempt; their sentences stand here so that no state is without one. */
const fixedSentences: Record<Language, Record<AttemptState, string>> = {
  en: {
    in_progress: "Please carry on with what I asked for and finish it.",
    incomplete: "It isn't finished yet. Please do the parts of my request that are still missing.",
    complete_but_failed: "Something in it isn't right. Please check the result against my request and correct it.",
    complete_and_passed: "Please check the result against my request once more.",
    terminal_failure: "Please check the result against my request once more.",
  },
  zh: {
    in_progress: "请继续完成我的要求。",
    incomplete: "还没有做完，请把我的要求里缺少的部分补上。",
    complete_but_failed: "结果还有不对的地方，请对照我的要求检查并改正。",
    complete_and_passed: "请再对照我的要求检查一遍结果。",
    terminal_failure: "请再对照我的要求检查一遍结果。",
  },
};

/** At line breaks; a single line at sentence ends that white space follows. */
function splitLines(text: string): string[] {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== "");
  const pieces = lines.length > 1 ? lines : text.trim().split(/(?<=[。！？.!?])\s+/);
  return pieces.map(withoutBullet).filter((line) => line !== "");
}

function withoutBullet(line: string): string {
  return line.replace(/^[\s\-•]+|[\s\-•]+$/g, "");
}

function comparable(line: string): string {
  return line
    .toLowerCase()
    .replace(/[\p{P}\p{S}]+/gu, "")
    .replace(/\s+/g, " ")
    .trim();
}
