/**
 * What an agent sees from inside bubblewrap, as bubblewrap's arguments. A root of its own, in memory; the system's
 * programs, read-only; its own two folders on disk; three of our bundles; a folder with the gateway's socket. Nothing of
 * the repository, of runs/, of other attempts.
 *
 * With `web` the network is the host's: a service of this machine that listens on loopback or on an abstract Unix socket
 * can be reached, as from any program of this user. Ours listen on sockets with a path, which no sandbox can see, but
 * for one loopback port of each sandbox, and the gateway behind it asks for its try's key. /proc/net/unix names the
 * paths of the host's sockets; ours are random, and a path that is not mounted cannot be opened.
 */
import { execFile } from "node:child_process";
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Network } from "../../../attempt/vocabulary.ts";
import { sandboxBundles } from "./bundles.ts";
import type { ExecutorFolder } from "./session.ts";

/** Options that older bubblewraps lack. */
export interface BwrapFeatures {
  /** --size, since 0.7. */
  size: boolean;
  /** --disable-userns, since 0.8. */
  disableUserns: boolean;
}

export function featuresOf(help: string): BwrapFeatures {
  return { size: help.includes("--size "), disableUserns: help.includes("--disable-userns") };
}

/** Where things stand inside. */
export const inside = {
  workspace: "/tmp_workspace",
  home: "/root",
  ours: "/opt/proctor",
  node: "/opt/proctor/bin/node",
  gateway: "/run/proctor",
} as const;

/** Made once for a launcher. */
export interface SandboxSystem {
  features: BwrapFeatures;
  /** Arguments that are the same for all. */
  common: string[];
  /** Command line in front of an agent's own. */
  guard: string[];
}

/** Never all of /etc/ssl or /etc/pki: private keys stand there, and whoever runs us as root could read them. */
const etc = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "crypto-policies",
  "debian_version",
  "fonts",
  "host.conf",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "magic",
  "mime.types",
  "os-release",
  "perl",
  "pki/ca-trust/extracted",
  "pki/tls/cert.pem",
  "pki/tls/certs",
  "pki/tls/openssl.cnf",
  "profile",
  "protocols",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
];

const ownFiles: Record<string, string> = {
  "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
  "etc/group": "root:x:0:\nnogroup:x:65534:\n",
  "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "etc/hostname": "sandbox\n",
  "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  "opt/proctor/package.json": '{"type":"module"}\n',
};

const rootBytes = 64 * 1024 ** 2;
const temporaryBytes = 1024 ** 3;
const sharedMemoryBytes = 256 * 1024 ** 2;

const agentProcesses = 4096;

/**
 * What an agent is started through, where util-linux has it: a limit on its processes, no core files, and the end of
 * the capability that its turn server keeps.
 */
async function agentGuard(): Promise<string[]> {
  const usable = async (name: string, option: string): Promise<string | null> => {
    const path = `/usr/bin/${name}`;
    if (!existsSync(path)) return null;
    return (await helpOf(path)).includes(option) ? path : null;
  };
  const [prlimit, setpriv] = await Promise.all([usable("prlimit", "--nproc"), usable("setpriv", "--bounding-set")]);
  return [
    ...(prlimit === null ? [] : [prlimit, `--nproc=${agentProcesses}:${agentProcesses}`, "--core=0:0", "--"]),
    ...(setpriv === null
      ? []
      : [setpriv, "--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all", "--"]),
  ];
}

function helpOf(path: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(path, ["--help"], { timeout: 5000 }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

/**
 * Looks at the system once.
 *
 * @param files folder for the few files that a sandbox has of its own
 * @param bundles folder of our bundles
 * @param hide folders that no sandbox may see, also where they stand below a folder that it sees
 */
export async function sandboxSystem(
  features: BwrapFeatures,
  { files, bundles, hide }: { files: string; bundles: string; hide: string[] },
): Promise<SandboxSystem> {
  const common = [
    ...["--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-ipc", "--unshare-uts"],
    ...["--unshare-cgroup-try", "--hostname", "sandbox", "--die-with-parent", "--new-session"],
    ...(features.disableUserns ? ["--disable-userns"] : []),
    // The one capability keeps the agent out of its turn server: lib/executor/turn-server/process-scope.ts.
    ...["--cap-drop", "ALL", "--cap-add", "CAP_SETPCAP"],
    ...(features.size ? ["--size", String(rootBytes), "--tmpfs", "/"] : []),
    ...["--ro-bind", "/usr", "/usr"],
  ];
  for (const top of ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]) {
    if (!existsSync(top)) continue;
    common.push(...(lstatSync(top).isSymbolicLink() ? ["--symlink", readlinkSync(top), top] : ["--ro-bind", top, top]));
  }
  for (const name of etc) {
    const path = `/etc/${name}`;
    // Bound by its real path: a link may lead to where the sandbox has nothing.
    if (existsSync(path)) common.push("--ro-bind", realpathSync(path), path);
  }
  for (const [name, text] of Object.entries(ownFiles)) {
    const path = join(files, name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, text);
    common.push("--ro-bind", path, `/${name}`);
  }
  common.push("--ro-bind", realpathSync(process.execPath), inside.node);
  for (const name of sandboxBundles) {
    if (existsSync(join(bundles, name))) common.push("--ro-bind", join(bundles, name), `${inside.ours}/${name}`);
  }
  for (const path of hide.filter((hidden) => isBelow(hidden, "/usr"))) common.push("--tmpfs", path);
  common.push("--proc", "/proc", "--dev", "/dev");
  const memory = { "/tmp": temporaryBytes, "/dev/shm": sharedMemoryBytes };
  for (const [path, bytes] of Object.entries(memory)) {
    common.push(...(features.size ? ["--size", String(bytes)] : []), "--tmpfs", path);
  }
  common.push("--symlink", "/tmp", "/var/tmp");
  return { features, common, guard: await agentGuard() };
}

/** Arguments for one executor, in front of the command. */
export function sandboxArguments(system: SandboxSystem, network: Network, folder: ExecutorFolder | null): string[] {
  const args = [...system.common];
  // Not even loopback is shared where a task asks for no network.
  if (network !== "web") args.push("--unshare-net");
  else if (existsSync("/etc/resolv.conf")) args.push("--ro-bind", realpathSync("/etc/resolv.conf"), "/etc/resolv.conf");
  if (folder !== null) {
    args.push("--bind", folder.workspace, inside.workspace, "--bind", folder.home, inside.home);
    args.push("--ro-bind", folder.gatewayFolder, inside.gateway);
  }
  const env: Record<string, string> = {
    PATH: `${inside.ours}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: inside.home,
    TMPDIR: "/tmp",
    LANG: "C.UTF-8",
  };
  for (const [name, value] of Object.entries(env)) args.push("--setenv", name, value);
  args.push("--chdir", folder === null ? "/" : inside.workspace);
  return args;
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder + sep);
}
