import { describe, expect, it } from "vitest";
import { headAndTail, partsOf } from "../../lib/trajectory/chunking.ts";
import { openView } from "../../lib/trajectory/evidence-view.ts";
import { binaryKind, decodeText, safeText } from "../../lib/trajectory/plain-text.ts";
import { putTurn, roleWorld, type TurnContent } from "../support/role-world.ts";

async function view(turn1: TurnContent, turn2?: TurnContent, hidden = true) {
  const world = roleWorld(undefined, { references: { "truth.json": "secret" } });
  putTurn(world.objects, world.of, 1, turn1);
  if (turn2) putTurn(world.objects, world.of, 2, turn2);
  return openView(world.as(hidden ? "supervisor" : "user-simulator"), {
    of: world.of,
    package: { task: world.line.task, digest: world.line.digest },
    turn: turn2 ? 2 : 1,
    kinds: ["events", "transcript", "result"],
    hidden,
  });
}

describe("a view of evidence", () => {
  it("lists evidence by turn, the request, sources and, where they are shown, references", async () => {
    const listed = (await view({ results: { "a.txt": "1" } }, { results: { "a.txt": "2" } })).list();
    for (const path of [
      "turn-01/results/a.txt",
      "turn-02/results/a.txt",
      "request.md",
      "sources/board.txt",
      "references/truth.json",
    ]) {
      expect(listed).toContain(`"${path}"`);
    }
    expect((await view({}, undefined, false)).list()).not.toContain("references/");
  });

  it("shows only the kinds that it is told to", async () => {
    const listed = (await view({})).list();
    expect(listed).not.toContain("report.json");
  });

  it("pages a long text, each page ending at a line and naming the next offset", async () => {
    const text = Array.from({ length: 9000 }, (_, index) => `line ${index}`).join("\n");
    const shown = await view({ results: { "long.txt": text } });
    let all = "";
    let offset = 0;
    for (;;) {
      const page = await shown.read({ path: "turn-01/results/long.txt", offset });
      const next = /\n\[bytes \d+ to \d+ of \d+; go on with offset (\d+)\]$/.exec(page);
      all += next ? page.slice(0, next.index) : page;
      if (!next) break;
      offset = Number(next[1]);
    }
    expect(all).toBe(text);
  });

  it("shows a transcript over 80 KB as head and tail, and opens the rest in parts", async () => {
    const lines = Array.from({ length: 4000 }, (_, index) => `{"n":${index},"pad":"${"x".repeat(40)}"}`);
    const body = `${lines.join("\n")}\n`;
    const shown = await view({ more: { "transcript.jsonl": { kind: "transcript", body } } });
    const path = "turn-01/transcript.jsonl";
    const first = await shown.read({ path });
    expect(first.length).toBeLessThan(62 * 1024);
    expect(first.startsWith(lines[0]!)).toBe(true);
    expect(first).toContain(lines.at(-1)!);
    expect(first).toMatch(/\n\[bytes \d+ to \d+ of \d+ left out: open them as parts, part 1 to 3\]\n\{/);
    let all = "";
    for (let part = 1; part <= 3; part++) {
      const text = await shown.read({ path, part });
      all += text.slice(text.indexOf("\n") + 1);
    }
    expect(all).toBe(body);
    expect(await shown.read({ path, part: 4 })).toContain("it has 3");
  });

  it("cuts very long lines, each with the offset of its rest", async () => {
    const shown = await view({ results: { "one.txt": `${"a".repeat(20_000)}b` } });
    const page = await shown.read({ path: "turn-01/results/one.txt" });
    const offset = Number(/offset (\d+)\]$/.exec(page)![1]);
    expect(page.length).toBeLessThan(7000);
    expect(await shown.read({ path: "turn-01/results/one.txt", offset: 20_000 })).toBe("b");
    expect(offset).toBe(6000);
  });

  it("says of a binary file what it is, and of an empty one that it is empty", async () => {
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(100)]);
    const shown = await view({ results: { "a.png": png, "b.bin": Buffer.alloc(500, 1), "c.txt": "" } });
    expect(await shown.read({ path: "turn-01/results/a.png" })).toBe("PNG image, 104 bytes: not shown as text");
    expect(await shown.read({ path: "turn-01/results/b.bin" })).toContain("binary file");
    expect(await shown.read({ path: "turn-01/results/c.txt" })).toBe("[empty file]");
  });

  it("searches text files below a prefix, whatever the case, and bounds what it answers", async () => {
    const many = Array.from({ length: 200 }, () => "needle").join("\n");
    const shown = await view({ results: { "a.txt": "first\nA NEEDLE here\n", "b.txt": many } });
    expect(await shown.search({ text: "needle", prefix: "turn-01/results/a" })).toBe(
      "turn-01/results/a.txt:2: A NEEDLE here",
    );
    expect((await shown.search({ text: "needle" })).split("\n")).toHaveLength(41);
    expect(await shown.search({ text: "(a+)+$" })).toContain("nothing holds");
    expect(await shown.search({ text: "solve", prefix: "turn-01/events" })).toMatch(/^turn-01\/events\.jsonl#1: /);
  });

  it("knows which pointers point to something", async () => {
    const shown = await view({ results: { "a.txt": "1", "we#ird.txt": "2" } });
    expect(await shown.pointer("turn-01/results/a.txt")).toBe("turn-01/results/a.txt");
    expect(await shown.pointer("results/a.txt")).toBe("turn-01/results/a.txt");
    expect(await shown.pointer("turn-01/results/we#ird.txt")).toBe("turn-01/results/we#ird.txt");
    expect(await shown.pointer("turn-01/events.jsonl#2")).toBe("turn-01/events.jsonl#2");
    for (const nothing of [
      "turn-01/events.jsonl#9",
      "turn-01/events.jsonl#x",
      "turn-09/results/a.txt",
      "",
      "#1",
      "turn-01/results/a.txt#",
    ]) {
      expect(await shown.pointer(nothing), nothing).toBeNull();
    }
  });

  it("events that are none are left out", async () => {
    const shown = await view({ events: 'not json\n{"v":1}\n\n' });
    expect(await shown.events(1)).toEqual([]);
  });

  it("knows new, changed and removed results from those that stayed", async () => {
    const shown = await view(
      { results: { same: "1", changed: "1", gone: "1" } },
      { results: { same: "1", changed: "2", fresh: "1" } },
    );
    const changed = (pointer: string) => shown.isChangedArtifact(pointer);
    expect(["turn-02/results/changed", "turn-02/results/fresh", "turn-01/results/gone"].map(changed)).toEqual([
      true,
      true,
      true,
    ]);
    expect(
      ["turn-02/results/same", "turn-01/results/same", "turn-02/events.jsonl#1", "sources/board.txt"].map(changed),
    ).toEqual([false, false, false, false]);
  });
});

