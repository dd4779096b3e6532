/** The command of the contract tables: exit 0 when all rows agree, 1 when some differ, 2 when the call was wrong. */
import { readFile } from "node:fs/promises";
import { nearest, type Problem, ProblemsError, shown } from "../../lib/tasks/problem.ts";
import { CommandError, type CommandResult } from "../command.ts";
import { runTable, type TableName, tableNames } from "./tables.ts";

const usage = `usage: npm run cases -- <${tableNames.join("|")}> <file.json> [--json]`;

/** @throws CommandError, ProblemsError for a wrong call: unknown table, a file that is missing, broken or of another form */
export async function runCases(args: readonly string[]): Promise<CommandResult> {
  const json = args.includes("--json");
  const wrongOption = args.find((arg) => arg.startsWith("-") && arg !== "--json" && arg !== "--help");
  if (wrongOption !== undefined) throw new CommandError(2, `unknown option ${wrongOption}; ${usage}`);
  if (args.includes("--help")) return { exitCode: 0, text: usage };
  const [name, file, ...more] = args.filter((arg) => !arg.startsWith("-"));
  if (name === undefined || file === undefined || more.length > 0) {
    throw new CommandError(2, `found ${shown([name, file, ...more].filter((arg) => arg !== undefined))}; ${usage}`);
  }
  if (!isTableName(name)) {
    const near = nearest(name, tableNames);
    throw new CommandError(2, `unknown table "${name}"${near ? `; did you mean ${near}?` : ""}; ${usage}`);
  }

  const { rows, differing } = runTable(name, file, await readJson(file));
  const exitCode = differing.length === 0 ? 0 : 1;
  if (json) return { exitCode, text: JSON.stringify({ table: name, file, rows, differing }) };
  const lines = differing.map(
    ({ index, expected, got }) =>
      `${index}: expected ${JSON.stringify(expected)}\n${" ".repeat(index.length)}  got      ${JSON.stringify(got)}`,
  );
  const count = differing.length === 0 ? "all agree" : `${differing.length} differ`;
  return { exitCode, text: [...lines, `${name}: ${rows} rows, ${count}`].join("\n") };
}

function isTableName(name: string): name is TableName {
  return (tableNames as readonly string[]).includes(name);
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new ProblemsError([
      problem(file, code === "ENOENT" ? "no such file" : `a file that cannot be read (${code})`),
    ]);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new ProblemsError([problem(file, `no JSON (${(error as Error).message})`)]);
  }
}

function problem(file: string, found: string): Problem {
  return { file, field: "", severity: "error", found, expected: "a JSON file with rows of the table" };
}
