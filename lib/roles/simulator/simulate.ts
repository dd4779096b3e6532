/**
 * The user simulator's function: writes the message that opens the next turn. It knows the request, what a person could
 * see of the work, and four fields of the decision; its store shows it nothing else.
 */
import type { SimulateEvent, SimulateResult } from "../../attempt/functions.ts";
import { noUsage, type Usage } from "../../attempt/usage.ts";
import type { Language } from "../../attempt/vocabulary.ts";
import { followUpFileKey, followUpUsageKey, type ObjectName, packageFile, turnFolder } from "../../firewall/keys.ts";
import type { ObjectStore } from "../../platform/ports.ts";
import type { ManifestLine } from "../../sweep/manifest-line.ts";
import { publishedFiles, type SimulatorPart, simulatorPart } from "../../tasks/published.ts";
import { type EvidenceView, getOrNull, openView } from "../../trajectory/evidence-view.ts";
import { decodeText, safeText } from "../../trajectory/plain-text.ts";
import { askAgain } from "../answer-text.ts";
import { type ConversationDeps, type ConversationEnd, converse, Patience } from "../conversation.ts";
import { SimulatorSilentError } from "../faults.ts";
import { fixedSentence, rewriteFeedback } from "../feedback.ts";
import { fenced } from "../fence.ts";
import { type FollowUp, followUp } from "../follow-up.ts";
import { lastMessage } from "../last-message.ts";
import { promptsDigest } from "../prompts/digest.ts";
import * as english from "../prompts/simulator-en.ts";
import * as chinese from "../prompts/simulator-zh.ts";
import { readTools } from "../prompts/tools.ts";
import { runReadTool } from "../read-tools.ts";
import { StepLog, type StepMessage, usageOf } from "../steps.ts";
import { createOnce, parsedJson } from "../stored.ts";
import { readSimulatorAnswer, simulatorAnswer, simulatorAnswerSchema } from "./simulator-answer.ts";

export interface SimulateDeps extends ConversationDeps {
  /** As the user simulator sees it. */
  store: ObjectStore;
}

const promptsIn = { en: english, zh: chinese } as const;

/** @throws SimulatorSilentError when its provider refuses for good */
export async function simulateStep(deps: SimulateDeps, event: SimulateEvent): Promise<SimulateResult> {
  const { line } = event;
  const key = followUpFile(event, ".json");
  const stored = await getOrNull(deps.store, key);
  if (stored) return turnResult(key.key, parsedJson(followUp, stored), event.waitedSeconds);

  const patience = new Patience(event.waitedSeconds);
  const made =
    line.userSimulator.kind === "none"
      ? fixedFollowUp(event, line.language, false, { prompts: "none" }, noUsage)
      : await written(deps, event, line.userSimulator, patience);
  const waitedSeconds = event.waitedSeconds + patience.waitedMs / 1000;
  if (made === "more") return { v: 1, next: "more", followUpKey: null, fallback: false, waitedSeconds };
  await createOnce(deps.store, key, JSON.stringify(made));
  // Two calls at once agree on the one that was written.
  return turnResult(key.key, parsedJson(followUp, await deps.store.get(key)), waitedSeconds);
}

async function written(
  deps: SimulateDeps,
  event: SimulateEvent,
  choice: Extract<ManifestLine["userSimulator"], { kind: "model" }>,
  patience: Patience,
): Promise<FollowUp | "more"> {
  const { line, turn } = event;
  const part = parsedJson(
    simulatorPart,
    await deps.store.get(packageFile(line.task, line.digest, "simulator", publishedFiles.simulator)),
  );
  const log = await StepLog.open(deps.store, {
    step: (number) => followUpFile(event, `-step-${String(number).padStart(2, "0")}.json`),
    usage: (number) => followUpUsageKey(tryOf(event), turn + 1, number),
    role: "simulator",
    turn,
    model: choice.model.name,
  });
  const past = await earlierFollowUps(deps.store, event);
  const view = await openView(deps.store, {
    of: tryOf(event),
    package: { task: line.task, digest: line.digest },
    turn,
    kinds: ["transcript", "events", "result", "screenshot"],
    hidden: false,
  });
  const cap = line.limits.usdJudging;
  const end = await converse(
    deps,
    log,
    {
      name: "simulate",
      model: choice.model,
      effort: part.effort,
      caller: { role: "simulator", task: line.task, attempt: line.attempt, turn },
      opening: () => opening(deps.store, event, part, view, past),
      tools: readTools,
      runTool: (name, args) => runReadTool(view, name, args),
      answerSchema: { name: "message", schema: simulatorAnswerSchema() },
      read: async (content) => readSimulatorAnswer(content),
      again: askAgain,
      usdLeft: cap === null ? null : cap - past.reduce((sum, { usage }) => sum + usage.usd, 0),
    },
    patience,
  );
  if (end.kind === "more") return "more";
  return messageOf(event, part, end, usageOf(log.steps));
}

