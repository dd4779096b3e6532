/** Faults of ours that end a turn without a report: the token is failed with one of these names, and the try is repeated. */
export const runnerFaults = {
  /** The evidence could not be written: disk full, store unavailable. */
  evidenceFailed: "Proctor.EvidenceFailed",
  /** The package could not be read, or not be handed to the agent's side. */
  packageFailed: "Proctor.PackageFailed",
  /** The turn server can not be reached, or is none that knows the try's secret, or refused the turn. */
  agentUnreachable: "Proctor.AgentUnreachable",
  /** The mailbox held something that this try's key does not open, or a message for another turn. */
  messageUnreadable: "Proctor.MessageUnreadable",
  /** Agent or model are not known to this runner. */
  unsupported: "Proctor.Unsupported",
  /** The deadline passed while the runner still wrote. */
  deadlinePassed: "Proctor.DeadlinePassed",
  /** Anything else: a bug. */
  runnerFault: "Proctor.RunnerFault",
} as const;
export type RunnerFaultName = (typeof runnerFaults)[keyof typeof runnerFaults];

export class RunnerFault extends Error {
  override readonly name: RunnerFaultName;
  constructor(name: RunnerFaultName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = name;
  }
}

/** Runs a step whose failure has a name of ours. */
export async function named<T>(name: RunnerFaultName, what: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof RunnerFault || error instanceof Left) throw error;
    throw new RunnerFault(name, `${what}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** The runner is to leave at once and to write nothing more: whoever started it is gone, or its turn is over already. */
export class Left extends Error {
  override readonly name = "Left";
}
