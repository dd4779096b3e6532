/** A published package, a try's evidence and models by script: what the roles' functions meet, in memory. */
import { evidenceFileKey, type ObjectName, packageFile, type TryName } from "../../lib/firewall/keys.ts";
import { VirtualClock } from "../../lib/platform/local/virtual-clock.ts";
import type { ChatRequest, ChatResult, ModelClient, ObjectStore } from "../../lib/platform/ports.ts";
import type { ManifestLine, ModelChoice } from "../../lib/sweep/manifest-line.ts";
import { sha256Hex } from "../../lib/tasks/canonical.ts";
import { publishedFiles } from "../../lib/tasks/published.ts";
import type { EvidenceKind } from "../../lib/trajectory/evidence-manifest.ts";
import type { TurnReport } from "../../lib/trajectory/turn-report.ts";
import { aLine } from "./manifest-line.ts";
import { MemoryObjects } from "./memory-objects.ts";

export const judgeModel: ModelChoice = {
  name: "judge-model",
  provider: "scripted",
  api: "scripted",
  socket: "/tmp/none.sock",
  script: "/tmp/none",
  price: { input: 1, output: 10 },
};

/** A line whose supervisor and user simulator are models. */
export function aJudgedLine(change: Partial<ManifestLine> = {}): ManifestLine {
  return aLine({
    task: "task_102_38_gomoku_best_move",
    threshold: 0.9,
    supervisor: { kind: "model", model: judgeModel, effort: "high" },
    userSimulator: { kind: "model", model: judgeModel },
    ...change,
  });
}

export interface PackageContent {
  request?: string;
  rubric?: string;
  references?: Record<string, string>;
  sources?: Record<string, string>;
  checks?: unknown;
  instructions?: string | null;
  language?: "en" | "zh";
  policy?: string | null;
}

export const weightedRubric = `# Rule
## 5. Checkpoint Rubric
| ID | What matters | Weight |
| --- | --- | --- |
| CP1 | The move is right. | 0.6 |
| CP2 | The reason is right. | 0.4 |

## 6. Score Caps
- **cap at \`0.45\`** if the move is wrong.
`;

export function publish(objects: MemoryObjects, line: ManifestLine, content: PackageContent = {}): void {
  const put = (part: "agent" | "simulator" | "hidden", path: string, body: string): void =>
    objects.put(packageFile(line.task, line.digest, part, path), body);
  const language = content.language ?? "en";
  put("agent", publishedFiles.request, content.request ?? "Find the best move and save it as results/best_move.json.");
  for (const [path, body] of Object.entries(content.sources ?? { "board.txt": "XXXX.\n" })) {
    put("agent", publishedFiles.sources + path, body);
  }
  put(
    "simulator",
    publishedFiles.simulator,
    JSON.stringify({ v: 1, language, effort: "low", policy: content.policy ?? null }),
  );
  put("hidden", publishedFiles.evalRule, content.rubric ?? weightedRubric);
  put(
    "hidden",
    publishedFiles.supervisor,
    JSON.stringify({
      v: 1,
      language,
      effort: "high",
      instructions: content.instructions ?? null,
      threshold: line.threshold,
      rubricDigest: sha256Hex(content.rubric ?? weightedRubric),
    }),
  );
  for (const [path, body] of Object.entries(content.references ?? {}))
    put("hidden", publishedFiles.references + path, body);
  if (content.checks !== undefined) put("hidden", publishedFiles.checks, JSON.stringify(content.checks));
}

export interface TurnContent {
  results?: Record<string, string | Uint8Array>;
  /** The agent's last message. */
  says?: string;
  stopReason?: TurnReport["exit"]["stopReason"];
  complete?: boolean;
  /** Other files by path, with their kind. */
  more?: Record<string, { kind: EvidenceKind; body: string | Uint8Array }>;
  events?: string;
}

