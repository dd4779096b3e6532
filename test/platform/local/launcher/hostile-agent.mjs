// Prints all that it can see from where it runs: run as an agent, with paths to look at as arguments.
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statSync } from "node:fs";
import { connect } from "node:net";

const say = (what, text) => console.log(`## ${what}\n${text}`);
const attempt = (what, look) => {
  try {
    say(what, look());
  } catch (error) {
    console.log(`-- ${what}: ${error.code ?? error.message}`);
  }
};
const text = (path) => {
  // Some files of /proc never end, and some block.
  const file = openSync(path, "r");
  try {
    const part = Buffer.alloc(200_000);
    return part.subarray(0, readSync(file, part, 0, part.length, null)).toString("latin1");
  } finally {
    closeSync(file);
  }
};

say("environment", JSON.stringify(process.env));
for (const name of ["status", "mountinfo", "cgroup"]) attempt(`self ${name}`, () => text(`/proc/self/${name}`));
// In a sandbox every process there is; without one, its turn server alone: the others are not the test's business.
const every = () => readdirSync("/proc").filter((name) => /^\d+$/.test(name));
for (const pid of process.env.PROCESSES === "all" ? every() : [String(process.ppid)]) {
  for (const name of ["cmdline", "environ", "maps", "stack"])
    attempt(`${pid} ${name}`, () => text(`/proc/${pid}/${name}`));
  attempt(`${pid} links`, () => `${readlinkSync(`/proc/${pid}/cwd`)} ${readlinkSync(`/proc/${pid}/root`)}`);
  attempt(`${pid} fd`, () =>
    readdirSync(`/proc/${pid}/fd`)
      .map((fd) => `${fd}=${readlinkSync(`/proc/${pid}/fd/${fd}`)}`)
      .join(" "),
  );
  if (Number(pid) === process.pid) continue;
  attempt(`${pid} memory`, () => {
    closeSync(openSync(`/proc/${pid}/mem`, "r"));
    const found = [];
    for (const [, from, to] of text(`/proc/${pid}/maps`).matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)) {
      const memory = openSync(`/proc/${pid}/mem`, "r");
      try {
        const part = Buffer.alloc(Math.min(4_000_000, Number.parseInt(to, 16) - Number.parseInt(from, 16)));
        readSync(memory, part, 0, part.length, Number.parseInt(from, 16));
        found.push(...(part.toString("latin1").match(/canary[\w-]{0,80}/g) ?? []));
      } catch {
        // The next one.
      }
      closeSync(memory);
    }
    return found.join(" ");
  });
}

const walk = (folder, depth) => {
  let names = [];
  try {
    names = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    console.log(`-- ${folder}: ${error.code}`);
  }
  for (const entry of names) {
    const path = `${folder === "/" ? "" : folder}/${entry.name}`;
    console.log(`:: ${path}`);
    if (entry.isDirectory() && depth < 6 && !["/proc", "/sys", "/usr", "/dev"].includes(path)) walk(path, depth + 1);
    else if (entry.isFile() && statSync(path).size < 100_000)
      attempt(`file ${path}`, () => readFileSync(path, "latin1"));
  }
};
for (const start of JSON.parse(process.env.WALK ?? '["/"]')) walk(start, 0);

for (const path of process.argv.slice(2)) {
  attempt(`asked for ${path}`, () => (statSync(path).isDirectory() ? readdirSync(path).join(" ") : text(path)));
}

const reach = (to, question) =>
  new Promise((resolve) => {
    let heard = "";
    const socket = connect(to);
    const end = (what) => {
      socket.destroy();
      resolve(`${JSON.stringify(to)}: ${what} ${heard}`);
    };
    socket.setTimeout(300, () => end("silence"));
    socket.on("connect", () => socket.write(question));
    socket.on("data", (part) => {
      heard += part.toString("latin1").slice(0, 2000);
    });
    socket.on("error", (error) => end(error.code));
    socket.on("close", () => end("answered"));
  });
const hello = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
attempt("tcp", () => text("/proc/net/tcp") + text("/proc/net/tcp6"));
attempt("unix sockets", () => text("/proc/net/unix"));
// It names everything, but calls at none but ours: other services of this machine are not the test's business.
const named = [...text("/proc/net/unix").matchAll(/ ([@/]\S*(?:proctor-|fire-)\S*)$/gm)].map(([, path]) =>
  path.replace(/^@/, "\0"),
);
for (const path of new Set([...named, ...JSON.parse(process.env.SOCKETS ?? "[]")]))
  console.log(await reach({ path }, ""));
for (const port of JSON.parse(process.env.PORTS ?? "[]")) console.log(await reach({ port, host: "127.0.0.1" }, hello));
console.log("## end of the search");
