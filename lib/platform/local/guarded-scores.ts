/** The score table as one role sees it, by the access matrix. */
import { scoresAccess } from "../../firewall/matrix.ts";
import { type Role, type ScoreTable, StoreError } from "../ports.ts";

/** The least access that a method asks for. */
type Need = "read" | "lease" | "write";
const included: Readonly<Record<ReturnType<typeof scoresAccess>, readonly Need[]>> = {
  none: [],
  read: ["read"],
  lease: ["read", "lease"],
  write: ["read", "lease", "write"],
};

/** The table with everything refused that the role may not do. Closing it is left to whoever opened the table. */
export function guardScores(table: ScoreTable, role: Role): ScoreTable {
  const may = included[scoresAccess(role)];
  const check = (need: Need, method: string): void => {
    if (may.includes(need)) return;
    throw new StoreError("access_denied", `the role ${role} may not call ${method} of the score table`);
  };
  const via =
    <A extends unknown[], R>(need: Need, method: string, call: (...passed: A) => Promise<R>) =>
    async (...passed: A): Promise<R> => {
      check(need, method);
      return call.apply(table, passed);
    };
  return {
    sweep: via("read", "sweep", table.sweep),
    sweeps: via("read", "sweeps", table.sweeps),
    startGeneration: via("write", "startGeneration", table.startGeneration),
    heartbeat: via("write", "heartbeat", table.heartbeat),
    requestAbort: via("write", "requestAbort", table.requestAbort),
    reserve: via("write", "reserve", table.reserve),
    openTry: via("write", "openTry", table.openTry),
    closeTry: via("write", "closeTry", table.closeTry),
    tries: via("read", "tries", table.tries),
    async *rows(sweep) {
      check("read", "rows");
      yield* table.rows(sweep);
    },
    lease: via("read", "lease", table.lease),
    leases: via("read", "leases", table.leases),
    updateLease: via("lease", "updateLease", table.updateLease),
    close: async () => {},
  };
}
