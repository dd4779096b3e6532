/** What the supervisor's model answers: the form it is asked for, and how an answer is read. */
import { z } from "zod";
import { attemptState, verdict } from "../../attempt/vocabulary.ts";
import { readAnswer } from "../answer-text.ts";
import type { Reading } from "../conversation.ts";
import { guidanceTag } from "../decision.ts";

const share = z.number().min(0).max(1);
const pointers = z.array(z.string().max(2000)).max(50);
const text = z.string().max(20_000);

const verdictFields = {
  verdict,
  attempt_state: attemptState,
  recoverable: z.boolean(),
  confidence: z.enum(["low", "medium", "high"]),
};

/** The answer as it is kept: pointers exist, tags are known, everything asked for is there. */
export const judgeAnswer = z.object({
  ...verdictFields,
  checkpoints: z.array(z.object({ id: z.string(), credit: share, evidence: pointers, note: text })),
  /** The model's own score, where there are no checkpoints to ask for. */
  score: share.nullable(),
  evidence: pointers,
  caps: z.array(z.object({ id: z.string(), evidence: pointers })),
  rationale: text,
  missing_artifacts: z.array(text),
  guidance_tags: z.array(guidanceTag),
});
export type JudgeAnswer = z.infer<typeof judgeAnswer>;

/** What is asked: checkpoints by id, or a score as a whole where `checkpoints` is empty. */
export interface JudgeQuestion {
  checkpoints: readonly { id: string }[];
  caps: readonly { id: string }[];
}

/** JSON schema of the answer, for providers that hold a model to one. */
export function judgeAnswerSchema(question: JudgeQuestion): Record<string, unknown> {
  const cap = z.strictObject({ id: idOf(question.caps), evidence: z.array(z.string()) });
  const credit = z.strictObject({
    id: idOf(question.checkpoints),
    credit: z.number().min(0).max(1),
    evidence: z.array(z.string()),
    note: z.string(),
  });
  const asked =
    question.checkpoints.length > 0
      ? { checkpoints: z.array(credit) }
      : { score: z.number().min(0).max(1), evidence: z.array(z.string()) };
  const { $schema: _, ...schema } = z.toJSONSchema(
    z.strictObject({
      ...asked,
      caps: z.array(cap),
      ...verdictFields,
      rationale: z.string(),
      missing_artifacts: z.array(z.string()),
      guidance_tags: z.array(guidanceTag),
    }),
  );
  return schema;
}

const idOf = (of: readonly { id: string }[]) => {
  const [first, ...rest] = of.map(({ id }) => id);
  return first === undefined ? z.string() : z.enum([first, ...rest]);
};

const said = z.object({
  ...verdictFields,
  checkpoints: z
    .array(z.object({ id: z.string(), credit: share, evidence: pointers.default([]), note: text.default("") }))
    .default([]),
  score: share.optional(),
  evidence: pointers.default([]),
  /** A bare id counts as a cap without evidence of its own. */
  caps: z.array(z.union([z.string(), z.object({ id: z.string(), evidence: pointers.default([]) })])).default([]),
  rationale: text.default(""),
  missing_artifacts: z.array(text).max(100).default([]),
  guidance_tags: z.array(z.string()).max(100).default([]),
});

/** Reads an answer's form and ids; whether its evidence exists is the next question. */
export function readJudgeAnswer(content: string, question: JudgeQuestion): Reading<JudgeAnswer> {
  const reading = readAnswer(content, said);
  if (!reading.ok) return reading;
  const answer = reading.value;
  const caps = answer.caps.map((cap) => (typeof cap === "string" ? { id: cap, evidence: [] } : cap));
  const problem =
    idProblem("checkpoint", answer.checkpoints, question.checkpoints, true) ??
    idProblem("cap", caps, question.caps, false) ??
    (question.checkpoints.length === 0 && answer.score === undefined ? "score: a number from 0 to 1 is missing" : null);
  if (problem) return { ok: false, problem };
  return {
    ok: true,
    value: {
      ...answer,
      caps,
      score: question.checkpoints.length === 0 ? (answer.score ?? null) : null,
      guidance_tags: answer.guidance_tags.flatMap((tag) => guidanceTag.safeParse(tag).data ?? []),
    },
  };
}

function idProblem(
  what: string,
  given: readonly { id: string }[],
  asked: readonly { id: string }[],
  all: boolean,
): string | null {
  const ids = given.map(({ id }) => id);
  const known = new Set(asked.map(({ id }) => id));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) {
    return `${what} ${JSON.stringify(unknown.slice(0, 80))} was not asked for; there are ${[...known].join(", ") || "none"}`;
  }
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) return `${what} ${twice} is there twice`;
  const missing = all ? [...known].filter((id) => !ids.includes(id)) : [];
  return missing.length > 0 ? `${what} ${missing.join(", ")} is missing` : null;
}

/**
 * Holds the evidence of an answer against what exists. Pointers to nothing are sent back once; afterwards they are
 * dropped, and a credit that is left without any evidence of the agent's work still cannot be used: a reference or the
 * request alone shows nothing of it.
 * @param pointer the stored form of a pointer, null where it points to nothing
 * @param isWork whether a stored pointer leads into a turn's evidence
 */
export async function withExistingEvidence(
  answer: JudgeAnswer,
  pointer: (text: string) => Promise<string | null>,
  isWork: (pointer: string) => boolean,
  sentBack: number,
): Promise<Reading<JudgeAnswer>> {
  const missing: string[] = [];
  const existing = async (texts: readonly string[]): Promise<string[]> => {
    const found: string[] = [];
    for (const one of texts) {
      const stored = await pointer(one);
      if (stored === null) missing.push(one);
      else if (!found.includes(stored)) found.push(stored);
    }
    return found;
  };
  const checkpoints: JudgeAnswer["checkpoints"] = [];
  for (const one of answer.checkpoints) checkpoints.push({ ...one, evidence: await existing(one.evidence) });
  const caps: JudgeAnswer["caps"] = [];
  for (const one of answer.caps) caps.push({ ...one, evidence: await existing(one.evidence) });
  const evidence = await existing(answer.evidence);
  if (missing.length > 0 && sentBack === 0) {
    const named = missing.slice(0, 5).map((one) => JSON.stringify(one.slice(0, 200)));
    return { ok: false, problem: `this evidence does not exist: ${named.join(", ")}` };
  }
  const bare = checkpoints.find((one) => one.credit > 0 && !one.evidence.some(isWork));
  const none = "no evidence that exists below turn-NN/";
  if (bare) return { ok: false, problem: `checkpoint ${bare.id} has a credit above 0 and ${none}` };
  if ((answer.score ?? 0) > 0 && !evidence.some(isWork)) {
    return { ok: false, problem: `the score is above 0 and there is ${none}` };
  }
  return { ok: true, value: { ...answer, checkpoints, caps, evidence } };
}
