/** Plain progress: a line on standard error for each attempt that ended, so that standard output keeps the result. */
import type { ScoreRow } from "../../lib/results/score-row.ts";

export interface Progress {
  /** So many attempts are to be done. */
  begin(total: number): void;
  /** Something worth a line. */
  say(text: string): void;
  /** An attempt has ended; `null`: it has no row. */
  ended(row: ScoreRow | null): void;
  /** A sign of life where nothing was said for a while. */
  beat(running: number): void;
}

const silenceMs = 10_000;
const reasonLength = 160;

/** @param now milliseconds since 1970 */
export function plainProgress(print: (text: string) => void, now: () => number): Progress {
  let total = 0;
  let done = 0;
  let spoke = now();
  const started = spoke;
  const write = (text: string): void => {
    spoke = now();
    print(text);
  };
  return {
    begin(count) {
      total = count;
    },
    say: (text) => write(`${text}\n`),
    beat(running) {
      if (now() - spoke < silenceMs) return;
      const waiting = Math.max(0, total - done - running);
      write(
        `… ${Math.round((now() - started) / 1000)} s: ${done} of ${total} done, ${running} running, ${waiting} waiting\n`,
      );
    },
    ended(row) {
      done += 1;
      const place = `[${String(done).padStart(String(total).length)}/${total}]`;
      if (row === null) {
        write(`${place} an attempt ended without a row\n`);
        return;
      }
      const score = row.score === null ? "  –  " : row.score.toFixed(3);
      const turns = `${row.turns} ${row.turns === 1 ? "turn" : "turns"}`;
      const again = row.try > 1 ? ` try ${row.try}` : "";
      const epoch = row.epoch > 1 ? ` epoch ${row.epoch}` : "";
      const seconds = `${row.executor_seconds.toFixed(1)} s`;
      write(
        `${place} ${row.status.padEnd(16)} ${score}  ${row.model}  ${row.task}${epoch}${again}, ${turns}, ${seconds}\n`,
      );
      if (!row.valid) write(`${" ".repeat(place.length)} ${row.reason.slice(0, reasonLength)}\n`);
    },
  };
}
