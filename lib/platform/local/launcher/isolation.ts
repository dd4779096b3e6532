/** Whether this machine can keep an agent in a sandbox, and what may run when it cannot. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Isolation, Network } from "../../../attempt/vocabulary.ts";
import type { ModelChoice } from "../../ports.ts";
import { type BwrapFeatures, featuresOf, sandboxArguments, sandboxSystem } from "./sandbox.ts";
import { ownPrefix } from "./session.ts";

export interface Bubblewrap {
  path: string;
  version: string;
  features: BwrapFeatures;
}

export type IsolationFound =
  | ({ bwrap: true } & Bubblewrap)
  | {
      bwrap: false;
      /** What is in the way, and what to do about it. */
      reason: string;
      remedy: string;
    };

/**
 * What keeps an attempt from running under an isolation, for its user; empty when nothing does.
 *
 * @param modelApi the executor model's
 * @param unisolated whether the user asked for a real model without a sandbox
 */
export function isolationProblems(
  isolation: Isolation,
  network: Network,
  modelApi: ModelChoice["api"],
  unisolated: boolean,
): string[] {
  if (isolation !== "none" || modelApi === "scripted") return [];
  if (network !== "web") {
    return [
      `the task asks for the network "${network}", which nothing enforces without a sandbox; a real model runs it in a sandbox only: install bubblewrap (proctor doctor)`,
    ];
  }
  if (unisolated) return [];
  return [
    "there is no sandbox here, so the agent of a real model could read and change all that you can: install bubblewrap (proctor doctor), or say --unisolated",
  ];
}

/** Really starts a sandbox. PROCTOR_BWRAP names bubblewrap where it is not on PATH. */
export async function detectIsolation(env: NodeJS.ProcessEnv = process.env): Promise<IsolationFound> {
  const path = env.PROCTOR_BWRAP ?? onPath("bwrap", env.PATH ?? "");
  if (process.platform !== "linux") {
    return {
      bwrap: false,
      reason: `bubblewrap is for Linux, this is ${process.platform}`,
      remedy: "run in a Linux machine, or go on without a sandbox, with scripted models",
    };
  }
  if (path === null || !existsSync(path)) {
    return {
      bwrap: false,
      reason: path === null ? "bwrap is not on PATH" : `PROCTOR_BWRAP names ${path}, which is not there`,
      remedy:
        path === null
          ? "install bubblewrap: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)"
          : "unset PROCTOR_BWRAP, or let it name bubblewrap's program",
    };
  }
  const version = (await output(path, ["--version"])).text.trim();
  const features = featuresOf((await output(path, ["--help"])).text);
  const files = await mkdtemp(join(tmpdir(), `${ownPrefix}try-`));
  try {
    const system = await sandboxSystem(features, { files, bundles: files, hide: [] });
    const tried = await output(path, [...sandboxArguments(system, "offline", null), "--", "true"]);
    if (tried.code === 0) return { bwrap: true, path, version, features };
    return { bwrap: false, ...explainFailure(tried.text, kernelFacts()) };
  } finally {
    await rm(files, { recursive: true, force: true });
  }
}

export interface KernelFacts {
  /** AppArmor lets only named programs make user namespaces (Ubuntu 24.04). */
  appArmorRestricts: boolean;
  usernsDisabled: boolean;
  inContainer: boolean;
}

/** Puts a failure of bubblewrap into words, with what to do. */
export function explainFailure(said: string, facts: KernelFacts): { reason: string; remedy: string } {
  const line = said.trim().split("\n").at(-1)?.slice(0, 300) ?? "";
  const reason = `bubblewrap failed: ${line === "" ? "it said nothing" : line}`;
  if (facts.appArmorRestricts && /uid map|user namespace|RTM_NEWADDR|permission|not permitted/i.test(said)) {
    return {
      reason: `${reason} (AppArmor restricts user namespaces, as on Ubuntu 24.04)`,
      remedy:
        "allow bubblewrap: write 'abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' to /etc/apparmor.d/bwrap and run: sudo apparmor_parser -r /etc/apparmor.d/bwrap; or for all programs: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    };
  }
  if (facts.usernsDisabled) {
    return {
      reason: `${reason} (user namespaces are switched off)`,
      remedy: "sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000",
    };
  }
  if (facts.inContainer) {
    return {
      reason: `${reason} (this is a container)`,
      remedy:
        "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined, or with --privileged",
    };
  }
  return { reason, remedy: "see that `bwrap --ro-bind / / --unshare-all true` works, as the user who runs Proctor" };
}

function kernelFacts(): KernelFacts {
  const read = (path: string): string | null => {
    try {
      return readFileSync(path, "utf8").trim();
    } catch {
      return null;
    }
  };
  return {
    appArmorRestricts: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1",
    usernsDisabled:
      read("/proc/sys/kernel/unprivileged_userns_clone") === "0" || read("/proc/sys/user/max_user_namespaces") === "0",
    inContainer: existsSync("/.dockerenv") || existsSync("/run/.containerenv"),
  };
}

function onPath(name: string, path: string): string | null {
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

function output(file: string, args: string[]): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: 20_000, env: {} }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
      resolve({ code, text: error === null ? stdout : `${stdout}${stderr}` || error.message });
    });
  });
}
