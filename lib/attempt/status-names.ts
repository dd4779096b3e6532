/** Names that UniClawBench's own tools write for a status, in ours. */
import { errorStatus, type RowStatus, rowStatus, validStatus } from "./vocabulary.ts";

const own = new Set<string>([...rowStatus.options, ...validStatus.options, ...errorStatus.options]);

/** Never throws: what says nothing is `missing`. */
export function normaliseStatus(name: string | null | undefined): RowStatus | "missing" {
  const bare = (name ?? "").trim().toLowerCase();
  if (own.has(bare)) return bare as RowStatus | "missing";
  // A run that exited with an error before anyone wrote a summary, and old catch-alls: the agent did not finish.
  if (/^fail_rc=-?\d+$/.test(bare) || bare === "continue" || bare === "stopped") return "executor_incomplete";
  return "missing";
}

/** The same the other way: what UniClawBench's tools understand of our statuses. */
export function exportedStatus(status: RowStatus | "missing"): string {
  switch (status) {
    case "unjudged":
      return "infra_error";
    case "cost_stopped":
    case "cancelled":
      return "missing";
    default:
      return status;
  }
}
