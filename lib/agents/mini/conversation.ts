/** mini's loop: ask, run the tools that were called, tell the results, until the model ends with a plain message. */
import type OpenAI from "openai";
import { type Answer, StreamedAnswer, wholeAnswer } from "./answer.ts";
import type { MiniJob } from "./job.ts";
import { miniTools, systemPrompt } from "./prompt.ts";
import { callTool, type ToolPlace } from "./tools.ts";
import type { MiniLine } from "./transcript.ts";

type Message = OpenAI.Chat.Completions.ChatCompletionMessageParam;

export interface Conversation {
  job: MiniJob;
  client: OpenAI;
  place: ToolPlace;
  /** Lines of earlier turns. */
  before: readonly MiniLine[];
  /** Keeps a line: the transcript is written as it happens. */
  keep(line: MiniLine): void;
  /** Prints progress. */
  say(text: string): void;
  now(): number;
}

/** @returns the exit code: 0 the model ended its turn, 1 the API failed after its retries, 3 too many steps */
export async function converse(conversation: Conversation): Promise<0 | 1 | 3> {
  const { job, keep, say, now } = conversation;
  const messages: Message[] = [
    { role: "system", content: systemPrompt(job.workspace) },
    ...conversation.before.flatMap(messageOf),
  ];
  closeOpenCalls(messages);
  const add = (line: MiniLine): void => {
    keep(line);
    messages.push(...messageOf(line));
  };
  add({ type: "user", ts: now(), turn: job.turn, content: job.message });
  for (let step = 0; step < job.options.maxSteps; step++) {
    let answer: Answer;
    try {
      answer = await ask(conversation, messages);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      keep({ type: "error", ts: now(), turn: job.turn, message: `the model could not be asked: ${message}` });
      say(`error: ${message}\n`);
      return 1;
    }
    add({ type: "assistant", ts: now(), turn: job.turn, ...answer });
    if (answer.content) say(`${answer.content}\n`);
    if (!answer.tool_calls) return 0;
    for (const call of answer.tool_calls) {
      say(`[${call.function.name}]\n`);
      const result = await callTool(call.function.name, call.function.arguments, conversation.place);
      add({
        type: "tool",
        ts: now(),
        turn: job.turn,
        tool_call_id: call.id,
        name: call.function.name,
        content: result.text,
        is_error: result.isError,
      });
    }
  }
  keep({ type: "error", ts: now(), turn: job.turn, message: `no end after ${job.options.maxSteps} steps` });
  return 3;
}

function messageOf(line: MiniLine): Message[] {
  switch (line.type) {
    case "user":
      return [{ role: "user", content: line.content }];
    case "assistant":
      return [
        line.tool_calls
          ? { role: "assistant", content: line.content, tool_calls: line.tool_calls }
          : // Without calls the API takes no message without content, and an empty answer must not end the conversation.
            { role: "assistant", content: line.content ?? "" },
      ];
    case "tool":
      return [{ role: "tool", tool_call_id: line.tool_call_id, content: line.content }];
    case "error":
      return [];
  }
}

/**
 * A turn that was cut can leave calls without results, which the API refuses: they are answered. Results belong to the
 * message before them: some servers number the calls of each answer anew, so that an id says nothing beyond it.
 */
function closeOpenCalls(messages: Message[]): void {
  let answered = new Set<string>();
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === "tool") answered.add(message.tool_call_id);
    if (message?.role !== "assistant") continue;
    const results = answered;
    answered = new Set();
    if (!message.tool_calls) continue;
    const open = message.tool_calls.filter((call) => !results.has(call.id));
    messages.splice(
      at + 1,
      0,
      ...open.map((call): Message => ({ role: "tool", tool_call_id: call.id, content: "[interrupted]" })),
    );
  }
}

async function ask({ client, job }: Conversation, messages: Message[]): Promise<Answer> {
  const request = {
    model: job.model,
    messages,
    tools: miniTools,
    ...(job.options.temperature === undefined ? {} : { temperature: job.options.temperature }),
    ...(job.options.reasoningEffort === undefined ? {} : { reasoning_effort: job.options.reasoningEffort }),
  };
  if (!job.options.stream) {
    return wholeAnswer(await client.chat.completions.create(request));
  }
  const stream = await client.chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  const answer = new StreamedAnswer();
  for await (const chunk of stream) answer.push(chunk);
  return answer.end();
}
