/** Plain progress: a line on standard error for each attempt that ended, so that standard output keeps the result. */
import type { ScoreRow } from "../../lib/results/score-row.ts";

export interface Progress {
  /** Something worth a line. */
  say(text: string): void;
  /** An attempt has ended; `null`: it has no row. */
  ended(row: ScoreRow | null): void;
}

export function plainProgress(total: number, write: (text: string) => void): Progress {
  let done = 0;
  const width = String(total).length;
  return {
    say: (text) => write(`${text}\n`),
    ended(row) {
      done += 1;
      const place = `[${String(done).padStart(width)}/${total}]`;
      if (row === null) {
        write(`${place} an attempt ended without a row\n`);
        return;
      }
      const score = row.score === null ? "  –  " : row.score.toFixed(3);
      const turns = `${row.turns} ${row.turns === 1 ? "turn" : "turns"}`;
      const again = row.try > 1 ? ` try ${row.try}` : "";
      const why = row.valid ? "" : ` (${row.reason})`;
      const seconds = `${row.wall_seconds.toFixed(1)} s`;
      write(
        `${place} ${row.status.padEnd(19)} ${score}  ${row.model}  ${row.task}  epoch ${row.epoch}${again}  ${turns}, ${seconds}${why}\n`,
      );
    },
  };
}
