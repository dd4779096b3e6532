import type { LaunchSpec } from "../../../../lib/platform/ports.ts";

/** A launch whose secrets name their mailbox. */
export function spec(mailbox: string, change: Partial<LaunchSpec> = {}): LaunchSpec {
  return {
    startedBy: `${"a".repeat(26)}/01`,
    clientToken: mailbox,
    task: { task: "task_1", digest: "d" },
    agent: { name: "script", version: "1" },
    network: "offline",
    mailbox,
    sealKey: `seal key of ${mailbox}`,
    turnSecret: `turn secret of ${mailbox}`,
    keyName: null,
    ...change,
  };
}
