import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openBubblewrapLauncher } from "../../../../lib/platform/local/launcher/bubblewrap.ts";
import { openUnisolatedLauncher } from "../../../../lib/platform/local/launcher/unisolated.ts";
import type { Launcher } from "../../../../lib/platform/ports.ts";
import { bubblewrap, describeWithBubblewrap } from "../../../bubblewrap.ts";
import { tarOf } from "../../../executor/turn-server/turn-client.ts";
import { buildBundles, runnerOf } from "./fixture.ts";
import { spec } from "./spec.ts";

const script = readFileSync(new URL("hostile-agent.mjs", import.meta.url), "utf8");
const canaries = {
  providerKey: "canary-provider-key-5d1f",
  sealKey: "canary-seal-key-90ab",
  turnSecret: "canary-turn-secret-77c2",
  otherTurnSecret: "canary-other-turn-secret-1e0d",
  environment: "canary-environment-c0de",
  rubric: "canary-rubric-8f3a",
  otherWork: "canary-other-work-42aa",
};

describeWithBubblewrap("a hostile agent in a sandbox", () => {
  let folder: string;
  let bundles: string;
  const launchers: Launcher[] = [];
  const tokens = createServer((end) => end.end("canary-tokens-service"));

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "fire-"));
    bundles = await buildBundles();
    mkdirSync(join(folder, "hidden"));
    writeFileSync(join(folder, "hidden", "eval_rule.md"), canaries.rubric);
    process.env.CANARY_KEY = canaries.environment;
    await new Promise<void>((done) => tokens.listen(join(folder, "tokens.sock"), done));
  });
  afterAll(async () => {
    delete process.env.CANARY_KEY;
    for (const launcher of launchers) await launcher.close();
    tokens.close();
    for (const made of [folder, bundles]) rmSync(made, { recursive: true, force: true });
  });

  const options = () => ({
    objects: folder,
    tokens: join(folder, "tokens.sock"),
    secrets: { get: async () => canaries.providerKey },
    bundles,
  });

  /** Runs the search as an agent beside another try that has left a file; answers with all it printed. */
  async function search(launcher: Launcher, network: "web" | "offline", walk: string[]): Promise<string> {
    launchers.push(launcher);
    const secrets = { sealKey: canaries.sealKey, keyName: "KEY", network };
    const name = `${launcher.isolation}-${network}`;
    await launcher.launch(spec(`${name}-one`, { ...secrets, turnSecret: canaries.turnSecret }));
    await launcher.launch(spec(`${name}-two`, { ...secrets, turnSecret: canaries.otherTurnSecret }));
    const one = await runnerOf(folder, `${name}-one`);
    const two = await runnerOf(folder, `${name}-two`);
    await two.client.turn({ command: ["/bin/sh", "-c", `echo ${canaries.otherWork} > results/a; cp results/a ~`] });
    const sandboxed = launcher.isolation !== "none";
    const ours = [folder, join(folder, "hidden", "eval_rule.md"), resolve("."), resolve("package.json")];
    const hosts = [
      dirname(dirname(two.input.turnServer)),
      `/proc/${process.pid}/environ`,
      `/proc/${one.pid}/environ`,
      "/etc/shadow",
      "/dev/mem",
      "/dev/vda",
    ];
    await one.client.call("PUT", "/package", await tarOf({ "sources/search.mjs": script }));
    const run = await one.client.turn({
      command: [
        "/bin/sh",
        "-c",
        'exec node clawbench/sources/search.mjs "$@"',
        "search",
        ...ours,
        ...(sandboxed ? hosts : []),
      ],
      env: {
        PROCESSES: sandboxed ? "all" : "parent",
        WALK: JSON.stringify(walk),
        SOCKETS: JSON.stringify([two.input.turnServer, one.input.turnServer, join(folder, "tokens.sock")]),
      },
    });
    expect(run.err).toBe("");
    expect(run.exit.code).toBe(0);
    expect(run.out).toContain("## end of the search");
    return run.out;
  }

  it.each(["web", "offline"] as const)(
    "with network %s finds no key, secret, rubric or other attempt",
    async (network) => {
      const seen = await search(await openBubblewrapLauncher({ ...options(), bwrap: bubblewrap() }), network, ["/"]);
      // It did look: its own things are there.
      expect(seen).toContain(":: /tmp_workspace/clawbench/sources/search.mjs");
      expect(seen).toContain(":: /opt/proctor/turn-server-main.js");
      expect(seen).toContain('"KEY":"gateway-key"');
      for (const [name, canary] of Object.entries(canaries)) expect(seen.includes(canary), name).toBe(false);
      expect(seen).not.toContain("canary-tokens-service");
      // Its turn server, although of the same user, is closed to it.
      expect(seen).toContain("-- 2 environ: EACCES");
      expect(seen).toContain("-- 2 memory: EACCES");
      expect(seen).toContain("-- 2 fd: EACCES");
      // Nothing of the host's processes, files or devices.
      expect(seen).not.toMatch(/^## asked for/m);
      expect(seen).not.toMatch(/vitest/);
      expect(seen).not.toMatch(/^:: \/etc\/(shadow|ssl\/private)/m);
      expect(seen).toMatch(/^CapEff:\t0000000000000000$/m);
      expect(seen).toMatch(/^CapBnd:\t0000000000000000$/m);
      expect(seen).toMatch(/^NoNewPrivs:\t1$/m);
    },
  );

  it("has a bounded number of processes, and room in memory for its temporary files alone", async () => {
    const { client } = await runnerOf(folder, "bwrap-web-one");
    const run = await client.turn({
      command: ["/bin/bash", "-c", "ulimit -u; ulimit -c; df -k --output=size / /tmp | tail -n +2"],
      turn: 3,
    });
    expect(run.out.match(/\d+/g)?.map(Number)).toEqual([4096, 0, 65_536, 1_048_576]);
  });

  it("without network has no socket but its own", async () => {
    const { client } = await runnerOf(folder, "bwrap-offline-one");
    const run = await client.turn({
      command: ["/bin/sh", "-c", "cat /proc/net/dev /proc/net/route; cat /proc/net/unix | wc -l"],
      turn: 2,
    });
    expect(run.out.match(/^\s*\w+:/gm)?.map((name) => name.trim())).toEqual(["lo:"]);
  });

  it("is shown by a control: the same search without a sandbox finds them", async () => {
    const seen = await search(await openUnisolatedLauncher({ ...options(), work: join(folder, "work") }), "web", [
      folder,
    ]);
    for (const canary of [canaries.rubric, canaries.otherWork, "canary-tokens-service"]) expect(seen).toContain(canary);
    expect(seen).toMatch(/^## asked for .*package\.json$/m);
  });
});
