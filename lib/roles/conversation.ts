/**
 * One conversation of a role with its model, in steps: asks, runs the tools that the model calls, asks again where an
 * answer cannot be used, waits where the provider asks for it, and stops after 300 s of waiting with "more".
 */
import { mayPass } from "../attempt/provider-fault.ts";
import { costOf, estimatedTokens, noUsage, type Tokens } from "../attempt/usage.ts";
import type { ModelRole } from "../attempt/vocabulary.ts";
import type { ChatResult, ChatTool, Clock, ModelClient } from "../platform/ports.ts";
import type { ModelChoice } from "../sweep/manifest-line.ts";
import { sha256Hex } from "../tasks/canonical.ts";
import { type CallStep, callsOf, type Step, type StepLog, type StepMessage, usageOf } from "./steps.ts";

export const conversationLimits = {
  /** Milliseconds that one request may take: an answer that is cut off is paid all the same, and worth nothing. */
  requestMs: 300_000,
  /**
   * Milliseconds of waiting after which a function call begins no request. What it has begun may take its own time, so a
   * call waits less than the two together, which leaves 300 s of the 900 s that a function may run.
   */
  waitMs: 300_000,
  /** The same for all calls of one turn's work: the machines give it up then (the 20 minutes in their Choice states). */
  totalWaitMs: 1_200_000,
  /** Answers that could not be used before the conversation is given up. */
  unreadable: 3,
  toolRounds: 40,
  toolCallsAtOnce: 8,
  /** Characters of tool results in all. */
  toolCharacters: 400_000,
  maxOutputTokens: 16_000,
  backoffMs: { first: 1000, most: 30_000 },
} as const;

export interface ConversationDeps {
  models: ModelClient;
  clock: Clock;
}