/** From the model's answer to what is sent. An answer that could not be had in time or money is a fixed sentence, flagged. */
function messageOf(
  event: SimulateEvent,
  part: SimulatorPart,
  end: Exclude<ConversationEnd, { kind: "more" }>,
  usage: Usage,
): FollowUp {
  const digests = { prompts: simulatorDigest(part) };
  switch (end.kind) {
    case "refused":
      throw new SimulatorSilentError(`turn ${event.turn}: ${end.reason}: ${end.detail}`);
    case "unreadable":
    case "capped":
      return fixedFollowUp(event, part.language, true, digests, usage);
    case "answered": {
      const answer = simulatorAnswer.parse(end.value);
      if (answer.mode === "silent") return fixedFollowUp(event, part.language, false, digests, usage);
      const rewritten = rewriteFeedback(safeText(answer.candidate_feedback), event.attempt_state, part.language);
      return {
        v: 1,
        turn: event.turn + 1,
        ...rewritten,
        language: part.language,
        mode: answer.mode,
        tone: answer.tone,
        digests,
        usage,
      };
    }
  }
}

function fixedFollowUp(
  event: SimulateEvent,
  language: Language,
  fallback: boolean,
  digests: FollowUp["digests"],
  usage: Usage,
): FollowUp {
  return {
    v: 1,
    turn: event.turn + 1,
    message: fixedSentence(event.attempt_state, language),
    language,
    mode: "silent",
    tone: "neutral",
    lines: [],
    fallback,
    digests,
    usage,
  };
}

async function opening(
  store: ObjectStore,
  event: SimulateEvent,
  part: SimulatorPart,
  view: EvidenceView,
  past: readonly FollowUp[],
): Promise<StepMessage[]> {
  const { line, turn } = event;
  const prompts = promptsIn[part.language];
  const request = decodeText(await store.get(packageFile(line.task, line.digest, "agent", publishedFiles.request)));
  const last = lastMessage(await view.events(turn));
  const words = wording[part.language];
  const state = `verdict ${event.verdict}, state ${event.attempt_state}, recoverable ${event.recoverable}, score ${event.score}`;
  const parts = [
    `${words.state}: ${state}`,
    fenced(words.request, request),
    ...past.map((message) => fenced(words.earlier, message.message)),
    fenced(words.files, view.list()),
    last === null ? words.noLast : fenced(words.last, last),
  ];
  return [
    { role: "system", content: `${prompts.simulatorPrompt}\n\n${part.policy ?? prompts.defaultPolicy}` },
    { role: "user", content: parts.join("\n\n") },
  ];
}

const wording = {
  en: {
    state: "How things stand, for you alone",
    request: "your request, as the assistant got it",
    earlier: "what you wrote to it before",
    files: "files that you may open",
    last: "its last message to you",
    noLast: "It left no last message.",
  },
  zh: {
    state: "目前的情况，只给你自己参考",
    request: "你的请求，助手收到的样子",
    earlier: "你之前写给它的话",
    files: "你可以打开的文件",
    last: "它给你的最后一条消息",
    noLast: "它没有留下最后的消息。",
  },
} as const;

async function earlierFollowUps(store: ObjectStore, event: SimulateEvent): Promise<FollowUp[]> {
  const found: FollowUp[] = [];
  for (let turn = 2; turn <= event.turn; turn++) {
    const bytes = await getOrNull(store, followUpFileKey(tryOf(event), `${turnFolder(turn)}.json`));
    if (bytes) found.push(parsedJson(followUp, bytes));
  }
  return found;
}

function turnResult(followUpKey: string, made: FollowUp, waitedSeconds: number): SimulateResult {
  return { v: 1, next: "turn", followUpKey, fallback: made.fallback, waitedSeconds };
}

function simulatorDigest(part: SimulatorPart): string {
  const { simulatorPrompt, defaultPolicy } = promptsIn[part.language];
  return promptsDigest({ simulatorPrompt, policy: part.policy ?? defaultPolicy, readTools });
}

/** Objects of the message that opens the next turn. */
function followUpFile(event: SimulateEvent, suffix: string): ObjectName {
  return followUpFileKey(tryOf(event), `${turnFolder(event.turn + 1)}${suffix}`);
}

const tryOf = (event: SimulateEvent) => ({ attempt: event.line.attempt, try: event.try });
