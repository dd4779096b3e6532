import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CollectLimits, collectLimits } from "../../../lib/executor/turn-protocol.ts";
import { agentsAsProcesses } from "../../../lib/executor/turn-server/agent-process.ts";
import { markedScope } from "../../../lib/executor/turn-server/process-scope.ts";
import { TurnServer } from "../../../lib/executor/turn-server/turn-server.ts";
import { alive, onLinux, until } from "./processes.ts";
import { agentByName } from "./script-agent.ts";
import { readAll, readTurn, TurnClient, tarOf, turnBody } from "./turn-client.ts";

const secret = "a secret of the try";
let folder: string;
let workspace: string;
let server: TurnServer;
let client: TurnClient;

async function serve(limits: Partial<CollectLimits> = {}): Promise<void> {
  const socket = join(folder, `${randomBytes(3).toString("hex")}.sock`);
  server = new TurnServer({
    secret,
    place: { workspace, home: join(folder, "root"), bundles: "/nowhere", node: process.execPath },
    agents: agentByName,
    start: agentsAsProcesses(markedScope(randomBytes(8).toString("hex"))),
    graceMs: 300,
    settleMs: 200,
    limits,
  });
  await new Promise<void>((resolve) => server.server.listen(socket, resolve));
  client = new TurnClient(socket, secret);
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "ts-"));
  workspace = join(folder, "w");
  await serve();
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const sh = (script: string): string[] => ["/bin/sh", "-c", script];
const node = (script: string): string[] => [process.execPath, "-e", script];
describe("the try's secret", () => {
  it("is shown to who knows it, and asked of everybody", async () => {
    expect(await client.call("GET", "/health")).toMatchObject({ status: 200, secret });
    const stranger = await client.call("GET", "/health", "", "another try's secret");
    expect(stranger).toMatchObject({ status: 401, secret: undefined });
    expect(stranger.body.toString()).not.toContain(secret);
  });

  it("is asked before any work is done", async () => {
    expect((await client.call("PUT", "/package", await tarOf({ "sources/a": "x" }), "")).status).toBe(401);
    expect(existsSync(join(workspace, "clawbench"))).toBe(false);
  });

  it("is not in the environment of the agent", async () => {
    const run = await client.turn({ command: sh("env; cat /proc/self/cmdline") });
    expect(run.out).not.toContain(secret);
    expect(run.out).not.toContain("VITEST");
  });
});

describe("PUT /package", () => {
  it("brings sources and skills to where the task says they are", async () => {
    const tar = await tarOf({
      "request.md": "the request",
      "sources/puzzle.txt": "53..7",
      "sources/deep/run.sh": "#!/bin/sh",
      "skills/web/SKILL.md": "how",
    });
    const answer = await client.call("PUT", "/package", tar);
    expect(JSON.parse(answer.body.toString())).toEqual({ v: 1, files: 3, bytes: 17 });
    expect(readFileSync(join(workspace, "clawbench/sources/puzzle.txt"), "utf8")).toBe("53..7");
    expect(statSync(join(workspace, "clawbench/sources/deep/run.sh")).mode & 0o111).toBe(0o111);
    expect(readFileSync(join(folder, "root/skills/web/SKILL.md"), "utf8")).toBe("how");
    expect(statSync(join(workspace, "results")).isDirectory()).toBe(true);
  });

  it.each([
    ["a path that leads out", { "sources/../../../x": "x" }],
    ["an absolute path", { "/etc/x": "x" }],
    ["a link", { "sources/x": { type: "symlink" as const, linkname: "/etc/passwd" } }],
  ])("refuses %s", async (_what, files) => {
    expect((await client.call("PUT", "/package", await tarOf(files))).status).toBe(500);
  });

  it("is for before the first turn", async () => {
    await client.turn({ command: sh("true") });
    expect((await client.call("PUT", "/package", await tarOf({ "sources/a": "x" }))).status).toBe(409);
  });
});

