#!/usr/bin/env node
/** `npm run cases -- <table> <file.json> [--json]`: runs a contract table and prints the rows that differ. */
import { runCases } from "./cases/run-cases.ts";
import { endProcess, reportFailure } from "./command.ts";

const args = process.argv.slice(2);
try {
  await endProcess(await runCases(args));
} catch (error) {
  await reportFailure(error, args.includes("--json"));
}
