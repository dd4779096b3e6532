import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  detectIsolation,
  explainFailure,
  isolationProblems,
} from "../../../../lib/platform/local/launcher/isolation.ts";
import { featuresOf, sandboxArguments, sandboxSystem } from "../../../../lib/platform/local/launcher/sandbox.ts";
import { bubblewrap, describeWithBubblewrap } from "../../../bubblewrap.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "isolation-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("what may run without a sandbox", () => {
  it.each([
    ["bwrap", "web", "chat", false, true],
    ["bwrap", "offline", "chat", false, true],
    ["none", "web", "scripted", false, true],
    ["none", "offline", "scripted", false, true],
    ["none", "guarded", "scripted", false, true],
    ["none", "web", "chat", false, false],
    ["none", "web", "chat", true, true],
    ["none", "offline", "chat", true, false],
    ["none", "guarded", "messages", true, false],
    ["none", "offline", "responses", false, false],
  ] as const)("%s, network %s, %s, --unisolated %s: %s", (isolation, network, api, unisolated, runs) => {
    const problems = isolationProblems(isolation, network, api, unisolated);
    expect(problems.length === 0).toBe(runs);
    for (const problem of problems) expect(problem).toContain("install bubblewrap");
  });
});

describe("finding bubblewrap", () => {
  it("says that it is not installed, and how to get it", async () => {
    const found = await detectIsolation({ PATH: folder });
    expect(found).toMatchObject({ bwrap: false, remedy: expect.stringMatching(/apt-get install|Linux/) });
  });

  it("can be hidden", async () => {
    expect(await detectIsolation({ PATH: process.env.PATH, PROCTOR_BWRAP: "/nowhere/bwrap" })).toMatchObject({
      bwrap: false,
      reason: expect.stringMatching(/PROCTOR_BWRAP|Linux/),
    });
  });

  it.runIf(process.platform === "linux")("tries it, and believes no version number", async () => {
    const script =
      '#!/bin/sh\ncase "$1" in --version|--help) echo bubblewrap 9;; *) echo "bwrap: No permissions" >&2; exit 1;; esac\n';
    writeFileSync(join(folder, "bwrap"), script, { mode: 0o755 });
    expect(await detectIsolation({ PATH: folder })).toMatchObject({
      bwrap: false,
      reason: expect.stringContaining("No permissions"),
    });
  });

  const facts = { appArmorRestricts: false, usernsDisabled: false, inContainer: false };
  it.each([
    [
      "Ubuntu 24.04",
      { appArmorRestricts: true },
      "bwrap: setting up uid map: Permission denied",
      /AppArmor/,
      /apparmor/,
    ],
    [
      "Ubuntu 24.04, network",
      { appArmorRestricts: true },
      "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
      /AppArmor/,
      /apparmor/,
    ],
    [
      "switched off",
      { usernsDisabled: true },
      "bwrap: No permissions to create new namespace",
      /switched off/,
      /sysctl/,
    ],
    ["a container", { inContainer: true }, "bwrap: Can't mount proc on /newroot/proc", /container/, /--security-opt/],
    ["else", {}, "", /said nothing/, /bwrap --ro-bind/],
  ])("explains a failure: %s", (_what, change, said, reason, remedy) => {
    const explained = explainFailure(said, { ...facts, ...change });
    expect(explained.reason).toMatch(reason);
    expect(explained.remedy).toMatch(remedy);
  });
});

describe("a sandbox's arguments", () => {
  it("do without what an older bubblewrap lacks", async () => {
    expect(featuresOf("  --size BYTES   Set size\n")).toEqual({ size: true, disableUserns: false });
    const system = await sandboxSystem(featuresOf(""), { files: folder, bundles: folder, hide: [] });
    const args = sandboxArguments(system, "web", null);
    expect(args).not.toContain("--size");
    expect(args).not.toContain("--disable-userns");
  });

  it("cover what must not be seen below a folder that is", async () => {
    const system = await sandboxSystem(featuresOf(""), {
      files: folder,
      bundles: folder,
      hide: ["/usr/src/app", "/home/me/proctor"],
    });
    const args = sandboxArguments(system, "web", null);
    expect(args.join(" ")).toContain("--tmpfs /usr/src/app");
    expect(args).not.toContain("/home/me/proctor");
    expect(args.indexOf("/usr/src/app")).toBeGreaterThan(args.indexOf("/usr"));
  });

  it("share the network for `web` alone", async () => {
    const system = await sandboxSystem(featuresOf(""), { files: folder, bundles: folder, hide: [] });
    expect(sandboxArguments(system, "web", null)).not.toContain("--unshare-net");
    for (const network of ["offline", "guarded"] as const) {
      expect(sandboxArguments(system, network, null)).toContain("--unshare-net");
    }
  });
});

describeWithBubblewrap("an older bubblewrap", () => {
  it("makes a sandbox too", async () => {
    const { path } = bubblewrap();
    writeFileSync(
      join(folder, "bwrap"),
      `#!/bin/sh\ncase "$1" in --help) echo nothing new;; *) exec ${path} "$@";; esac\n`,
      { mode: 0o755 },
    );
    expect(await detectIsolation({ PATH: `${folder}:${process.env.PATH}` })).toMatchObject({
      bwrap: true,
      features: { size: false, disableUserns: false },
    });
  });
});
