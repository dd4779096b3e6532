/**
 * Starting and ending an executor's agent side, one after the other: from the launch to the turn server's first answer,
 * a turn of the null agent, and the end of all its processes. The runner is one that does nothing.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runnerInput } from "../lib/executor/runner-input.ts";
import { openBubblewrapLauncher } from "../lib/platform/local/launcher/bubblewrap.ts";
import { detectIsolation } from "../lib/platform/local/launcher/isolation.ts";
import { openUnisolatedLauncher } from "../lib/platform/local/launcher/unisolated.ts";
import type { Launcher } from "../lib/platform/ports.ts";
import { type Measure, median } from "./measure.ts";

const rounds = 15;

/** Tells the socket of its turn server to who measures, and waits. */
const idleRunner = `
  const { renameSync, writeFileSync } = require("node:fs");
  process.stdin.once("data", (line) => {
    const { objects, mailbox } = JSON.parse(line);
    writeFileSync(objects + "/part", line);
    renameSync(objects + "/part", objects + "/" + mailbox);
  });
  process.stdin.on("end", () => process.exit(0));`;

export async function measure(): Promise<Measure[]> {
  const measures: Measure[] = [];
  const found = await detectIsolation();
  const folder = mkdtempSync(join(tmpdir(), "proctor-bench-"));
  const options = {
    objects: folder,
    tokens: join(folder, "tokens.sock"),
    secrets: { get: async () => null },
    runner: { command: process.execPath, args: ["-e", idleRunner] },
  };
  try {
    if (found.bwrap) {
      measures.push(...(await rounded("bwrap", folder, await openBubblewrapLauncher({ ...options, bwrap: found }))));
    } else {
      const reason = `not measured: ${found.reason}`;
      measures.push({ name: "an executor in bubblewrap", value: null, unit: "ms", target: null, reason });
    }
    measures.push(...(await rounded("none", folder, await openUnisolatedLauncher(options))));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return measures;
}

async function rounded(isolation: string, folder: string, launcher: Launcher): Promise<Measure[]> {
  const starts: number[] = [];
  const turns: number[] = [];
  const stops: number[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      const mailbox = `${isolation}-${round}`;
      const began = performance.now();
      const { id } = await launcher.launch({
        startedBy: `${"b".repeat(26)}/01`,
        clientToken: mailbox,
        task: { task: "bench", digest: "" },
        agent: { name: "null", version: "1" },
        network: "offline",
        mailbox,
        sealKey: "none",
        turnSecret: "secret",
        keyName: null,
      });
      const path = join(folder, mailbox);
      while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 1));
      const { turnServer } = runnerInput.parse(JSON.parse(readFileSync(path, "utf8")));
      await call(turnServer, "GET", "/health");
      const started = performance.now();
      const answer = await call(turnServer, "POST", "/turn", JSON.stringify(nullTurn));
      if (!answer.includes('"code":0')) throw new Error(`the null agent did not end well: ${answer}`);
      const ended = performance.now();
      await launcher.stop(id, "measured");
      starts.push(started - began);
      turns.push(ended - started);
      stops.push(performance.now() - ended);
    }
  } finally {
    await launcher.close();
  }
  const figure = (name: string, values: number[]): Measure => {
    return { name: `${name} (${isolation})`, value: median(values), unit: "ms", target: null };
  };
  return [
    figure("launch to first answer of the turn server", starts),
    figure("turn of the null agent", turns),
    figure("end of an executor", stops),
  ];
}

const nullTurn = {
  v: 1,
  turn: 1,
  message: "nothing",
  sessionId: "s",
  timeoutSeconds: 10,
  agent: { name: "null", options: {} },
  model: "none",
  gateway: { baseUrl: "http://127.0.0.1:1/v1", key: "none" },
  env: {},
};

function call(socketPath: string, method: string, path: string, body = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: "Bearer secret" };
    const sent = request({ socketPath, method, path, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
