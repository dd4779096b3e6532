/** One turn of an agent: started, listened to, ended. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgentAdapter, TurnAssignment } from "../../agents/adapter.ts";
import { mapPlaces, placeMapEnv } from "../../agents/place-map.ts";
import type { CollectLimits, TurnOutput, TurnRequest } from "../turn-protocol.ts";
import type { AgentExit, AgentProcess, StartAgent } from "./agent-process.ts";
import { OutputText } from "./output-text.ts";
import { type AgentPlace, placeMap, turnPlace } from "./place.ts";

/** A turn that was not begun; the message goes to the runner. */
export class TurnRefused extends Error {
  override readonly name = "TurnRefused";
}

export interface TurnStart {
  asked: TurnRequest;
  agent: AgentAdapter;
  place: AgentPlace;
  start: StartAgent;
  graceMs: number;
  limits: Pick<CollectLimits, "outputBytes">;
}

/** What the agent still has in its pipes when it has ended is read for this long. */
const drainMs = 100;
/** The runner's watchdog ends turns; this is for a runner that hangs. */
const backstopSeconds = 30;

export class RunningTurn {
  readonly #process: AgentProcess;
  readonly #options: TurnStart;
  readonly #began = performance.now();
  #stopping: Promise<void> | null = null;

  private constructor(agent: AgentProcess, options: TurnStart) {
    this.#process = agent;
    this.#options = options;
  }

  /** @throws TurnRefused for options that the agent does not have; the system's error when it cannot be started. */
  static async start(options: TurnStart): Promise<RunningTurn> {
    const { asked, agent, start } = options;
    const place = turnPlace(options.place, agent.name);
    const map = placeMap(options.place);
    const parsed = agent.options.safeParse(asked.agent.options);
    if (!parsed.success) throw new TurnRefused(`options of agent "${agent.name}": ${parsed.error.message}`);
    const assignment: TurnAssignment = {
      turn: asked.turn,
      message: mapPlaces(asked.message, map),
      sessionId: asked.sessionId,
      model: asked.model,
      gateway: asked.gateway,
      options: parsed.data,
    };
    mkdirSync(place.state, { recursive: true });
    const command = agent.command(place, assignment);
    for (const [path, text] of Object.entries(command.files)) {
      if (relative(place.home, path).startsWith("..")) throw new TurnRefused(`${path} is outside of the agent's home`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    const env = {
      PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      HOME: place.home,
      TMPDIR: process.env.TMPDIR ?? "/tmp",
      USER: "root",
      LANG: "C.UTF-8",
      TERM: "dumb",
      ...(map === null ? {} : { [placeMapEnv.workspace]: map.workspace, [placeMapEnv.home]: map.home }),
      ...asked.env,
      ...command.env,
    };
    return new RunningTurn(
      await start.start({ agent: agent.name, command, cwd: place.workspace, env, place, assignment }),
      options,
    );
  }

  /** Writes the turn's lines of NDJSON; resolves after the last one, which is the agent's exit. */
  async streamTo(to: Writable): Promise<void> {
    const backstop = setTimeout(() => void this.stop(), (this.#options.asked.timeoutSeconds + backstopSeconds) * 1000);
    let bytes = 0;
    let capped = false;
    const write = (line: TurnOutput): boolean => {
      const text = `${JSON.stringify(line)}\n`;
      bytes += text.length;
      return to.writable ? to.write(text) : true;
    };
    const say = (stream: "out" | "err", text: string): boolean => {
      if (capped) return true;
      if (bytes > this.#options.limits.outputBytes) {
        capped = true;
        const note = `[output of this turn beyond ${this.#options.limits.outputBytes} bytes is dropped]\n`;
        return write({ t: this.#elapsed(), stream: "err", text: note });
      }
      return write({ t: this.#elapsed(), stream, text });
    };
    write({ t: this.#elapsed(), event: "started" });
    const heard = Promise.all([
      listen(this.#process.out, to, (text) => say("out", text)),
      listen(this.#process.err, to, (text) => say("err", text)),
    ]);
    const exit: AgentExit = await this.#process.exited;
    clearTimeout(backstop);
    // What the agent left running may hold its pipes open; it is not waited for, and may go on writing unheard.
    await Promise.race([heard, sleep(drainMs, undefined, { ref: false })]);
    capped = true;
    this.#process.out.resume();
    this.#process.err.resume();
    if (this.#stopping !== null) await this.#stopping;
    write({ t: this.#elapsed(), event: "exit", ...exit });
  }

  /** Asks the agent to end; after the grace everything that it started is ended. Resolves when all is gone. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      this.#process.ask();
      await Promise.race([this.#process.exited, sleep(this.#options.graceMs, undefined, { ref: false })]);
      await this.#options.start.endAll();
      await this.#process.exited;
    })();
    return this.#stopping;
  }

  #elapsed(): number {
    return Math.round(performance.now() - this.#began);
  }
}

/** Reads a stream to its end as text; a slow reader on the other side slows the agent down. */
function listen(from: Readable, to: Writable, say: (text: string) => boolean): Promise<void> {
  const text = new OutputText();
  return new Promise((resolve) => {
    const goOn = (): void => void from.resume();
    to.on("drain", goOn).once("close", goOn);
    from.on("data", (chunk: Buffer) => {
      let more = true;
      for (const piece of text.push(chunk)) more = say(piece) && more;
      if (!more) from.pause();
    });
    const end = (): void => {
      to.off("drain", goOn).off("close", goOn);
      for (const piece of text.end()) say(piece);
      resolve();
    };
    from.once("end", end);
    from.once("error", end);
  });
}
