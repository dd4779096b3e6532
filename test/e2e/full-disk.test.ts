/** A disk that fills up under a sweep, for real: what was finished stays as it is, and the same command goes on. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { bubblewrap, describeWithBubblewrap } from "../bubblewrap.ts";
import { proctorBundle, rubric, type SweepFolder, storedRows, sweepFolder } from "./sweep-folder.ts";

const attempts = 4;

function sweepOf(command: string): { folder: SweepFolder; small: string; run: string } {
  const folder = sweepFolder();
  folder.packages.add("t", {
    fields: "codex: {max_user_followups: 0}",
    files: {
      "references/eval_rule.md": rubric(),
      "references/checks.yaml": stringify({
        checkpoints: [{ id: "CP1", weight: 1, check: { kind: "file_exists", file: "results/a.txt" } }],
      }),
    },
  });
  const tools = [{ name: "bash", arguments: { command } }];
  folder.script("m", "executor", [{ tools }, { text: "I have finished the request." }]);
  const models = [{ name: "m", provider: "scripted" }];
  const file = folder.sweep({ models, epochs: attempts, limits: { concurrency: 2 } });
  folder.write("small/.keep", "");
  const small = join(folder.path, "small");
  return { folder, small, run: `'${process.execPath}' '${proctorBundle}' run '${file}' --json --runs '${small}/runs'` };
}

/** Runs a script with a disk of so many bytes at `small`, and keeps what is on it at the end. */
function onSmallDisk(folder: SweepFolder, small: string, bytes: number, script: string): void {
  const keep = `cp -r '${small}/runs' '${folder.path}/runs'`;
  const sandbox = ["--dev-bind", "/", "/", "--size", String(bytes), "--tmpfs", small];
  const done = spawnSync(bubblewrap().path, [...sandbox, "/bin/sh", "-c", `cd '${folder.path}'; ${script}; ${keep}`], {
    encoding: "utf8",
    timeout: 80_000,
  });
  if (done.status !== 0) throw new Error(`${done.signal} ${done.stderr}`);
}

const told = (folder: SweepFolder, name: string): string => readFileSync(join(folder.path, name), "utf8");

describeWithBubblewrap("a disk that fills up", () => {
  const folders: SweepFolder[] = [];
  afterAll(() => {
    for (const folder of folders) folder.remove();
  });

  const hashes = (small: string, to: string): string =>
    `(cd ${small}/runs/objects/evidence && find attempts -name manifest.json | sort | xargs -r sha256sum) > ${to}`;

  it("with the evidence loses no finished attempt, and runs the others when there is room", () => {
    const { folder, small, run } = sweepOf("mkdir -p results; head -c 400000 /dev/urandom > results/a.txt");
    folders.push(folder);
    onSmallDisk(
      folder,
      small,
      10_000_000,
      `head -c 8600000 /dev/zero > ${small}/ballast
       ${run} > first.json 2> first.err; echo $? > first.code; ${hashes(small, "before")}
       rm ${small}/ballast
       ${run} > second.json 2> second.err; echo $? > second.code; ${hashes(small, "after")}`,
    );
    const first = JSON.parse(told(folder, "first.json"));
    expect(told(folder, "first.code")).toBe("1\n");
    expect(first.statuses.pass).toBeGreaterThan(0);
    expect(first.statuses.infra_error).toBe(attempts - first.valid);
    const full = /the disk is full \(ENOSPC\), make room and run the same again/;
    expect(told(folder, "first.err")).toMatch(full);
    for (const row of storedRows(folder)) if (!row.valid) expect(row.reason).toMatch(full);
    expect(told(folder, "second.code")).toBe("0\n");
    expect(JSON.parse(told(folder, "second.json")).statuses).toEqual({ pass: attempts });
    for (const line of told(folder, "before").trim().split("\n")) expect(told(folder, "after")).toContain(line);
    expect(storedRows(folder)).toHaveLength(attempts + first.statuses.infra_error);
  }, 90_000);

  it("to the last byte, so that no row can be written either, says so, and goes on when there is room", () => {
    const { folder, small, run } = sweepOf("mkdir -p results; sleep 1; echo a > results/a.txt");
    folders.push(folder);
    onSmallDisk(
      folder,
      small,
      4_000_000,
      `${run} > first.json 2> first.err & 
       until grep -q '/${attempts}. pass' first.err; do sleep 0.05; done
       cat /dev/zero > ${small}/ballast 2> /dev/null; ${hashes(small, "before")}
       until grep -q 'disk is full' first.err || ! kill -0 $!; do sleep 0.1; done
       rm ${small}/ballast; wait $!; echo $? > first.code
       ${run} > second.json 2> second.err; echo $? > second.code; ${hashes(small, "after")}`,
    );
    expect(told(folder, "first.err")).toMatch(
      /^trouble: .*scores\.sqlite can not be written: the disk is full; make room/m,
    );
    expect(told(folder, "second.code")).toBe("0\n");
    expect(JSON.parse(told(folder, "second.json")).statuses).toEqual({ pass: attempts });
    const before = told(folder, "before").trim().split("\n");
    expect(before.length).toBeGreaterThan(0);
    for (const line of before) expect(told(folder, "after")).toContain(line);
    const valid = storedRows(folder).filter((row) => row.valid);
    expect(new Set(valid.map((row) => row.attempt)).size).toBe(attempts);
    expect(valid).toHaveLength(attempts);
  }, 90_000);
});
