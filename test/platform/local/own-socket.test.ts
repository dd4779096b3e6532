import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listenAt } from "../../../lib/platform/local/own-socket.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "own-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A server that says its name to whoever connects. */
const named = (name: string): Server => createServer((socket) => socket.end(name));

function heard(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect(path)
      .on("data", (part) => {
        text += part;
      })
      .on("end", () => resolve(text))
      .on("error", reject);
  });
}

it("a server that closes late leaves the socket of its successor alone", async () => {
  const path = join(folder, "s");
  const closeFirst = await listenAt(named("first"), path);
  expect(await heard(path)).toBe("first");
  const closeSecond = await listenAt(named("second"), path);
  await closeFirst();
  expect(await heard(path)).toBe("second");
  await closeSecond();
  expect(existsSync(path)).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

it("a path that cannot be made is an error", async () => {
  await expect(listenAt(named("x"), join(folder, "no", "s"))).rejects.toThrow(/ENOENT|EACCES/);
});
