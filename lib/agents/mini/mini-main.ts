/** Entry of mini's process: `mini-main.js <job file>`, the gateway's address and key in the environment. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { placeMapOf } from "../place-map.ts";
import { converse } from "./conversation.ts";
import { miniEnv, miniJob, miniTranscript } from "./job.ts";
import { parseMiniLine } from "./transcript.ts";

async function main(): Promise<number> {
  const [path] = process.argv.slice(2);
  const baseURL = process.env[miniEnv.baseUrl];
  const apiKey = process.env[miniEnv.key];
  if (path === undefined || !baseURL || !apiKey) {
    process.stderr.write(`mini-main.js needs the path of its job file, ${miniEnv.baseUrl} and ${miniEnv.key}\n`);
    return 2;
  }
  const job = miniJob.parse(JSON.parse(readFileSync(path, "utf8")));
  const transcript = join(job.state, miniTranscript);
  const earlier = existsSync(transcript) ? readFileSync(transcript, "utf8") : "";
  // A turn that was killed while it wrote leaves half a line, which must not swallow the first one of this turn.
  if (earlier !== "" && !earlier.endsWith("\n")) appendFileSync(transcript, "\n");
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && name !== miniEnv.key && name !== miniEnv.baseUrl) env[name] = value;
  }
  return await converse({
    job,
    // The gateway waits for the provider; mini waits longer, so that it is the gateway that says what went wrong.
    client: new OpenAI({ baseURL, apiKey, maxRetries: 2, timeout: 3_600_000 }),
    place: {
      workspace: job.workspace,
      map: placeMapOf(process.env),
      bashTimeoutSeconds: job.options.bashTimeoutSeconds,
      maxOutputChars: job.options.maxOutputChars,
      env,
    },
    before: earlier.split("\n").flatMap((line) => parseMiniLine(line) ?? []),
    keep: (line) => appendFileSync(transcript, `${JSON.stringify(line)}\n`),
    say: (text) => void process.stdout.write(text),
    now: () => Date.now(),
  });
}

process.exitCode = await main();
