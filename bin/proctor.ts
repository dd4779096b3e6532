#!/usr/bin/env node
/** The command line. It only names commands; what a command does is loaded when it is called, so that help is instant. */
import { Command, CommanderError } from "commander";
import { type CommandResult, endProcess, outliveReaders, reportFailure, reportUsage } from "./command.ts";

outliveReaders();
const program = new Command("proctor")
  .description("Runs benchmarks of AI agents at scale and tells, with error bars, what they are worth.")
  .version("0.1.0")
  .option("--json", "print one JSON object instead of text", false)
  .option("--runs <folder>", "folder of this machine's sweeps", process.env.PROCTOR_RUNS ?? "runs")
  .showHelpAfterError("(add --help for what there is)")
  .exitOverride();

type Options = Record<string, unknown>;
type Action = (args: string[], options: Options) => Promise<CommandResult>;

/** Adds a command whose code is loaded on its call. */
function command(
  parent: Command,
  usage: string,
  description: string,
  load: () => Promise<{ default: Action }>,
): Command {
  const made = parent.command(usage).description(description);
  made.option("--json", "print one JSON object instead of text");
  made.action(async (...passed: unknown[]) => {
    const self = passed.at(-1) as Command;
    const { default: action } = await load();
    await endProcess(await action(self.args, self.optsWithGlobals()));
  });
  return made;
}

command(
  program,
  "demo",
  "a small sweep end to end, with scripted models: no keys, no cloud",
  () => import("./commands/demo.ts"),
);

const tasks = program.command("tasks").description("look at task packages");
command(tasks, "list <folder>", "one line a package", () => import("./commands/tasks-list.ts"));
command(
  tasks,
  "validate <folder>",
  "everything that is wrong with the packages of a folder, at once",
  () => import("./commands/tasks-validate.ts"),
);
const imports = tasks.command("import").description("copy packages from another benchmark's checkout");
command(
  imports,
  "uniclawbench <checkout>",
  "copy packages of UniClawBench, whole",
  () => import("./commands/tasks-import.ts"),
)
  .option("--only <glob>", "task ids or categories to copy")
  .requiredOption("--out <folder>", "where to put them");

command(
  program,
  "run <sweep.yaml>",
  "run a sweep, or go on with it; Ctrl-C drains, twice stops",
  () => import("./commands/run.ts"),
).option("--unisolated", "let a real model work without a sandbox");
command(
  program,
  "status [sweep]",
  "how far a sweep is; without a name, which there are",
  () => import("./commands/status.ts"),
);
command(program, "abort <sweep>", "stop a running sweep and all that it started", () => import("./commands/abort.ts"));
command(program, "retry <sweep>", "run errors again, or judge them again", () => import("./commands/retry.ts"))
  .option(
    "--status <statuses>",
    "comma-separated: which errors",
    "infra_error,rate_limit,pre_exec_failed,unjudged,cancelled,missing",
  )
  .option("--unisolated", "let a real model work without a sandbox");
command(
  program,
  "report <sweep>",
  "scores by model and capability, with intervals",
  () => import("./commands/report.ts"),
);
command(program, "doctor", "what is there, what is missing, what to do", () => import("./commands/doctor.ts"));

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError)
    await reportUsage(error.exitCode, error.message, process.argv.includes("--json"));
  else await reportFailure(error, process.argv.includes("--json"));
}
