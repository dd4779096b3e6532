/** An agent under test, as Proctor sees it. One folder below lib/agents each; lib/agents/registry.ts lists them. */
import type { z } from "zod";
import type { Network } from "../attempt/vocabulary.ts";
import type { TrajectoryEvent } from "../trajectory/events.ts";
import type { Completion } from "../trajectory/turn-report.ts";

/** Where things stand for one turn, on the agent's side. */
export interface TurnPlace {
  /** /tmp_workspace, or its stand-in where there is no sandbox. */
  workspace: string;
  /** /root, or its stand-in. */
  home: string;
  /** Folder that the agent may use for its own state; below `home`. */
  state: string;
  /** Folder of our bundles inside the sandbox. */
  bundles: string;
  /** Path of the Node that runs us. */
  node: string;
}

export interface TurnAssignment {
  turn: number;
  message: string;
  sessionId: string;
  model: string;
  /** Base URL of the gateway as the agent reaches it, `http://127.0.0.1:<port>/v1`, and the try's own gateway key. */
  gateway: { baseUrl: string; key: string };
  options: Record<string, unknown>;
}

export interface TurnCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** Files to write before the start, by absolute path. */
  files: Record<string, string>;
}

export interface AgentAdapter {
  name: string;
  version: string;
  /** Refuses options that the agent does not have. */
  options: z.ZodType<Record<string, unknown>>;
  /** Networks that the agent works in. */
  networks: readonly Network[];
  command(place: TurnPlace, assignment: TurnAssignment): TurnCommand;
  /** Files of the agent's transcript, below `state`, that belong to evidence; sent under `transcript/`. */
  transcript: readonly string[];
  /** Reads the transcript's lines of one file into events, numbered from `firstSeq`. Never throws: what it cannot read becomes a `system` event. */
  read(file: string, lines: Iterable<string>, firstSeq: number): Iterable<TrajectoryEvent>;
  /** Whether the turn is complete (lib/attempt/completion). */
  completion(events: readonly TrajectoryEvent[], exitCode: number | null): Completion;
}
