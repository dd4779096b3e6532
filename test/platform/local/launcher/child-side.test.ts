import { describe, expect, it } from "vitest";
import { startChild } from "../../../../lib/platform/local/launcher/child-side.ts";

const shell = (script: string) =>
  startChild({ command: "/bin/sh", args: ["-c", script], env: {}, firstLine: "secret", graceMs: 100 });

describe("a side of an executor", () => {
  it("that does not leave when it is told to is killed, and not taken for one that ran out of memory", async () => {
    const side = await shell("exec sleep 1000");
    await side.end();
    expect(await side.ended).toEqual({ code: null, signal: null, said: "" });
  });

  it("that is killed from elsewhere says so", async () => {
    const side = await shell("echo last >&2; kill -9 $$");
    expect(await side.ended).toMatchObject({ code: null, signal: "SIGKILL" });
  });

  it("that leaves tells its exit code", async () => {
    const side = await shell("read line; read more; exit 7");
    await side.end();
    expect(await side.ended).toMatchObject({ code: 7, signal: null });
  });
});
