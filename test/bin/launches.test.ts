import { describe, expect, it } from "vitest";
import { Launches } from "../../bin/engine/launches.ts";
import type { LaunchedExecutor } from "../../lib/platform/ports.ts";
import { spec } from "../platform/local/launcher/spec.ts";

/** A launcher whose launches are answered by the test. */
function world() {
  const answers: { resolve(executor: LaunchedExecutor): void; reject(error: Error): void }[] = [];
  const stopped: string[] = [];
  const launches = new Launches({
    launch: () => new Promise((resolve, reject) => answers.push({ resolve, reject })),
    stop: async (id, reason) => void stopped.push(`${id}: ${reason}`),
  });
  return { launches, answers, stopped };
}

const { startedBy } = spec("m");
const executor = (id: string): LaunchedExecutor => ({ id, isolation: "none" });

describe("launches", () => {
  it("stop what was started for a try, and nothing of another", async () => {
    const { launches, answers, stopped } = world();
    const own = launches.launch(spec("m1"));
    const other = launches.launch(spec("m2", { startedBy: startedBy.replace("01", "02") }));
    answers[0]?.resolve(executor("e1"));
    answers[1]?.resolve(executor("e2"));
    await Promise.all([own, other]);
    expect(await launches.stopAll(startedBy, "aborted")).toBe(1);
    expect(stopped).toEqual(["e1: aborted"]);
  });

  it("stop an executor that is still starting as soon as it has", async () => {
    const { launches, answers, stopped } = world();
    const launched = launches.launch(spec("m"));
    const stopping = launches.stopAll(startedBy, "aborted");
    expect(stopped).toEqual([]);
    answers[0]?.resolve(executor("e1"));
    await launched;
    expect(await stopping).toBe(1);
    expect(stopped).toEqual(["e1: aborted"]);
  });

  it("forget what ended and what never started", async () => {
    const { launches, answers, stopped } = world();
    const ended = launches.launch(spec("m1"));
    answers[0]?.resolve(executor("e1"));
    await ended;
    launches.forget(startedBy, "e1");
    const failed = launches.launch(spec("m2"));
    answers[1]?.reject(new Error("no room"));
    await expect(failed).rejects.toThrow("no room");
    expect(await launches.stopAll(startedBy, "aborted")).toBe(0);
    expect(stopped).toEqual([]);
  });
});