describe("bytes of unknown origin", () => {
  it("become text that JSON and terminals can take", () => {
    expect(safeText("a\u0000b\u001b[31m\ud800c\u0085\n\t")).toBe("a␀b␛[31m\ufffdc\ufffd\n\t");
    expect(decodeText(Buffer.from([0x61, 0xff, 0x00, 0x62]))).toBe("a\ufffd␀b");
    expect(safeText("😀")).toBe("😀");
  });

  it("a stray NUL or 0xFF does not make a text binary", () => {
    expect(binaryKind(Buffer.from([...Buffer.from("plain text here"), 0x00, 0xff]))).toBeNull();
    expect(binaryKind(new Uint8Array())).toBeNull();
  });
});

describe("parts of a long transcript", () => {
  it("are cut at lines, and inside a line only where it is longer than a part", () => {
    const bytes = Buffer.from(`${"a".repeat(10)}\n${"é".repeat(30)}\nend`);
    const parts = partsOf(bytes, 16);
    expect(parts[0]).toEqual({ start: 0, end: 11 });
    expect(Buffer.concat(parts.map(({ start, end }) => bytes.subarray(start, end))).equals(bytes)).toBe(true);
    for (const { start, end } of parts) {
      expect(end - start).toBeLessThanOrEqual(16);
      expect(bytes.subarray(start, end).toString()).not.toContain("\ufffd");
    }
  });

  it("a head and a tail of one endless line still end between characters", () => {
    const bytes = Buffer.from("世".repeat(50_000));
    const { head, tail } = headAndTail(bytes)!;
    expect(bytes.subarray(head.start, head.end).toString()).not.toContain("\ufffd");
    expect(bytes.subarray(tail.start, tail.end).toString()).not.toContain("\ufffd");
  });

  it("a short one is not cut", () => {
    expect(headAndTail(Buffer.alloc(80 * 1024))).toBeNull();
  });
});
