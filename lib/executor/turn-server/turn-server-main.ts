/**
 * The turn server as a process: `turn-server-main.js --fd 3 --workspace W --home H --bundles B --scope sandbox -- G`,
 * where G is the command line that agents are started through.
 * Its secret is the first line of its standard input; when that input ends, it ends with all that it started.
 */
import { parseArgs } from "node:util";
import { agentByName } from "../../agents/registry.ts";
import { agentsAsProcesses } from "./agent-process.ts";
import { markedScope, sandboxScope } from "./process-scope.ts";
import { TurnServer } from "./turn-server.ts";

const { values, positionals: guard } = parseArgs({
  allowPositionals: true,
  options: {
    /** Inherited descriptor that listens already, or the path of a socket to listen on. */
    fd: { type: "string" },
    path: { type: "string" },
    workspace: { type: "string" },
    home: { type: "string" },
    bundles: { type: "string" },
    /** `sandbox`: this process namespace is the agent's. `mark:<name>`: its processes carry this mark. */
    scope: { type: "string" },
  },
});

function needed(name: "workspace" | "home" | "bundles" | "scope"): string {
  const value = values[name];
  if (value === undefined) throw new Error(`--${name} is missing`);
  return value;
}

/** The first line of standard input; the rest of it is watched for its end alone. */
function readSecret(onEnd: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (part: string) => {
      text += part;
      if (text.includes("\n")) {
        resolve(text.slice(0, text.indexOf("\n")));
        text = "";
      }
    });
    const ended = (): void => {
      reject(new Error("standard input ended before it brought the secret"));
      onEnd();
    };
    process.stdin.once("end", ended);
    process.stdin.once("error", ended);
  });
}

const scopeName = needed("scope");
const scope = scopeName === "sandbox" ? sandboxScope(guard) : markedScope(scopeName.replace(/^mark:/, ""));
const leave = async (): Promise<void> => {
  await scope.endAll();
  process.exit(0);
};
const secret = await readSecret(() => void leave());
const turnServer = new TurnServer({
  secret,
  place: {
    workspace: needed("workspace"),
    home: needed("home"),
    bundles: needed("bundles"),
    node: process.execPath,
  },
  agents: agentByName,
  start: agentsAsProcesses(scope),
});
process.on("SIGTERM", () => void leave());
if (values.fd !== undefined) turnServer.server.listen({ fd: Number(values.fd) });
else turnServer.server.listen(values.path);
