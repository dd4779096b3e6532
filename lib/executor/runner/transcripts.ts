/**
 * An agent's transcript files, turn by turn. Agents go on with a file over the turns of a try; the evidence of a turn is
 * what is new in it, so that nothing counts twice.
 */
import { createHash } from "node:crypto";
import type { AgentAdapter } from "../../agents/adapter.ts";
import { evidenceFiles } from "../../firewall/keys.ts";
import type { TrajectoryEvent } from "../../trajectory/events.ts";

export interface TurnTranscript {
  /** The new lines of all files, one after the other: transcript.jsonl. */
  text: string;
  /** What they say; `raw` points into transcript.jsonl. */
  events: TrajectoryEvent[];
  toolCounts: Record<string, number>;
}

/** Names of tools that are counted one by one; an agent that calls ever new names is not worth more. */
const maxTools = 500;

export class Transcripts {
  /** How much of a file was read in earlier turns: its length then, and the hash of that. */
  readonly #seen = new Map<string, { bytes: number; sha256: string }>();

  /** Reads the files of one turn. */
  read(adapter: AgentAdapter, files: ReadonlyMap<string, Buffer>): TurnTranscript {
    const texts: string[] = [];
    const events: TrajectoryEvent[] = [];
    let line = 0;
    for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const fresh = this.#fresh(name, content).toString("utf8");
      if (fresh === "") continue;
      const lines = (fresh.endsWith("\n") ? fresh.slice(0, -1) : fresh).split("\n");
      for (const event of eventsOf(adapter, name, lines, events.length)) {
        const raw = { file: evidenceFiles.transcript, line: line + event.raw.line };
        events.push({ ...event, seq: events.length, raw });
      }
      texts.push(...lines);
      line += lines.length;
    }
    return {
      text: texts.map((text) => `${text}\n`).join(""),
      events,
      toolCounts: countTools(events),
    };
  }

  /** What was added since the last turn; all of it where the file was written anew. */
  #fresh(name: string, content: Buffer): Buffer {
    const seen = this.#seen.get(name);
    this.#seen.set(name, { bytes: content.length, sha256: sha256(content) });
    const grown = seen && content.length >= seen.bytes && sha256(content.subarray(0, seen.bytes)) === seen.sha256;
    return grown ? content.subarray(seen.bytes) : content;
  }
}

function eventsOf(adapter: AgentAdapter, file: string, lines: string[], firstSeq: number): TrajectoryEvent[] {
  try {
    return [...adapter.read(file, lines, firstSeq)];
  } catch (error) {
    // An adapter must not throw; a transcript that makes it throw is the agent's work and must not cost the attempt.
    const text = `the transcript could not be read: ${error instanceof Error ? error.message : String(error)}`;
    return [{ v: 1, seq: firstSeq, ts: null, agentId: "", kind: "system", text, raw: { file, line: 1 } }];
  }
}

function countTools(events: readonly TrajectoryEvent[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const event of events) {
    if (event.kind !== "tool_call") continue;
    const name = (event.tool ?? "").slice(0, 200);
    const counted = counts.has(name) || counts.size < maxTools ? name : "(other)";
    counts.set(counted, (counts.get(counted) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
