/**
 * Whether an agent ended its turn by itself, judged on the last assistant message of the turn (UniClawBench, executor
 * completion). Adapters name their agent's rule; an agent without one gets `completionRules.default`.
 */
import type { TrajectoryEvent } from "../trajectory/events.ts";
import type { Completion } from "../trajectory/turn-report.ts";
import { claimsCompletion } from "./completion-phrases.ts";

/** The last assistant message of a turn, as the rules see it. */
export interface LastMessage {
  text: string;
  /** Null where the agent keeps no stop reason: many leave it out even on a clean end. */
  stopReason: string | null;
  hasToolCall: boolean;
  /** Names of the tools that the same agent called lately, newest first. */
  recentTools: readonly string[];
}

export interface CompletionRule {
  /** Completion phrases count. */
  phrases: boolean;
  /** A last message of text alone counts, whatever it says. */
  textOnly: boolean;
  /** Whether a last message without tool calls outweighs a non-zero exit. */
  forgivesExit: (last: LastMessage) => boolean;
  /** The agent whose messages count where several write one transcript; null: any. */
  primaryAgent: string | null;
}

const never = (): boolean => false;

/** The rule of each agent that has one. `null` has no transcript: see `exitZeroCompletion`. */
export const completionRules = {
  openclaw: {
    phrases: true,
    textOnly: true,
    // OpenClaw runs commands of its own after the answer (a commit, say), whose exit code is not the agent's.
    forgivesExit: (last) => hasText(last) && !isUnfinished(last.stopReason),
    primaryAgent: null,
  },
  nanobot: {
    phrases: true,
    textOnly: true,
    forgivesExit: hasText,
    primaryAgent: null,
  },
  openclaw_edict: {
    phrases: true,
    textOnly: false,
    // Its first agent answers at once that it passes the work on; such a note is short and follows a hand-over.
    forgivesExit: (last) => codePoints(last.text.trim()) >= 200 && !isRouting(last),
    primaryAgent: "taizi",
  },
  /** Our own agent always has the API's stop reason, so nothing else counts. */
  mini: { phrases: false, textOnly: false, forgivesExit: never, primaryAgent: null },
  default: { phrases: true, textOnly: false, forgivesExit: never, primaryAgent: null },
} as const satisfies Record<string, CompletionRule>;

export type CompletionRuleName = keyof typeof completionRules;

/** The rule of an agent by its name. */
function completionRuleOf(agent: string): CompletionRule {
  return Object.hasOwn(completionRules, agent) ? completionRules[agent as CompletionRuleName] : completionRules.default;
}

/**
 * Judges one turn.
 * @param events the events of this turn alone
 * @param exitCode the agent's; null (no exit code was seen) counts as zero
 */
export function completionByTranscript(
  rule: CompletionRule,
  events: readonly TrajectoryEvent[],
  exitCode: number | null,
): Completion {
  const last = lastAssistantMessage(events, rule.primaryAgent);
  if (exitCode !== null && exitCode !== 0) {
    const forgiven = last !== null && !last.hasToolCall && rule.forgivesExit(last);
    if (forgiven) return { complete: true, reason: "forgiven_exit" };
    const routing = last !== null && rule.primaryAgent !== null && isRouting(last);
    return { complete: false, reason: routing ? "routing_only" : "nonzero_exit" };
  }
  if (last === null) return { complete: false, reason: "no_message" };
  if (isUnfinished(last.stopReason)) return { complete: false, reason: "api_unfinished" };
  if (last.hasToolCall) return { complete: false, reason: "pending_tool_call" };
  if (isFinished(last.stopReason)) return { complete: true, reason: "api_stop" };
  if (rule.phrases && claimsCompletion(last.text)) return { complete: true, reason: "phrase" };
  if (rule.textOnly && hasText(last)) return { complete: true, reason: "text_only" };
  return { complete: false, reason: "no_signal" };
}

/** For agents without a transcript: an exit with 0. */
export function exitZeroCompletion(exitCode: number | null): Completion {
  if (exitCode === null) return { complete: false, reason: "no_exit" };
  return exitCode === 0 ? { complete: true, reason: "exit_zero" } : { complete: false, reason: "nonzero_exit" };
}

/** Judges one turn of an agent by the agent's name. */
export function completionOf(agent: string, events: readonly TrajectoryEvent[], exitCode: number | null): Completion {
  return agent === "null"
    ? exitZeroCompletion(exitCode)
    : completionByTranscript(completionRuleOf(agent), events, exitCode);
}

/** Names of one stop reason in the three APIs. */
const finished = new Set(["stop", "end_turn", "stop_sequence"]);
const unfinished = new Set(["toolUse", "tool_use", "tool_calls", "function_call", "length", "max_tokens"]);
const isFinished = (reason: string | null): boolean => reason !== null && finished.has(reason);
const isUnfinished = (reason: string | null): boolean => reason !== null && unfinished.has(reason);

function hasText(last: LastMessage): boolean {
  return last.text.trim() !== "";
}

function codePoints(text: string): number {
  return [...text].length;
}

/** How many assistant messages back a hand-over may stand. */
const routingWindow = 12;
const handOverTools = new Set(["sessions_send", "sessions_spawn"]);
/** What Edict's first agent writes while others work: received, wait, passed on, reply to come; and its silent markers. */
const routingWords = /旨意|接旨|回奏|尚书省|门下省|中书省|转交|派发|稍候|等待|no_reply|reply_skip|announce_skip/i;

function isRouting(last: LastMessage): boolean {
  return routingWords.test(last.text) && last.recentTools.some((tool) => handOverTools.has(tool));
}

/** An assistant message and its tool calls are one where they were read from one line of the transcript. */
function lastAssistantMessage(events: readonly TrajectoryEvent[], primaryAgent: string | null): LastMessage | null {
  let last: { file: string; line: number; text: string[]; stopReason: string | null; hasToolCall: boolean } | null =
    null;
  const recentTools: string[] = [];
  let messagesSeen = 0;
  let seenLine = "";
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index]!;
    const assistant = event.kind === "tool_call" || (event.kind === "message" && event.role === "assistant");
    if (!assistant) continue;
    if (primaryAgent !== null && event.agentId !== "" && event.agentId !== primaryAgent) continue;
    const line = `${event.raw.file}:${event.raw.line}`;
    if (line !== seenLine) messagesSeen += 1;
    seenLine = line;
    if (messagesSeen > routingWindow) break;
    if (event.kind === "tool_call" && event.tool !== undefined) recentTools.push(event.tool);
    last ??= { file: event.raw.file, line: event.raw.line, text: [], stopReason: null, hasToolCall: false };
    if (event.raw.file !== last.file || event.raw.line !== last.line) continue;
    if (event.kind === "tool_call") last.hasToolCall = true;
    else last.text.unshift(event.text ?? "");
    last.stopReason ??= event.stopReason ?? null;
  }
  if (last === null) return null;
  return {
    text: last.text.join("\n"),
    stopReason: last.stopReason,
    hasToolCall: last.hasToolCall,
    recentTools,
  };
}