/** Writes a turn's evidence as a runner does, manifest last. */
export function putTurn(objects: MemoryObjects, of: TryName, turn: number, content: TurnContent = {}): void {
  const report: TurnReport = {
    v: 1,
    turn,
    exit: { code: 0, stopReason: content.stopReason ?? "ended" },
    started: "2026-01-01T00:00:00Z",
    ended: "2026-01-01T00:00:10Z",
    executorSeconds: 10,
    completion:
      content.complete === false ? { complete: false, reason: "no_signal" } : { complete: true, reason: "api_stop" },
    usage: { input: 100, cached: 0, output: 10, usd: 0.001 },
    manifestKey: evidenceFileKey(of, turn, "manifest.json").key,
    isolation: "bwrap",
  };
  const event = (seq: number, fields: Record<string, unknown>): string =>
    `${JSON.stringify({ v: 1, seq, ts: null, agentId: "main", ...fields, raw: { file: "t.jsonl", line: seq + 1 } })}\n`;
  const events =
    content.events ??
    event(0, { kind: "message", role: "user", text: "go" }) +
      event(1, { kind: "tool_call", tool: "bash", args: { command: "solve" } }) +
      event(2, { kind: "message", role: "assistant", text: content.says ?? "I saved the move." });
  const files: { path: string; kind: EvidenceKind; body: string | Uint8Array }[] = [
    { path: "report.json", kind: "report", body: JSON.stringify(report) },
    { path: "events.jsonl", kind: "events", body: events },
    ...Object.entries(content.results ?? {}).map(([path, body]) => ({
      path: `results/${path}`,
      kind: "result" as const,
      body,
    })),
    ...Object.entries(content.more ?? {}).map(([path, file]) => ({ path, ...file })),
  ];
  for (const file of files) objects.put(evidenceFileKey(of, turn, file.path), file.body);
  const manifest = {
    v: 1,
    files: files.map(({ path, kind, body }) => ({
      path,
      kind,
      bytes: Buffer.byteLength(body),
      sha256: sha256Hex(body),
    })),
    skipped: [],
    usage: report.usage,
    toolCounts: { bash: 1 },
  };
  objects.put(evidenceFileKey(of, turn, "manifest.json"), JSON.stringify(manifest));
}

export interface Scripted extends ModelClient {
  requests: ChatRequest[];
}
export type ScriptedAnswer =
  | { text: string; usd?: number; ms?: number; finish?: string }
  | { json: unknown; usd?: number; ms?: number }
  | { tools: { name: string; arguments: unknown }[]; usd?: number; ms?: number }
  | { fault: Exclude<ChatResult["status"], "ok">; retryAfterMs?: number; ms?: number };

/** A model that gives these answers in their order; the last one repeats. Time passes on the clock. */
export function scriptedModel(clock: VirtualClock, answers: ScriptedAnswer[]): Scripted {
  const requests: ChatRequest[] = [];
  return {
    requests,
    async chat(request) {
      const answer = answers[Math.min(requests.length, answers.length - 1)]!;
      requests.push(structuredClone(request));
      const ms = Math.min(answer.ms ?? 100, request.timeoutMs);
      await clock.sleep(ms);
      if ((answer.ms ?? 0) > request.timeoutMs) {
        return { status: "timeout", message: "no answer in time", retryAfterMs: null, ms };
      }
      if ("fault" in answer) {
        return { status: answer.fault, message: `a ${answer.fault}`, retryAfterMs: answer.retryAfterMs ?? null, ms };
      }
      return {
        status: "ok",
        content: "text" in answer ? answer.text : "json" in answer ? JSON.stringify(answer.json) : null,
        toolCalls:
          "tools" in answer
            ? answer.tools.map((tool, number) => ({
                id: `call-${requests.length}-${number}`,
                name: tool.name,
                arguments: typeof tool.arguments === "string" ? tool.arguments : JSON.stringify(tool.arguments),
              }))
            : [],
        finishReason: "finish" in answer ? (answer.finish ?? "stop") : "stop",
        tokens: { input: 1000, cached: 0, output: 100 },
        usd: answer.usd ?? 0.002,
        ms,
      };
    },
  };
}

/** All texts that a model was sent. */
export function sentTo(model: Scripted): string {
  return model.requests.map((request) => JSON.stringify(request.messages)).join("\n");
}

export interface RoleWorld {
  objects: MemoryObjects;
  clock: VirtualClock;
  line: ManifestLine;
  of: TryName;
  as(role: "supervisor" | "user-simulator"): ObjectStore;
  json(name: ObjectName): unknown;
}

export function roleWorld(line: ManifestLine = aJudgedLine(), content: PackageContent = {}): RoleWorld {
  const objects = new MemoryObjects();
  publish(objects, line, content);
  return {
    objects,
    clock: new VirtualClock(),
    line,
    of: { attempt: line.attempt, try: 1 },
    as: (role) => objects.as({ role }),
    json: (name) => JSON.parse(objects.text(name) ?? "null"),
  };
}
