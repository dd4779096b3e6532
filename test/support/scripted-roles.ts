/** Supervisor and user simulator by script, with the keys and results of the real ones. */
import {
  type SimulateResult,
  type SuperviseResult,
  simulateEvent,
  superviseEvent,
} from "../../lib/attempt/functions.ts";
import { signalsOfTurn } from "../../lib/attempt/stop-signals.ts";
import type { AttemptState, Verdict } from "../../lib/attempt/vocabulary.ts";
import {
  decisionFileKey,
  evidenceFileKey,
  followUpFileKey,
  type ObjectName,
  turnFolder,
} from "../../lib/firewall/keys.ts";
import { type Identity, StoreError } from "../../lib/platform/ports.ts";
import type { Decision } from "../../lib/roles/decision.ts";
import { turnReport } from "../../lib/trajectory/turn-report.ts";
import type { MemoryObjects } from "./memory-objects.ts";

export interface RoleScript {
  verdict?: Verdict;
  state?: AttemptState;
  score?: number;
  /** Seconds that calls of the supervisor wait before one decides; "for ever": 60 s each, and none decides. */
  supervisorWaits?: number[] | "for ever";
  /** The same for the message that follows this turn. */
  simulatorWaits?: number[] | "for ever";
}

interface Around {
  objects: MemoryObjects;
  turnsOf(tryNumber: number): RoleScript[];
}

export function scriptedRoles(around: Around): {
  supervise(event: unknown): Promise<SuperviseResult>;
  simulate(event: unknown): Promise<SimulateResult>;
} {
  const calls = new Map<string, number>();
  const { objects } = around;
  /** What this call waited, or null when it is the one that answers. */
  const waits = (key: string, script: number[] | "for ever" | undefined): number | null => {
    const number = calls.get(key) ?? 0;
    calls.set(key, number + 1);
    return script === "for ever" ? 60 : (script?.[number] ?? null);
  };
  return {
    async supervise(event) {
      const { line, try: tryNumber, turn, waitedSeconds } = superviseEvent.parse(event);
      const of = { attempt: line.attempt, try: tryNumber };
      const none = { verdict: null, attempt_state: null, recoverable: false, score: null, decisionKey: null };
      const read = objects.text(evidenceFileKey(of, turn, "report.json"));
      const report = turnReport.parse(JSON.parse(read ?? "null"));
      if (!signalsOfTurn(report).supervise) return { v: 1, next: "stop", ...none, waitedSeconds };
      const script = around.turnsOf(tryNumber)[turn - 1] ?? {};
      const waited = waits(`supervise ${tryNumber}/${turn}`, script.supervisorWaits);
      if (waited !== null) return { v: 1, next: "more", ...none, waitedSeconds: waitedSeconds + waited };

      const left = line.limits.maxFollowups - (turn - 1);
      const verdict = script.verdict ?? "pass";
      const made = aDecision(turn, verdict, script.state, script.score ?? (verdict === "pass" ? 1 : 0.25), left > 0);
      const name = decisionFileKey(of, turn, "decision.json");
      await createOnce(objects, { role: "supervisor" }, name, JSON.stringify(made));
      return {
        v: 1,
        next: verdict === "continue" && left > 0 ? "continue" : "stop",
        verdict,
        attempt_state: made.attempt_state,
        recoverable: made.recoverable,
        score: made.score,
        decisionKey: name.key,
        waitedSeconds,
      };
    },
    async simulate(event) {
      const { line, try: tryNumber, turn, waitedSeconds } = simulateEvent.parse(event);
      const script = around.turnsOf(tryNumber)[turn - 1] ?? {};
      const waited = waits(`simulate ${tryNumber}/${turn}`, script.simulatorWaits);
      const total = waitedSeconds + (waited ?? 0);
      if (waited !== null) return { v: 1, next: "more", followUpKey: null, fallback: false, waitedSeconds: total };
      const name = followUpFileKey({ attempt: line.attempt, try: tryNumber }, `${turnFolder(turn + 1)}.json`);
      const message = {
        v: 1,
        turn: turn + 1,
        message: `Please look at it again (${turn}).`,
        language: "en",
        mode: "nudge",
        tone: "neutral",
        lines: [],
        fallback: false,
        digests: { prompts: "p" },
        usage: { input: 0, cached: 0, output: 0, usd: 0 },
      };
      await createOnce(objects, { role: "user-simulator" }, name, JSON.stringify(message));
      return { v: 1, next: "turn", followUpKey: name.key, fallback: false, waitedSeconds };
    },
  };
}

function aDecision(
  turn: number,
  verdict: Verdict,
  state: AttemptState | undefined,
  score: number,
  followUpsLeft: boolean,
): Decision {
  const usual = { pass: "complete_and_passed", continue: "incomplete", fail: "terminal_failure" } as const;
  return {
    v: 1,
    turn,
    verdict,
    attempt_state: state ?? usual[verdict],
    recoverable: verdict === "continue" && followUpsLeft,
    score,
    confidence: "high",
    rationale: "as the script says",
    missing_artifacts: [],
    guidance_tags: [],
    checkpoints: [],
    cap: null,
    scoreSource: "checks",
    threshold: 1,
    gateFailed: false,
    digests: { prompts: "p", rubric: "r" },
    usage: { input: 0, cached: 0, output: 0, usd: 0 },
  };
}

/** A second delivery of an event finds what the first one wrote. */
async function createOnce(objects: MemoryObjects, identity: Identity, name: ObjectName, body: string): Promise<void> {
  try {
    await objects.as(identity).create(name, body);
  } catch (error) {
    if (!(error instanceof StoreError && error.code === "already_exists")) throw error;
  }
}
