/**
 * The supervisor's function: judges one turn from stored evidence and hidden references, a step at a time, and lets four
 * fields out. A call begins nothing after 300 s of waiting and answers "more"; the next one goes on from the steps.
 */

import type { SuperviseEvent, SuperviseResult } from "../../attempt/functions.ts";
import { nextStepOf } from "../../attempt/next-step.ts";
import { parseRubric } from "../../attempt/rubric.ts";
import { signalsOfTurn } from "../../attempt/stop-signals.ts";
import { addUsage, noUsage, type Usage } from "../../attempt/usage.ts";
import {
  decisionFileKey,
  evidenceFileKey,
  evidenceFiles,
  followUpFileKey,
  judgingUsageKey,
  packageFile,
  rubricKey,
  turnFolder,
} from "../../firewall/keys.ts";
import type { CheckRunner, ObjectStore } from "../../platform/ports.ts";
import type { ManifestLine } from "../../sweep/manifest-line.ts";
import { sha256Hex } from "../../tasks/canonical.ts";
import { publishedFiles, type SupervisorPart, supervisorPart } from "../../tasks/published.ts";
import { type EvidenceView, getOrNull, openView } from "../../trajectory/evidence-view.ts";
import { decodeText } from "../../trajectory/plain-text.ts";
import { type TurnReport, turnReport } from "../../trajectory/turn-report.ts";
import { askAgain, readAnswer } from "../answer-text.ts";
import { type ConversationDeps, type ConversationEnd, converse, Patience } from "../conversation.ts";
import { type Decision, decision } from "../decision.ts";
import { UnjudgedError } from "../faults.ts";
import { followUp } from "../follow-up.ts";
import { lastMessage } from "../last-message.ts";
import { promptsDigest } from "../prompts/digest.ts";
import { supervisorPrompt } from "../prompts/supervisor.ts";
import { listCheckpointsPrompt } from "../prompts/supervisor-rubric.ts";
import { readTools } from "../prompts/tools.ts";
import { runReadTool } from "../read-tools.ts";
import { modelCallLines, StepLog, usageOf } from "../steps.ts";
import { createOnce, parsedJson } from "../stored.ts";
import { briefing, listingBrief } from "./brief.ts";
import { judgeAnswer, judgeAnswerSchema, readJudgeAnswer, withExistingEvidence } from "./judge-answer.ts";
import { runChecks } from "./run-checks.ts";
import {
  type ChecksOutcome,
  checksOutcome,
  type ListedCheckpoints,
  listAnswer,
  listAnswerSchema,
  listedCheckpoints,
  type ScoringPlan,
  scoringPlan,
} from "./scoring-plan.ts";
import { settle } from "./settle.ts";

export interface SuperviseDeps extends ConversationDeps {
  /** As the supervisor sees it. */
  store: ObjectStore;
  checks: CheckRunner;
}

/** What the try stored before this judging. */
interface Past {
  /** Of this turn too. */
  reports: TurnReport[];
  /** Of the turns before. */
  decisions: Decision[];
  /** What the user simulator has used so far. */
  followUpUsage: Usage;
  /** The user's message that opened this turn; null on the first. */
  openedBy: string | null;
}

/**
 * @throws UnjudgedError when no verdict can be had: the provider refuses, answers stay unreadable, dollars are used up
 */
export async function superviseStep(deps: SuperviseDeps, event: SuperviseEvent): Promise<SuperviseResult> {
  const { line, turn } = event;
  const past = await readPast(deps.store, event);
  const report = past.reports.find((one) => one.turn === turn);
  if (!report || !signalsOfTurn(report).supervise) return nothing("stop", event.waitedSeconds);
  const key = decisionFileKey(tryOf(event), turn, "decision.json");
  const stored = await getOrNull(deps.store, key);
  if (stored) return decided(line, past.reports, parsedJson(decision, stored), key.key, event.waitedSeconds);

  const patience = new Patience(event.waitedSeconds);
  const outcome = await judged(deps, event, past, report, patience).catch((error: unknown) =>
    keepWhy(deps, event, error),
  );
  const waitedSeconds = event.waitedSeconds + patience.waitedMs / 1000;
  if (outcome === "more") return nothing("more", waitedSeconds);
  await createOnce(deps.store, key, JSON.stringify(outcome));
  // Two calls at once agree on the one that was written.
  const final = parsedJson(decision, await deps.store.get(key));
  return decided(line, past.reports, final, key.key, waitedSeconds);
}

