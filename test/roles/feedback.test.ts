import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isCompletionPhrase } from "../../lib/attempt/completion-phrases.ts";
import { attemptState, language } from "../../lib/attempt/vocabulary.ts";
import { feedbackLines, fixedSentence, maxFeedbackLines, rewriteFeedback } from "../../lib/roles/feedback.ts";

describe("the rewriter", () => {
  it("joins what it keeps, and says when it sends the fixed sentence", () => {
    expect(rewriteFeedback("- Save the chart\n• Add labels", "incomplete", "en")).toEqual({
      message: "Save the chart\nAdd labels",
      lines: ["Save the chart", "Add labels"],
      fallback: false,
    });
    expect(rewriteFeedback("已完成。", "complete_but_failed", "zh")).toEqual({
      message: fixedSentence("complete_but_failed", "zh"),
      lines: [],
      fallback: true,
    });
  });

  it("compares lines without punctuation and case", () => {
    expect(feedbackLines("Save the file, please!\nsave the file please")).toEqual(["Save the file, please!"]);
    expect(feedbackLines("…\nPlease check row 4")).toEqual(["Please check row 4"]);
  });

  it("has a sentence for every state and language, which speaks of nothing that the user cannot know", () => {
    for (const state of attemptState.options) {
      for (const of of language.options) {
        const sentence = fixedSentence(state, of);
        expect(sentence).not.toBe("");
        expect(sentence).not.toMatch(/supervisor|score|turn|reference|rubric|评分|分数|裁判/i);
        expect(/\p{Script=Han}/u.test(sentence)).toBe(of === "zh");
      }
    }
  });

  it("whatever comes in, at most three lines and never an empty message", () => {
    fc.assert(
      fc.property(fc.string(), (candidate) => {
        const { message, lines, fallback } = rewriteFeedback(candidate, "incomplete", "en");
        expect(lines.length).toBeLessThanOrEqual(maxFeedbackLines);
        expect(message.trim()).not.toBe("");
        expect(fallback).toBe(lines.length === 0);
        expect(lines.filter(isCompletionPhrase)).toEqual([]);
      }),
    );
  });
});
