/** The record of a turn's model calls: whole calls to a file as they end, usage lines and outcomes in memory. */
import { createWriteStream, type WriteStream } from "node:fs";
import { join } from "node:path";
import type { ModelCallStatus, Tokens, UsageLine } from "../../attempt/usage.ts";

/** One line of model-calls.jsonl. */
export interface ModelCallRecord {
  v: 1;
  /** Order of the calls' beginnings in the turn, from 1. */
  call: number;
  turn: number;
  model: string;
  /** ISO 8601. */
  started: string;
  ms: number;
  status: ModelCallStatus;
  httpStatus: number | null;
  /** Answers of the provider that the gateway waited out. */
  waited: { status: string; ms: number }[];
  /** As it went to the provider. Null, with `omitted`, where the turn's record is full. */
  request: unknown;
  /** The completion; of a stream, put together. Null where there was none. */
  response: unknown;
  stream: boolean;
  error: string | null;
  tokens: Tokens;
  usd: number;
  /** True where the provider told no usage, or one that cannot be (`response` has it), and it was estimated from the text. */
  estimated: boolean;
  omitted?: true;
}

/** What the end of a turn is judged by: the calls in the order of their ends. */
export interface CallOutcome {
  status: ModelCallStatus;
  message: string | null;
}

/** Bytes of one turn's record. What goes beyond is counted, but its texts are left out. */
const maxRecordBytes = 1024 ** 3;
/** Refused calls that are recorded; an agent that goes on asking for ever does not fill the disk. */
const maxRefusals = 200;
/** Lines of a turn's record at most, with or without texts. */
const maxCalls = 50_000;

export class CallLog {
  readonly usage: UsageLine[] = [];
  readonly outcomes: CallOutcome[] = [];
  /** Set when the record could not be written. */
  fault: Error | null = null;
  #file: WriteStream | null = null;
  #path: string | null = null;
  #bytes = 0;
  #refusals = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(
    /** Gives the folder for the file, made when the first call is recorded. */
    private readonly folder: () => Promise<string>,
    private readonly turn: number,
  ) {}

  /** Records a call that ended. Records are written one after the other. */
  add(record: ModelCallRecord): Promise<void> {
    this.#last = this.#last.then(() => this.#write(record));
    return this.#last;
  }

  /** Ends the file. @returns its path, null when no call was recorded */
  async close(): Promise<string | null> {
    await this.#last;
    const file = this.#file;
    // One that failed, on a full disk say, closed itself then and does not say so again.
    if (file && !file.closed) {
      await new Promise<void>((resolve) => {
        file.once("close", resolve);
        file.end();
      });
    }
    return this.#path;
  }

  async #write(record: ModelCallRecord): Promise<void> {
    if (record.status === "capped" && ++this.#refusals > maxRefusals) return;
    this.outcomes.push({ status: record.status, message: record.error });
    if (this.outcomes.length > maxCalls) {
      this.outcomes.shift();
      return;
    }
    this.usage.push({
      v: 1,
      role: "executor",
      turn: record.turn,
      model: record.model,
      ms: Math.round(record.ms),
      status: record.status,
      tokens: record.tokens,
      usd: record.usd,
    });
    if (this.fault) return;
    try {
      this.#file ??= await this.#open();
      let line = `${JSON.stringify(record)}\n`;
      if (this.#bytes + line.length > maxRecordBytes) {
        line = `${JSON.stringify({ ...record, request: null, response: null, omitted: true })}\n`;
      }
      this.#bytes += line.length;
      await new Promise<void>((resolve, reject) => {
        this.#file?.write(line, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      this.fault = error instanceof Error ? error : new Error(String(error));
    }
  }

  async #open(): Promise<WriteStream> {
    this.#path = join(await this.folder(), `model-calls-${this.turn}.jsonl`);
    const file = createWriteStream(this.#path, { flags: "wx", mode: 0o600 });
    file.on("error", (error) => {
      this.fault ??= error;
    });
    return file;
  }
}