/** Keeps where it may stand what a fault quotes, and throws the fault with the place. */
async function keepWhy(deps: SuperviseDeps, event: SuperviseEvent, error: unknown): Promise<never> {
  if (!(error instanceof UnjudgedError) || error.hidden === null) throw error;
  const why = JSON.stringify({ v: 1, message: error.message, detail: error.hidden });
  const name = decisionFileKey(tryOf(event), event.turn, `unjudged-${sha256Hex(why).slice(0, 8)}.json`);
  await createOnce(deps.store, name, why);
  throw new UnjudgedError(`${error.message}; why is in ${name.bucket}/${name.key}`, { cause: error });
}

async function judged(
  deps: SuperviseDeps,
  event: SuperviseEvent,
  past: Past,
  report: TurnReport,
  patience: Patience,
): Promise<Decision | "more"> {
  const { line, turn } = event;
  const hidden = (path: string) => packageFile(line.task, line.digest, "hidden", path);
  const part = parsedJson(supervisorPart, await deps.store.get(hidden(publishedFiles.supervisor)));
  const rubricText = decodeText(await deps.store.get(hidden(publishedFiles.evalRule)));
  const rubric = parseRubric(rubricText);
  const log = await StepLog.open(deps.store, {
    step: (number) => decisionFileKey(tryOf(event), turn, stepFile(number)),
    usage: (number) => judgingUsageKey(tryOf(event), turn, number),
    role: "supervisor",
    turn,
    model: line.supervisor.kind === "model" ? line.supervisor.model.name : "none",
  });

  const checks = await checksOf(deps, event, log);
  const base = {
    place: { turn, maxFollowups: line.limits.maxFollowups, compat: line.compat },
    threshold: line.threshold,
    turnComplete: report.completion.complete,
    earlier: past.decisions.find((one) => one.turn === turn - 1) ?? null,
  };
  const digests = { prompts: supervisorDigest(part), rubric: part.rubricDigest };
  if (checks && checks.judgeIds.length === 0) {
    const plan = scoringPlan(checks, rubric, null);
    const isChangedArtifact = () => false;
    const none = { prompts: "none", rubric: part.rubricDigest };
    return settle({ ...base, plan, answer: null, isChangedArtifact, digests: none, usage: noUsage });
  }
  if (line.supervisor.kind !== "model") {
    const left = checks ? checks.judgeIds.map(({ id }) => id).join(", ") : "all of them";
    throw new UnjudgedError(
      `the sweep's supervisor is \`checks\`, but no check decides every checkpoint of ${line.task} (left: ${left}); name a model in \`supervisor\``,
    );
  }
  const session: Session = { deps, event, past, report, patience, log, part, rubricText, model: line.supervisor };
  const round = judgingRound(log, event.waitedSeconds);

  let plan = scoringPlan(checks, rubric, null);
  if (plan.asked === null) {
    const listed = await checkpointsListed(session);
    if (listed === "more") return "more";
    plan = scoringPlan(checks, rubric, listed);
  }
  const view = await supervisorView(deps.store, event);
  const end = await converse(deps, log, await judging(session, plan, view, base.earlier, round), patience);
  const value = await settledEnd(session, end);
  if (value === "more") return "more";
  const outcome = settle({
    ...base,
    plan,
    answer: judgeAnswer.parse(value),
    isChangedArtifact: (pointer) => view.isChangedArtifact(pointer),
    digests,
    usage: usageOf(log.steps),
  });
  await writeCalls(session);
  return outcome;
}

/** Number of the conversation that judges: one that was given up is begun anew when judging is asked for anew. */
function judgingRound(log: StepLog, waitedSeconds: number): number {
  const closed = log.steps.filter((one) => one.kind === "closed" && one.conversation.startsWith("judge"));
  const givenUp = closed.length > 0 && log.steps.at(-1) === closed.at(-1);
  return givenUp && waitedSeconds > 0 ? closed.length : closed.length + 1;
}

