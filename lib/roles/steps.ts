/**
 * The log of a role's conversation with its model, one write-once object a step, so that a function that is called again
 * goes on where the last call stopped, and two calls at once agree on one course: whoever writes a step's number first
 * decides it, the other reads it and goes on from there.
 */
import { z } from "zod";
import { modelCallStatus, tokens, type Usage, type UsageLine } from "../attempt/usage.ts";
import type { ModelRole } from "../attempt/vocabulary.ts";
import type { ObjectName } from "../firewall/keys.ts";
import { type ObjectStore, StoreError } from "../platform/ports.ts";
import { createOnce } from "./stored.ts";

const toolCall = z.object({ id: z.string(), name: z.string(), arguments: z.string() });
const assistantMessage = z.object({
  role: z.literal("assistant"),
  content: z.string().nullable(),
  toolCalls: z.array(toolCall).optional(),
});
const chatMessage = z.union([
  z.object({ role: z.enum(["system", "user"]), content: z.string() }),
  z.object({ role: z.literal("tool"), toolCallId: z.string(), content: z.string() }),
  assistantMessage,
]);
export type StepMessage = z.infer<typeof chatMessage>;

const v = z.literal(1);
export const step = z.discriminatedUnion("kind", [
  /** What a whole turn's work begins with: facts that must be the same for all calls of it. */
  z.object({ v, kind: z.literal("facts"), facts: z.unknown() }),
  z.object({ v, kind: z.literal("opened"), conversation: z.string(), messages: z.array(chatMessage) }),
  z.object({
    v,
    kind: z.literal("call"),
    conversation: z.string(),
    call: z.object({
      status: modelCallStatus,
      ms: z.number().nonnegative(),
      tokens,
      usd: z.number().nonnegative(),
      /** Why the answer was of no use; null when it was. */
      problem: z.string().nullable(),
    }),
    /** tools: it looked. asked_again: its answer could not be used. accepted: it answered. failed: no answer came. */
    outcome: z.enum(["tools", "asked_again", "accepted", "failed"]),
    said: assistantMessage.nullable(),
    /** What we said to it. */
    replies: z.array(chatMessage),
    /** The answer as it was understood. */
    accepted: z.unknown().optional(),
    /** Milliseconds since 1970 before which the provider is not asked again. */
    retryAt: z.number().nullable(),
  }),
  /** Given up: the answers stayed unreadable. A later round begins anew. */
  z.object({ v, kind: z.literal("closed"), conversation: z.string(), reason: z.string() }),
]);
export type Step = z.infer<typeof step>;
export type CallStep = Extract<Step, { kind: "call" }>;

/** Where a log stands, and whose calls it holds. */
export interface StepNames {
  /** The object of step n, from 1. */
  step(number: number): ObjectName;
  /** The object of call n's usage, from 1. */
  usage(number: number): ObjectName;
  role: ModelRole;
  turn: number;
  model: string;
}

/**
 * What a call used is written right after its step, so that it counts however the work ends. Nobody adds a step before
 * the usage of all calls before it is there: usage files have no gaps.
 */
export class StepLog {
  #steps: Step[] = [];
  private constructor(
    private readonly store: Pick<ObjectStore, "get" | "create">,
    private readonly names: StepNames,
  ) {}

  static async open(store: Pick<ObjectStore, "get" | "create">, names: StepNames): Promise<StepLog> {
    const log = new StepLog(store, names);
    await log.#readOn();
    // Whoever wrote the last step may have been cut off behind it.
    await log.#writeUsage(callsOf(log.#steps).length);
    return log;
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Adds a step, unless another call added one first: then that one counts and this one is dropped. */
  async append(added: Step): Promise<void> {
    try {
      await this.store.create(this.names.step(this.#steps.length + 1), JSON.stringify(added));
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "already_exists") throw error;
      const known = callsOf(this.#steps).length;
      await this.#readOn();
      for (let call = known + 1; call <= callsOf(this.#steps).length; call++) await this.#writeUsage(call);
      return;
    }
    this.#steps = [...this.#steps, added];
    if (added.kind === "call") await this.#writeUsage(callsOf(this.#steps).length);
  }

  async #writeUsage(number: number): Promise<void> {
    const { call } = callsOf(this.#steps)[number - 1] ?? {};
    if (call === undefined) return;
    const { role, turn, model } = this.names;
    const { ms, status, tokens, usd } = call;
    const line: UsageLine = { v: 1, role, turn, model, ms, status, tokens, usd };
    await createOnce(this.store, this.names.usage(number), `${JSON.stringify(line)}\n`);
  }

  async #readOn(): Promise<void> {
    for (;;) {
      try {
        const bytes = await this.store.get(this.names.step(this.#steps.length + 1));
        this.#steps = [...this.#steps, step.parse(JSON.parse(Buffer.from(bytes).toString("utf8")))];
      } catch (error) {
        if (error instanceof StoreError && error.code === "not_found") return;
        throw error;
      }
    }
  }
}

export function callsOf(steps: readonly Step[]): CallStep[] {
  return steps.filter((one): one is CallStep => one.kind === "call");
}

/** Tokens and dollars of all calls. */
export function usageOf(steps: readonly Step[]): Usage {
  return callsOf(steps).reduce<Usage>(
    (sum, { call }) => ({
      input: sum.input + call.tokens.input,
      cached: sum.cached + call.tokens.cached,
      output: sum.output + call.tokens.output,
      usd: sum.usd + call.usd,
    }),
    { input: 0, cached: 0, output: 0, usd: 0 },
  );
}

/** model-calls.jsonl: one line a call, with what was sent since the call before and what came back. */
export function modelCallLines(steps: readonly Step[], model: string): string {
  const pending = new Map<string, StepMessage[]>();
  const lines: string[] = [];
  for (const one of steps) {
    if (one.kind === "opened") pending.set(one.conversation, one.messages);
    if (one.kind !== "call") continue;
    const sent = pending.get(one.conversation) ?? [];
    lines.push(
      JSON.stringify({
        v: 1,
        conversation: one.conversation,
        model,
        ...one.call,
        outcome: one.outcome,
        sent,
        said: one.said,
      }),
    );
    // A call that failed is made again with the same messages.
    pending.set(one.conversation, one.outcome === "failed" ? sent : one.replies);
  }
  return lines.map((line) => `${line}\n`).join("");
}
