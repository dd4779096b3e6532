import { describe, expect, it } from "vitest";
import { InvalidOutput, TokenTable } from "../../../../lib/platform/local/interpreter/tokens.ts";
import { named, ScriptedRandom, type Setting, setting } from "./setting.ts";

/** A machine that waits for its token; `open` is called with the token and decides what happens. */
function waiting(open: (token: string, world: Setting) => unknown, fields: Record<string, unknown> = {}): Setting {
  const world: Setting = setting(
    {
      Turn: {
        Type: "Task",
        Resource: "arn:aws:states:::lambda:invoke.waitForTaskToken",
        Arguments: { FunctionName: "open", Payload: { token: "{% $states.context.Task.Token %}" } },
        Catch: [{ ErrorEquals: ["States.ALL"], Output: { caught: "{% $states.errorOutput %}" }, Next: "End" }],
        Next: "End",
        ...fields,
      },
      End: { Type: "Succeed" },
    },
    { functions: { open: ({ token }: { token: string }) => open(token, world) } },
  );
  return world;
}

describe("a task that waits for its token", () => {
  it("gives the answer as its result, whatever the function gave", async () => {
    const world = waiting((token, { clock, workflow }) => {
      void clock.sleep(3_600_000).then(() => workflow.tokens.succeed(token, { turn: 1 }));
      return "posted";
    });
    expect(await world.run()).toMatchObject({ status: "SUCCEEDED", output: { turn: 1 } });
    expect(world.seconds()).toBe(3600);
    expect(world.workflow.tokens.size).toBe(0);
  });

  it("takes an answer that comes before the function has returned, and lets its late failure be", async () => {
    const world = waiting(async (token, { workflow }) => {
      expect(await workflow.tokens.succeed(token, "early")).toBe("accepted");
      throw named("TooLate");
    });
    expect(await world.run()).toMatchObject({ output: "early" });
  });

  it("fails with the error that was answered", async () => {
    const world = waiting((token, { workflow }) =>
      workflow.tokens.fail(token, "Proctor.Interrupted", "spot".repeat(10_000)),
    );
    expect(await world.run()).toMatchObject({
      output: { caught: { Error: "Proctor.Interrupted", Cause: "spot".repeat(32_768 / 4) } },
    });
  });

  it("fails when its function fails, and closes the token", async () => {
    let kept = "";
    const world = waiting((token) => {
      kept = token;
      throw named("Lambda.TooManyRequestsException");
    });
    expect(await world.run()).toMatchObject({ output: { caught: { Error: "Lambda.TooManyRequestsException" } } });
    expect(await world.workflow.tokens.succeed(kept, 1)).toBe("closed");
  });

  it("has a new token for each retry; the old one is closed", async () => {
    const tokens: string[] = [];
    const world = waiting(
      (token, { workflow }) => {
        tokens.push(token);
        if (tokens.length === 1) return workflow.tokens.fail(token, "Again", "");
        return workflow.tokens.succeed(tokens[0] as string, "old").then(async (state) => {
          await workflow.tokens.succeed(token, { state });
        });
      },
      { Retry: [{ ErrorEquals: ["Again"] }] },
    );
    expect(await world.run()).toMatchObject({ output: { state: "closed" } });
    expect(new Set(tokens).size).toBe(2);
  });

  it("answers a second, a late and a made-up token with closed", async () => {
    const states: string[] = [];
    const world = waiting(async (token, { workflow }) => {
      states.push(await workflow.tokens.succeed(token, 1), await workflow.tokens.succeed(token, 2));
      states.push(await workflow.tokens.fail(token, "E", ""), await workflow.tokens.heartbeat(token));
    });
    expect(await world.run()).toMatchObject({ output: 1 });
    expect(states).toEqual(["accepted", "closed", "closed", "closed"]);
    expect(await world.workflow.tokens.succeed("made-up", 1)).toBe("closed");
  });

  it("is lost when no heartbeat comes", async () => {
    const world = waiting(
      async (token, { clock, workflow }) => {
        for (let beat = 0; beat < 3; beat++) {
          await clock.sleep(50_000);
          expect(await workflow.tokens.heartbeat(token)).toBe("accepted");
        }
      },
      { HeartbeatSeconds: "{% 60 %}", TimeoutSeconds: 1000 },
    );
    expect(await world.run()).toMatchObject({ output: { caught: { Error: "States.HeartbeatTimeout" } } });
    expect(world.seconds()).toBe(150 + 60);
  });

  it("is kept by what came while the process was stopped, which it reads when it goes on", async () => {
    let now = 0;
    const timers: (() => void)[] = [];
    const sleep = (): Promise<void> => new Promise((resolve) => timers.push(resolve));
    const goOnAfter = async (ms: number): Promise<void> => {
      now += ms;
      for (const fire of timers.splice(0)) fire();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const table = new TokenTable({ now: () => now, sleep }, new ScriptedRandom());
    const signal = new AbortController().signal;
    const waits = ["kept", "lost"].map((token) => table.wait(token, 60, signal).catch((error: Error) => error));
    await goOnAfter(600_000);
    expect(await table.heartbeat("kept")).toBe("accepted");
    await goOnAfter(2000);
    expect(await waits[1]).toMatchObject({ error: "States.HeartbeatTimeout" });
    expect(await table.succeed("kept", "late")).toBe("accepted");
    expect(await waits[0]).toMatchObject({ value: "late" });
  });

  it("is not kept beyond its timeout by heartbeats", async () => {
    const world = waiting(
      async (token, { clock, workflow }) => {
        while ((await workflow.tokens.heartbeat(token)) === "accepted") await clock.sleep(10_000);
      },
      { HeartbeatSeconds: 60, TimeoutSeconds: 95 },
    );
    expect(await world.run()).toMatchObject({ output: { caught: { Error: "States.Timeout" } } });
    expect(world.workflow.tokens.size).toBe(0);
  });

  it("answers after a lost heartbeat, a timeout or an abort with closed", async () => {
    let kept = "";
    const keep = (token: string): void => {
      kept = token;
    };
    const lost = waiting(keep, { HeartbeatSeconds: 5, TimeoutSeconds: 10 });
    await lost.run();
    expect(await lost.workflow.tokens.succeed(kept, 1)).toBe("closed");
    const late = waiting(keep, { TimeoutSeconds: 10 });
    await late.run();
    expect(await late.workflow.tokens.succeed(kept, 1)).toBe("closed");
    const aborted = waiting(keep);
    const { result } = await aborted.begin();
    await aborted.clock.sleep(1000);
    await aborted.workflow.stop("main", "one", "Stopped", "by hand");
    expect(await result).toMatchObject({ status: "ABORTED", error: "Stopped", cause: "by hand" });
    expect(await aborted.workflow.tokens.succeed(kept, 1)).toBe("closed");
  });

  it("refuses an answer over 256 KiB or without JSON and stays open", async () => {
    const world = waiting(async (token, { workflow }) => {
      await expect(workflow.tokens.succeed(token, "x".repeat(256 * 1024))).rejects.toThrow(InvalidOutput);
      await expect(workflow.tokens.succeed(token, 1n)).rejects.toThrow(InvalidOutput);
      await workflow.tokens.succeed(token, "x".repeat(256 * 1024 - 2));
    });
    expect(await world.run()).toMatchObject({ status: "SUCCEEDED" });
  });
});