interface Session {
  deps: SuperviseDeps;
  event: SuperviseEvent;
  past: Past;
  report: TurnReport;
  patience: Patience;
  log: StepLog;
  part: SupervisorPart;
  rubricText: string;
  model: Extract<ManifestLine["supervisor"], { kind: "model" }>;
}

/** What the checks say: run once for a turn and kept, so that all calls of it go by the same. Null: the package has none. */
async function checksOf(deps: SuperviseDeps, event: SuperviseEvent, log: StepLog): Promise<ChecksOutcome | null> {
  const kept = (): ChecksOutcome | null => {
    const facts = log.steps.find((one) => one.kind === "facts");
    return facts ? checksOutcome.parse(facts.facts) : null;
  };
  const known = kept();
  if (known) return known;
  const { line, turn } = event;
  const outcome = await runChecks({
    store: deps.store,
    runner: deps.checks,
    package: { task: line.task, digest: line.digest },
    of: tryOf(event),
    turn,
  });
  if (outcome === null) return null;
  // With nothing left for a model there is no second call to agree with.
  if (outcome.judgeIds.length === 0) return outcome;
  await log.append({ v: 1, kind: "facts", facts: outcome });
  return kept() ?? outcome;
}

/** Checkpoints of a rubric without weights: listed once for all attempts on it; whoever comes second takes the first one's. */
async function checkpointsListed(session: Session): Promise<ListedCheckpoints | "failed" | "more"> {
  const { deps, log, part, rubricText, model } = session;
  const key = rubricKey(part.rubricDigest);
  const name = "rubric";
  if (log.steps.some((one) => one.kind === "closed" && one.conversation === name)) return "failed";
  const stored = await getOrNull(deps.store, key);
  if (stored) return parsedJson(listedCheckpoints, stored);
  const end = await converse(
    deps,
    log,
    {
      ...common(session),
      name,
      model: model.model,
      effort: model.effort,
      opening: () => listingBrief(rubricText),
      tools: [],
      runTool: async () => "There are no tools here.",
      answerSchema: { name: "checkpoints", schema: listAnswerSchema() },
      read: async (content) => readAnswer(content, listAnswer),
      again: askAgain,
    },
    session.patience,
  );
  if (end.kind === "unreadable") return "failed";
  const value = await settledEnd(session, end);
  if (value === "more") return "more";
  await createOnce(deps.store, key, JSON.stringify({ v: 1, ...listAnswer.parse(value) }));
  return parsedJson(listedCheckpoints, await deps.store.get(key));
}

async function judging(
  session: Session,
  plan: ScoringPlan,
  view: EvidenceView,
  earlier: Decision | null,
  round: number,
): Promise<Parameters<typeof converse>[2]> {
  const { deps, event, past, report, part, rubricText, model } = session;
  const { line, turn } = event;
  const question = { checkpoints: plan.asked ?? [], caps: plan.askedCaps };
  return {
    ...common(session),
    name: round === 1 ? "judge" : `judge-${round}`,
    model: model.model,
    effort: model.effort,
    opening: async () =>
      briefing({
        request: decodeText(await deps.store.get(packageFile(line.task, line.digest, "agent", publishedFiles.request))),
        rubric: rubricText,
        instructions: part.instructions,
        plan,
        turn,
        turns: line.limits.maxFollowups + 1,
        threshold: line.threshold,
        stopReason: report.exit.stopReason,
        turnComplete: report.completion.complete,
        followUp: past.openedBy,
        earlier,
        files: view.list(),
        lastMessage: lastMessage(await view.events(turn)),
      }),
    tools: readTools,
    runTool: (name, args) => runReadTool(view, name, args),
    answerSchema: { name: "review", schema: judgeAnswerSchema(question) },
    read: async (content, sentBack) => {
      const reading = readJudgeAnswer(content, question);
      if (!reading.ok) return reading;
      const isWork = (pointer: string): boolean => view.isWork(pointer);
      return withExistingEvidence(reading.value, (text) => view.pointer(text), isWork, sentBack);
    },
    again: askAgain,
  };
}

