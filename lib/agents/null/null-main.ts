/** Entry of the null agent's process: `null-main.js <job file>`. */
import { readFile } from "node:fs/promises";
import { nullJobSchema, runNull } from "./run-null.ts";

const [path] = process.argv.slice(2);
if (path === undefined) {
  process.stderr.write("null-main.js needs the path of its job file\n");
  process.exitCode = 2;
} else {
  const job = nullJobSchema.parse(JSON.parse(await readFile(path, "utf8")));
  process.exitCode = await runNull(job, (text) => process.stdout.write(text));
}