/** What is left of this function call's patience; shared by all conversations of one call. */
export class Patience {
  waitedMs = 0;
  readonly #budgetMs: number;
  /** @param earlierSeconds what earlier calls for the same turn waited */
  constructor(earlierSeconds: number) {
    this.#budgetMs = Math.min(conversationLimits.waitMs, conversationLimits.totalWaitMs - earlierSeconds * 1000);
  }
  /** Of the waiting within which a request may begin; 0: none may. */
  get leftMs(): number {
    return Math.max(0, this.#budgetMs - this.waitedMs);
  }
}

export type Reading<T> = { ok: true; value: T } | { ok: false; problem: string };

export interface Conversation<T> {
  name: string;
  model: ModelChoice;
  effort: "low" | "medium" | "high";
  caller: { role: ModelRole; task: string; attempt: string; turn: number };
  opening: () => StepMessage[] | Promise<StepMessage[]>;
  tools: ChatTool[];
  runTool: (name: string, args: string) => Promise<string>;
  answerSchema: { name: string; schema: Record<string, unknown> };
  /** `sentBack`: how many answers of this conversation were refused so far. */
  read: (content: string, sentBack: number) => Promise<Reading<T>>;
  /** What is said after an answer that could not be used. */
  again: (problem: string) => string;
  /** Dollars that all calls in the log may cost; null: no cap. */
  usdLeft: number | null;
}

export type ConversationEnd =
  | { kind: "answered"; value: unknown }
  | { kind: "more" }
  /** `reason` is in our words. `detail` may quote the model, the provider, and so the prompt. */
  | { kind: "unreadable"; reason: string; detail: string }
  /** The provider refuses, and asking again would not help. */
  | { kind: "refused"; reason: string; detail: string }
  | { kind: "capped"; reason: string };

export async function converse<T>(
  deps: ConversationDeps,
  log: StepLog,
  conversation: Conversation<T>,
  patience: Patience,
): Promise<ConversationEnd> {
  for (;;) {
    const mine = log.steps.filter((one) => one.kind !== "facts" && one.conversation === conversation.name);
    const opened = mine.find((one) => one.kind === "opened");
    if (!opened) {
      const messages = await conversation.opening();
      await log.append({ v: 1, kind: "opened", conversation: conversation.name, messages });
      continue;
    }
    const closed = mine.find((one) => one.kind === "closed");
    if (closed) {
      const answers = callsOf(mine).filter((call) => call.outcome === "asked_again").length;
      return { kind: "unreadable", reason: `${answers} answers could not be used`, detail: closed.reason };
    }
    const calls = callsOf(mine);
    const last = calls.at(-1);
    if (last?.outcome === "accepted") return { kind: "answered", value: last.accepted };
    const sentBack = calls.filter((call) => call.outcome === "asked_again");
    if (sentBack.length >= conversationLimits.unreadable) {
      const reason = `${sentBack.length} answers could not be used, the last because ${sentBack.at(-1)!.call.problem}`;
      await log.append({ v: 1, kind: "closed", conversation: conversation.name, reason });
      continue;
    }
    const spent = usageOf(log.steps).usd;
    if (conversation.usdLeft !== null && spent >= conversation.usdLeft) {
      return { kind: "capped", reason: `judging has used its dollars (usdJudging; $${spent.toFixed(4)} in this turn)` };
    }
    if (!(await waitedFor(last?.retryAt ?? null, deps.clock, patience)) || patience.leftMs === 0)
      return { kind: "more" };

    const messages = opened.messages.concat(
      calls.flatMap((call) => [...(call.said ? [call.said] : []), ...call.replies]),
    );
    const result = await ask(deps, conversation, messages, patience);
    if (result.status !== "ok" && !mayPass(result.status)) {
      await log.append(failedCall(conversation, messages, result, null));
      const http = /\bHTTP \d{3}\b/.exec(result.message)?.[0];
      const reason = `${conversation.model.provider}: ${result.status}${http === undefined ? "" : ` (${http})`}`;
      return { kind: "refused", reason, detail: result.message };
    }
    const next =
      result.status === "ok"
        ? await taken(conversation, calls, result)
        : failedCall(conversation, messages, result, retryAt(deps.clock, conversation, calls, result));
    await log.append(next);
  }
}

async function ask<T>(
  deps: ConversationDeps,
  conversation: Conversation<T>,
  messages: StepMessage[],
  patience: Patience,
): Promise<ChatResult> {
  const started = deps.clock.now();
  const result = await deps.models.chat({
    model: conversation.model,
    messages: messages.map(chatMessageOf),
    tools: conversation.tools,
    answerSchema: conversation.answerSchema,
    effort: conversation.effort,
    maxOutputTokens: conversationLimits.maxOutputTokens,
    timeoutMs: conversationLimits.requestMs,
    caller: conversation.caller,
  });
  patience.waitedMs += deps.clock.now() - started;
  return result;
}

/** The step that follows from an answer: tools to run, an answer to take, or one to send back. */
async function taken<T>(
  conversation: Conversation<T>,
  calls: readonly CallStep[],
  result: Extract<ChatResult, { status: "ok" }>,
): Promise<Step> {
  const said = {
    role: "assistant" as const,
    content: result.content,
    ...(result.toolCalls.length > 0 ? { toolCalls: result.toolCalls } : {}),
  };
  const step = (
    outcome: CallStep["outcome"],
    replies: StepMessage[],
    problem: string | null,
    more: Pick<CallStep, "accepted"> = {},
  ): Step => ({
    v: 1,
    kind: "call",
    conversation: conversation.name,
    call: callOf(result.tokens, result.usd, result.ms, problem === null ? "ok" : "unreadable", problem),
    outcome,
    said,
    replies,
    retryAt: null,
    ...more,
  });
  if (result.toolCalls.length > 0) {
    const rounds = calls.filter((call) => call.outcome === "tools");
    const shown = rounds.flatMap((call) => call.replies).reduce((sum, reply) => sum + (reply.content?.length ?? 0), 0);
    const closed = rounds.length >= conversationLimits.toolRounds || shown >= conversationLimits.toolCharacters;
    const replies: StepMessage[] = [];
    for (const [number, call] of result.toolCalls.entries()) {
      const content = closed
        ? "The tools are closed: enough has been read. Give your answer now."
        : number >= conversationLimits.toolCallsAtOnce
          ? `Not run: at most ${conversationLimits.toolCallsAtOnce} calls at once.`
          : await conversation.runTool(call.name, call.arguments);
      replies.push({ role: "tool", toolCallId: call.id, content });
    }
    return closed
      ? step("asked_again", replies, "it goes on calling tools that are closed")
      : step("tools", replies, null);
  }
  const sentBack = calls.filter((call) => call.outcome === "asked_again").length;
  const reading: Reading<T> =
    result.finishReason === "length"
      ? { ok: false, problem: "it was cut off at its greatest length" }
      : await conversation.read(result.content ?? "", sentBack);
  if (reading.ok) return step("accepted", [], null, { accepted: reading.value });
  return step("asked_again", [{ role: "user", content: conversation.again(reading.problem) }], reading.problem);
}

function failedCall<T>(
  { name, model }: Conversation<T>,
  sent: readonly StepMessage[],
  result: Exclude<ChatResult, { status: "ok" }>,
  retry: number | null,
): Step {
  const used = result.status === "timeout" ? { ...noUsage, input: estimatedTokens(JSON.stringify(sent)) } : noUsage;
  // A provider works on, and bills, what we stopped waiting for; its answer's length nobody knows.
  const call = callOf(used, costOf(used, model.price), result.ms, result.status, result.message);
  return { v: 1, kind: "call", conversation: name, call, outcome: "failed", said: null, replies: [], retryAt: retry };
}

function callOf(
  { input, cached, output }: Tokens,
  usd: number,
  ms: number,
  status: CallStep["call"]["status"],
  problem: string | null,
): CallStep["call"] {
  return { status, ms, tokens: { input, cached, output }, usd, problem };
}

/**
 * When to ask again: as the provider says, else 1, 2, 4 … 30 s after the failures in a row. Up to half of it comes off by
 * the caller's name, so that attempts which were refused together do not come back together.
 */
function retryAt<T>(
  clock: Clock,
  { caller }: Conversation<T>,
  calls: readonly CallStep[],
  result: Exclude<ChatResult, { status: "ok" }>,
): number {
  if (result.retryAfterMs !== null) return clock.now() + result.retryAfterMs;
  const inARow = calls.length - 1 - calls.findLastIndex((call) => call.outcome !== "failed");
  const { first, most } = conversationLimits.backoffMs;
  const full = Math.min(most, first * 2 ** inARow);
  const spread =
    Number.parseInt(sha256Hex(`${caller.attempt}/${caller.turn}/${calls.length}`).slice(0, 8), 16) / 2 ** 32;
  return clock.now() + Math.round(full * (1 - spread / 2));
}

/** Sleeps until then, as far as patience goes. @returns whether that time has come. */
async function waitedFor(until: number | null, clock: Clock, patience: Patience): Promise<boolean> {
  const wanted = until === null ? 0 : until - clock.now();
  if (wanted <= 0) return true;
  const ms = Math.min(wanted, patience.leftMs);
  await clock.sleep(ms);
  patience.waitedMs += ms;
  return ms === wanted;
}

function chatMessageOf(message: StepMessage) {
  if (message.role !== "assistant") return message;
  const { toolCalls, ...rest } = message;
  return toolCalls ? { ...rest, toolCalls } : rest;
}