function common({ event, past }: Session) {
  const { line, turn } = event;
  const cap = line.limits.usdJudging;
  const before = past.decisions.reduce((sum, { usage }) => sum + usage.usd, past.followUpUsage.usd);
  return {
    caller: { role: "supervisor" as const, task: line.task, attempt: line.attempt, turn },
    usdLeft: cap === null ? null : cap - before,
  };
}

/** The value of a conversation that was answered; else "more", or the reason why there is no verdict. */
async function settledEnd(session: Session, end: ConversationEnd): Promise<unknown> {
  switch (end.kind) {
    case "answered":
      return end.value;
    case "more":
      return "more";
    case "unreadable":
    case "refused":
    case "capped":
      await writeCalls(session);
      throw new UnjudgedError(
        `turn ${session.event.turn}: ${end.reason}`,
        end.kind === "capped" ? {} : { hidden: end.detail },
      );
  }
}

async function writeCalls({ deps, event, log, model }: Session): Promise<void> {
  const name = decisionFileKey(tryOf(event), event.turn, evidenceFiles.modelCalls);
  await createOnce(deps.store, name, modelCallLines(log.steps, model.model.name));
}

function supervisorView(store: ObjectStore, event: SuperviseEvent): Promise<EvidenceView> {
  const { line, turn } = event;
  return openView(store, {
    of: tryOf(event),
    package: { task: line.task, digest: line.digest },
    turn,
    kinds: [
      "report",
      "transcript",
      "events",
      "model-calls",
      "tool-usage",
      "result",
      "probe",
      "screenshot",
      "raw-transcript",
    ],
    hidden: true,
  });
}

async function readPast(store: ObjectStore, event: SuperviseEvent): Promise<Past> {
  const of = tryOf(event);
  const past: Past = { reports: [], decisions: [], followUpUsage: noUsage, openedBy: null };
  for (let turn = 1; turn <= event.turn; turn++) {
    // The manifest is written last: without it the turn does not exist.
    const whole = await getOrNull(store, evidenceFileKey(of, turn, evidenceFiles.manifest));
    const report = whole && (await getOrNull(store, evidenceFileKey(of, turn, evidenceFiles.report)));
    if (report) past.reports.push(parsedJson(turnReport, report));
    if (turn < event.turn) {
      const earlier = await getOrNull(store, decisionFileKey(of, turn, "decision.json"));
      if (earlier) past.decisions.push(parsedJson(decision, earlier));
    }
    const opened = turn > 1 ? await getOrNull(store, followUpFileKey(of, `${turnFolder(turn)}.json`)) : null;
    if (opened) {
      const message = parsedJson(followUp, opened);
      past.followUpUsage = addUsage(past.followUpUsage, message.usage);
      past.openedBy = turn === event.turn ? message.message : null;
    }
  }
  return past;
}

/** All that leaves the hidden side: four fields, the next step, a key. */
function decided(
  line: ManifestLine,
  reports: readonly TurnReport[],
  made: Decision,
  decisionKey: string,
  waitedSeconds: number,
): SuperviseResult {
  return {
    v: 1,
    next: nextStepOf(line, reports, made).next,
    verdict: made.verdict,
    attempt_state: made.attempt_state,
    recoverable: made.recoverable,
    score: made.score,
    decisionKey,
    waitedSeconds,
  };
}

function nothing(next: "more" | "stop", waitedSeconds: number): SuperviseResult {
  return {
    v: 1,
    next,
    verdict: null,
    attempt_state: null,
    recoverable: false,
    score: null,
    decisionKey: null,
    waitedSeconds,
  };
}

function supervisorDigest(part: SupervisorPart): string {
  return promptsDigest({ supervisorPrompt, listCheckpointsPrompt, readTools, instructions: part.instructions });
}

const stepFile = (number: number): string => `step-${String(number).padStart(2, "0")}.json`;
const tryOf = (event: SuperviseEvent) => ({ attempt: event.line.attempt, try: event.try });