describe("POST /turn", () => {
  it("starts the agent in its workspace and streams what it says", async () => {
    const run = await client.turn({ command: sh("pwd; echo oops >&2; echo $HOME; exit 3") });
    expect(run.lines[0]).toMatchObject({ event: "started" });
    expect(run.out).toBe(`${workspace}\n${join(folder, "root")}\n`);
    expect(run.err).toBe("oops\n");
    expect(run.exit).toEqual({ code: 3, signal: null });
  });

  it("keeps one conversation's files over turns, and what the agent left running", async () => {
    await client.turn({ command: sh("sleep 30 & echo $! > left; echo kept > a") });
    const left = Number(readFileSync(join(workspace, "left"), "utf8"));
    const second = await client.turn({ command: sh("cat a"), turn: 2 });
    expect(second.out).toBe("kept\n");
    expect(alive(left)).toBe(true);
  });

  it("gives what the runner says to the agent alone", async () => {
    const run = await client.turn({ command: sh('echo "$TOKEN $KEY"'), env: { TOKEN: "privacy value" } });
    expect(run.out).toBe("privacy value gateway-key\n");
  });

  it("maps the paths of the task where there is no sandbox", async () => {
    const message =
      "save to /tmp_workspace/results/a.txt, read /root/skills/x, not /tmp_workspaces or /a/tmp_workspace";
    const run = await client.turn({ command: sh('printf %s "$MESSAGE"'), message });
    expect(run.out).toBe(
      `save to ${workspace}/results/a.txt, read ${folder}/root/skills/x, not /tmp_workspaces or /a/tmp_workspace`,
    );
  });

  it("answers 409 while a turn runs", async () => {
    const first = await client.open("POST", "/turn", turnBody({ command: sh("sleep 30") }));
    expect((await client.call("POST", "/turn", turnBody({ command: sh("true") }))).status).toBe(409);
    expect((await client.call("GET", "/results?turn=1")).status).toBe(409);
    await client.call("POST", "/stop");
    expect(readTurn((await readAll(first)).toString()).exit.signal).toBe("SIGTERM");
    expect((await client.turn({ command: sh("echo again") })).out).toBe("again\n");
  });

  it.each([
    ["an unknown agent", { agent: { name: "nobody", options: {} } }, "nobody"],
    ["options that the agent does not have", { agent: { name: "script", options: { x: 1 } } }, "script"],
    ["a command that is not there", { agent: { name: "script", options: { command: ["/no/such"] } } }, "ENOENT"],
    ["NUL in an argument", { agent: { name: "script", options: { command: ["/bin/echo", "a\0b"] } } }, "null bytes"],
    ["no message", { message: "" }, "message"],
  ])("refuses %s, and can go on", async (_what, change, names) => {
    const answer = await client.call("POST", "/turn", turnBody({ command: sh("true"), ...change }));
    expect(answer.status).toBe(422);
    expect(answer.body.toString()).toContain(names);
    expect((await client.turn({ command: sh("true") })).exit.code).toBe(0);
  });

  it("refuses what is no JSON", async () => {
    expect((await client.call("POST", "/turn", "{")).status).toBe(422);
  });
});

describe("what an agent writes", () => {
  it("stays sound whatever bytes it has", async () => {
    const bytes = [0x61, 0x00, 0xff, 0xed, 0xa0, 0x80, 0xe2, 0x82, 0x0a];
    const run = await client.turn({ command: node(`process.stdout.write(Buffer.from(${JSON.stringify(bytes)}))`) });
    expect(run.out.startsWith("a\0\ufffd")).toBe(true);
    expect(run.out.endsWith("\n")).toBe(true);
    expect(Buffer.from(run.out).toString("utf8")).toBe(run.out);
  });

  it("comes in lines below the protocol's bound, whole, whatever its length", async () => {
    const script = `process.stdout.write("\\u0000".repeat(100000) + "😀字".repeat(50000) + "\\n")`;
    const response = await client.open("POST", "/turn", turnBody({ command: node(script) }));
    const body = (await readAll(response)).toString("utf8");
    const longest = Math.max(...body.split("\n").map((line) => Buffer.byteLength(line)));
    expect(longest).toBeLessThan(collectLimits.outputLineBytes);
    expect(readTurn(body).out).toBe(`${"\0".repeat(100_000)}${"😀字".repeat(50_000)}\n`);
  });

  it("is dropped beyond the bound, and the turn goes on", async () => {
    await server.close();
    await serve({ outputBytes: 100_000 });
    const run = await client.turn({ command: sh("head -c 3000000 /dev/zero | tr '\\0' x; exit 4") });
    expect(run.out.length).toBeLessThan(200_000);
    expect(run.err).toContain("beyond 100000 bytes is dropped");
    expect(run.exit.code).toBe(4);
  });

  it("is not waited for when a process that stays behind holds its pipe", async () => {
    const run = await client.turn({ command: sh("sleep 60 & echo done") });
    expect(run.out).toBe("done\n");
    expect(run.exit.code).toBe(0);
  });
});

describe("ending a turn", () => {
  const daemons = `
    trap '' TERM
    sleep 60 & echo $! >> pids
    setsid sh -c 'echo $$ >> pids; trap "" TERM; sleep 60 & echo $! >> pids; sleep 60' &
    (setsid setsid sleep 60 & echo $! >> pids) &
    echo $$ >> pids
    sleep 60`;
  const pids = (): number[] =>
    existsSync(join(workspace, "pids"))
      ? readFileSync(join(workspace, "pids"), "utf8").trim().split("\n").map(Number)
      : [];

  it.runIf(onLinux)("ends all that the agent started when it is stopped", async () => {
    const turn = await client.open("POST", "/turn", turnBody({ command: sh(daemons) }));
    await until(() => pids().length === 5);
    expect((await client.call("POST", "/stop")).status).toBe(200);
    expect(pids().filter(alive)).toEqual([]);
    expect(readTurn((await readAll(turn)).toString()).exit.signal).toBe("SIGKILL");
  });

  it.runIf(onLinux)("ends all that the agent started when the runner goes away", async () => {
    const turn = await client.open("POST", "/turn", turnBody({ command: sh(daemons) }));
    await until(() => pids().length === 5);
    turn.destroy();
    await until(() => pids().filter(alive).length === 0);
  });

  it("gives an agent time to end by itself", async () => {
    const turn = await client.open(
      "POST",
      "/turn",
      turnBody({ command: sh("trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done") }),
    );
    let heard = "";
    turn.on("data", (part: Buffer) => {
      heard += part;
    });
    await until(() => heard.includes("up"));
    await client.call("POST", "/stop");
    await until(() => turn.readableEnded);
    expect(readTurn(heard).exit).toEqual({ code: 7, signal: null });
  });

  it("can be asked for when nothing runs", async () => {
    expect((await client.call("POST", "/stop")).status).toBe(200);
  });
});

describe("GET /results", () => {
  it("carries results and transcript, and says at its end that it is whole", async () => {
    await client.turn({
      command: sh(
        `mkdir -p results/a/b; echo one > results/a/b/c.txt; printf x > 'results/übung "1".txt'; echo '{}' > ~/.proctor/script/script.jsonl`,
      ),
    });
    const { entries, end } = await client.results();
    expect(Object.fromEntries(entries.map((entry) => [entry.name, entry.body.toString()]))).toEqual({
      "results/a/b/c.txt": "one\n",
      'results/übung "1".txt': "x",
      "transcript/script.jsonl": "{}\n",
    });
    expect(end).toEqual({ v: 1, files: 3, bytes: 8, skipped: [] });
  });

  it("follows no link and reads no device, FIFO or socket", async () => {
    await client.turn({
      command: sh(
        "cd results; ln -s /etc/passwd link; ln -s /etc dir; mkfifo pipe; ln -s /proc/self/environ env; mkdir real; ln -s .. real/up; echo ok > ok",
      ),
    });
    const { entries, end } = await client.results();
    expect(entries.map((entry) => [entry.name, entry.type])).toEqual([["results/ok", "file"]]);
    expect(end.skipped.map(({ path, reason }) => [path, reason]).sort()).toEqual([
      ["results/dir", "a symbolic link"],
      ["results/env", "a symbolic link"],
      ["results/link", "a symbolic link"],
      ["results/pipe", "a FIFO"],
      ["results/real/up", "a symbolic link"],
    ]);
  });

  it("follows no link in place of the results folder itself", async () => {
    rmSync(join(workspace, "results"), { recursive: true });
    mkdirSync(join(folder, "elsewhere"));
    writeFileSync(join(folder, "elsewhere/secret"), "x");
    symlinkSync(join(folder, "elsewhere"), join(workspace, "results"));
    expect((await client.results()).entries).toEqual([]);
  });

  it.runIf(onLinux)("leaves out what is beyond a limit, and says so", async () => {
    await server.close();
    await serve({ files: 6, bytes: 150, fileBytes: 100, depth: 3, nameBytes: 40 });
    await client.turn({
      command: sh(`cd results; truncate -s 1T sparse; mkdir -p 1/2/3/4; echo deep > 1/2/3/4/deep; echo fine > 1/2/fine
        printf '%050d' 0 > a; printf '%050d' 0 > b; printf '%090d' 0 > c; echo > $(printf '%060d' 0)
        printf x > "$(printf 'bad\\377')"; for i in 1 2 3 4 5; do echo > d$i; done`),
    });
    const { entries, end } = await client.results();
    expect(entries.map((entry) => entry.name)).toEqual([
      "results/1/2/fine",
      "results/a",
      "results/b",
      "results/d1",
      "results/d2",
      "results/d3",
    ]);
    expect(Object.fromEntries(end.skipped.map(({ path, reason }) => [path, reason]))).toEqual({
      [`results/${"0".repeat(60)}`]: "its name has more than 40 bytes",
      "results/1/2/3": "deeper than 3 folders",
      "results/bad\ufffd": "its name is not UTF-8",
      "results/c": "more than 150 bytes in all",
      "results/d4": "more than 6 files",
      "results/d5": "more than 6 files",
      "results/sparse": `${1024 ** 4} bytes, more than 100`,
    });
  });

  it.each<[string, Partial<CollectLimits>]>([
    ["files", { files: 2 }],
    ["bytes", { bytes: 5 }],
  ])("carries the transcript first, however many %s the results have", async (_, limits) => {
    await server.close();
    await serve(limits);
    await client.turn({
      command: sh(
        "for i in 1 2 3 4 5; do echo > results/$i; echo x >> results/$i; done; rm results/5; echo '{\"long\": 1}' > ~/.proctor/script/script.jsonl",
      ),
    });
    const { entries, end } = await client.results();
    expect(entries[0]).toMatchObject({ name: "transcript/script.jsonl" });
    expect(entries[0]?.body.toString()).toBe('{"long": 1}\n');
    expect(end.files).toBe(entries.length);
    expect(end.bytes).toBe(entries.reduce((sum, entry) => sum + entry.body.length, 0));
    expect(end.skipped.map(({ path }) => path)).toContain("results/4");
  });

  it("bounds the transcript by itself, and leaves out no result for it", async () => {
    await server.close();
    await serve({ transcriptBytes: 10 });
    await client.turn({ command: sh("echo a > results/a; echo 12345678901 > ~/.proctor/script/script.jsonl") });
    const { entries, end } = await client.results();
    expect(entries.map((entry) => entry.name)).toEqual(["results/a"]);
    expect(end.skipped).toEqual([{ path: "transcript/script.jsonl", reason: "more than 10 bytes in all" }]);
  });

  it("names at most a bounded number of what it leaves out", async () => {
    await client.turn({ command: sh("cd results; i=0; while [ $i -lt 1200 ]; do ln -s x l$i; i=$((i+1)); done") });
    const { end } = await client.results();
    expect(end.skipped).toHaveLength(1001);
    expect(end.skipped.at(-1)?.reason).toBe("200 more were left out");
  });

  it("is whole while a process goes on changing files", async () => {
    await client.turn({
      command: sh(
        "(while :; do date >> results/grows; head -c 3000000 /dev/zero > results/cut; : > results/cut; done) > /dev/null 2>&1 & sleep 0.1",
      ),
    });
    for (let round = 0; round < 5; round++) {
      const { entries, end } = await client.results();
      expect(entries.map((entry) => entry.name).sort()).toEqual(["results/cut", "results/grows"]);
      expect(end.files).toBe(2);
      expect(end.bytes).toBe(entries.reduce((sum, entry) => sum + entry.body.length, 0));
    }
  });

  it("asks for a turn", async () => {
    expect((await client.call("GET", "/results")).status).toBe(400);
  });
});

describe("the gateway", () => {
  it("is reached on loopback by an agent, whatever socket it stands on", async () => {
    const socket = join(folder, "g.sock");
    const gateway = createServer((asked, answer) => answer.end(`${asked.url} ${asked.headers.authorization}`));
    await new Promise<void>((resolve) => gateway.listen(socket, resolve));
    const run = await client.turn({
      command: node(
        "fetch(process.env.BASE_URL + '/models', {headers: {authorization: 'Bearer ' + process.env.KEY}}).then(r => r.text()).then(console.log)",
      ),
      gateway: { baseUrl: `unix:${socket}`, key: "k" },
    });
    expect(run.out).toBe("/v1/models Bearer k\n");
    gateway.close();
  });

  it("that is gone is a 502, not a crash", async () => {
    const run = await client.turn({
      command: node("fetch(process.env.BASE_URL + '/models').then(r => console.log(r.status))"),
      gateway: { baseUrl: `unix:${join(folder, "gone.sock")}`, key: "k" },
    });
    expect(run.out).toBe("502\n");
    expect((await client.call("GET", "/health")).status).toBe(200);
  });
});

it("outlives requests that make no sense", async () => {
  await new Promise<void>((resolve) => {
    const sent = request({ socketPath: client.socket, method: "BREW", path: "//\u0001" });
    sent.on("error", () => resolve());
    sent.on("response", (response) => response.resume().on("end", resolve));
    sent.end();
  }).catch(() => {});
  expect((await client.call("GET", "/nothing")).status).toBe(404);
  expect((await client.call("GET", "/health")).status).toBe(200);
});
