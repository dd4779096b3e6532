import { Readable } from "node:stream";
import fc from "fast-check";
import { extract, pack } from "tar-stream";
import { beforeEach, describe, expect, it } from "vitest";
import { Collector } from "../../../lib/executor/runner/collector.ts";
import { packageTar, tarHeader } from "../../../lib/executor/runner/package-tar.ts";
import { maxExtendedHeaderBytes } from "../../../lib/executor/runner/tar-reader.ts";
import type { CollectLimits } from "../../../lib/executor/turn-protocol.ts";
import { packageFile } from "../../../lib/firewall/keys.ts";
import { sha256Hex } from "../../../lib/tasks/canonical.ts";
import { MemoryStore } from "../support/memory-store.ts";

const attempt = "abcdefghijklmnopqrstuvwxyz";
const prefix = `evidence:attempts/${attempt}/01/turn-01/`;
let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const collector = (limits: Partial<CollectLimits> = {}): Collector =>
  new Collector({ objects: store, try: { attempt, try: 1 }, turn: 1, limits });

/** One entry as bytes. `type` is the flag of its header; `size` is what the header claims. */
function entry(
  name: string | Buffer,
  content: string | Buffer = "",
  options: { type?: string; size?: number } = {},
): Buffer {
  const body = Buffer.from(content as string);
  const header = Buffer.alloc(512);
  Buffer.from(name as string).copy(header, 0, 0, 100);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${(options.size ?? body.length).toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write(options.type ?? "0", 156);
  header.write("ustar\x0000", 257, "latin1");
  return Buffer.concat([signed(header), body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}
function signed(header: Buffer): Buffer {
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
function pax(records: Record<string, string>): Buffer {
  const text = Object.entries(records)
    .map(([key, value]) => {
      const rest = ` ${key}=${value}\n`;
      let length = Buffer.byteLength(rest) + 1;
      while (String(length).length + Buffer.byteLength(rest) !== length) length++;
      return `${length}${rest}`;
    })
    .join("");
  return entry("PaxHeader", text, { type: "x" });
}
const end = entry("_end.json", JSON.stringify({ v: 1, files: 0, bytes: 0, skipped: [] }));
const zeros = Buffer.alloc(1024);
const stream = (...parts: Buffer[]): Readable => Readable.from(parts, { objectMode: false });
const take = (parts: Buffer[], limits: Partial<CollectLimits> = {}) =>
  collector(limits).take(stream(...parts, end, zeros));
const stored = (): string[] =>
  [...store.objects.keys()].map((key) => {
    expect(key.startsWith(prefix)).toBe(true);
    return key.slice(prefix.length);
  });

describe("the collector takes", () => {
  it("files as they are, with their hash", async () => {
    const { files, cut, skipped } = await take([entry("results/a.txt", "one"), entry("./results/b/c", "two")]);
    expect(cut).toBeNull();
    expect(skipped).toEqual([]);
    expect(files).toEqual([
      { path: "results/a.txt", bytes: 3, sha256: sha256Hex("one"), kind: "result" },
      { path: "results/b/c", bytes: 3, sha256: sha256Hex("two"), kind: "result" },
    ]);
  });

  it("transcripts apart", async () => {
    const { transcripts, files } = await take([entry("transcript/mini.jsonl", "{}\n")]);
    expect(transcripts.get("mini.jsonl")?.toString()).toBe("{}\n");
    expect(files).toEqual([]);
    expect(stored()).toEqual([]);
  });

  it("large files as a stream, in any pieces", async () => {
    const big = Buffer.alloc(700_001, "xyz");
    const all = Buffer.concat([entry("results/big", big), entry("results/after", "1"), end, zeros]);
    const pieces: Buffer[] = [];
    for (let at = 0; at < all.length; at += 1009) pieces.push(all.subarray(at, at + 1009));
    const { files, cut } = await collector().take(stream(...pieces));
    expect(cut).toBeNull();
    expect(files.map((file) => [file.path, file.bytes, file.sha256])).toEqual([
      ["results/big", 700_001, sha256Hex(big)],
      ["results/after", 1, sha256Hex("1")],
    ]);
  });

  it.each([
    ["a line break", "results/a\nb"],
    ["control characters", "results/\u0001\u001b[31m"],
    ["a backslash and a colon", "results/C:\\x"],
    ["letters of all kinds", "results/日本 ü'\"$"],
    ["dots that lead nowhere", "results/..a/...b"],
  ])("a name with %s, as data", async (_, name) => {
    const { files } = await take([pax({ path: name }), entry("short", "x")]);
    expect(files.map((file) => file.path)).toEqual([name]);
    expect(stored()).toEqual([name]);
  });

  it("what another tar writer makes", async () => {
    const tar = pack();
    tar.entry({ name: `results/${"d".repeat(150)}/${"f".repeat(90)}.txt` }, "long");
    tar.entry({ name: "results/short" }, "short");
    tar.entry({ name: "_end.json" }, JSON.stringify({ v: 1, files: 2, bytes: 9, skipped: [] }));
    tar.finalize();
    const { files, cut } = await collector().take(tar as unknown as AsyncIterable<Buffer>);
    expect(cut).toBeNull();
    expect(files).toHaveLength(2);
  });
});

describe("the collector leaves out, with its reason,", () => {
  it.each<[string, Buffer[], RegExp]>([
    ["symbolic links", [entry("results/l", "", { type: "2" })], /a link/],
    ["hard links", [entry("results/l", "", { type: "1" })], /a link/],
    ["character devices", [entry("results/d", "", { type: "3" })], /a device/],
    ["block devices", [entry("results/d", "", { type: "4" })], /a device/],
    ["FIFOs", [entry("results/f", "", { type: "6" })], /a fifo/],
    ["sparse files", [entry("results/s", "x", { type: "S" })], /sparse/],
    ["sparse files by PAX", [pax({ "GNU.sparse.major": "1" }), entry("results/s", "x")], /sparse/],
    ["entries of unknown type", [entry("results/q", "x", { type: "Q" })], /unknown/],
    ["absolute names", [entry("/etc/passwd", "x")], /absolute/],
    ["names that lead outside", [entry("results/../../x", "x")], /outside/],
    ["names with empty parts", [entry("results//x", "x")], /empty parts/],
    ["names with dots", [entry("results/./x", "x")], /empty parts/],
    ["names of folders for files", [entry("results/x/", "x")], /empty parts/],
    ["names that are not UTF-8", [entry(Buffer.from("results/\xff\xfe", "latin1"), "x")], /UTF-8/],
    ["names with NUL", [pax({ path: "results/a\0b" }), entry("x", "x")], /NUL/],
    ["very long names", [pax({ path: `results/${"x".repeat(900)}` }), entry("x", "x")], /more than 800 bytes/],
    ["deep names", [entry(`results/${"a/".repeat(32)}x`, "x")], /deeper/],
    ["other places", [entry("manifest.json", "x")], /unexpected place/],
    ["other folders", [entry("hidden/eval_rule.md", "x")], /unexpected place/],
    ["a second file of a name", [entry("results/a", "1"), entry("results/a", "2")], /before/],
    ["a folder under a file", [entry("results/a", "1"), entry("results/a/b", "2")], /folder under/],
    ["a file under a folder", [entry("results/a/b", "1"), entry("results/a", "2")], /under the name of a folder/],
    [
      "names with a bomb of a PAX header",
      [entry("p", Buffer.alloc(maxExtendedHeaderBytes + 1, 49), { type: "x" }), entry("results/a", "1")],
      /extended header/,
    ],
    [
      "names with a bomb of a long name",
      [entry("p", Buffer.alloc(maxExtendedHeaderBytes + 1, 65), { type: "L" }), entry("results/a", "1")],
      /extended header/,
    ],
  ])("%s", async (_, parts, reason) => {
    const { skipped, cut } = await take([...parts, entry("results/good", "good")]);
    expect(cut).toBeNull();
    expect(skipped).toHaveLength(1);
    expect(skipped[0]?.reason).toMatch(reason);
    expect(stored()).toContain("results/good");
    expect(stored().length).toBeLessThanOrEqual(2);
  });

  it("files that are too large", async () => {
    const { skipped, files } = await take([entry("results/big", Buffer.alloc(2000)), entry("results/a", "1")], {
      fileBytes: 1000,
    });
    expect(skipped).toMatchObject([{ path: "results/big", reason: /larger than 1000/ }]);
    expect(files).toHaveLength(1);
  });

  it("files beyond the number and the sum", async () => {
    const many = Array.from({ length: 6 }, (_, n) => entry(`results/${n}`, "1234"));
    expect((await take(many, { files: 4 })).skipped).toHaveLength(2);
    store = new MemoryStore();
    const { skipped, files } = await take(many, { bytes: 13 });
    expect(files).toHaveLength(3);
    expect(skipped).toHaveLength(3);
  });

  it.each<[string, Partial<CollectLimits>]>([
    ["number", { files: 2 }],
    ["sum", { bytes: 9 }],
  ])("results beyond their %s, and no transcript for it, wherever it stands", async (_, limits) => {
    const results = Array.from({ length: 6 }, (_, n) => entry(`results/${n}`, "1234"));
    const said = entry("transcript/mini.jsonl", "a line that is longer\n");
    for (const parts of [
      [said, ...results],
      [...results, said],
    ]) {
      store = new MemoryStore();
      const { transcripts, files, skipped } = await take(parts, limits);
      expect(transcripts.get("mini.jsonl")?.toString()).toBe("a line that is longer\n");
      expect(files).toHaveLength(2);
      expect(skipped.map(({ path }) => path)).toEqual(["results/2", "results/3", "results/4", "results/5"]);
    }
  });

  it("transcripts beyond their own number and sum, and no result for it", async () => {
    const parts = [
      ...Array.from({ length: 4 }, (_, n) => entry(`transcript/${n}`, "1234")),
      entry("results/a", Buffer.alloc(100)),
    ];
    for (const limits of [{ transcriptFiles: 3 }, { transcriptBytes: 13 }]) {
      store = new MemoryStore();
      const { transcripts, files, skipped } = await take(parts, limits);
      expect([...transcripts.keys()]).toEqual(["0", "1", "2"]);
      expect(files).toHaveLength(1);
      expect(skipped.map(({ path }) => path)).toEqual(["transcript/3"]);
    }
  });

  it("what makes a key too long", async () => {
    const { skipped } = await take([pax({ path: `results/${"ü".repeat(500)}` }), entry("x", "x")], { nameBytes: 5000 });
    expect(skipped[0]?.reason).toMatch(/key of more than 1024/);
  });

  it("what the turn server left out, by name", async () => {
    const told = entry(
      "_end.json",
      JSON.stringify({ v: 1, files: 0, bytes: 0, skipped: [{ path: "results/l", reason: "a link" }] }),
    );
    expect((await collector().take(stream(told, zeros))).skipped).toEqual([{ path: "results/l", reason: "a link" }]);
  });

  it("more than a manifest can name, as a count", async () => {
    const links = Array.from({ length: 1200 }, (_, n) => entry(`results/${n}`, "", { type: "2" }));
    const { skipped } = await take(links);
    expect(skipped).toHaveLength(1001);
    expect(skipped.at(-1)?.reason).toBe("and 200 more");
  });
});

describe("an archive that is not whole", () => {
  const good = entry("results/a", "1");
  it.each<[string, Buffer[], RegExp]>([
    ["ends early", [good, entry("results/b", Buffer.alloc(5000)).subarray(0, 700)], /ended before/],
    ["ends between entries", [good], /ended before/],
    ["has no last entry", [good, zeros], /_end\.json/],
    ["has a last entry that is no JSON", [good, entry("_end.json", "{"), zeros], /not JSON/],
    ["has a last entry of another form", [good, entry("_end.json", "{}"), zeros], /not what/],
    ["has a header with a wrong checksum", [good, Buffer.alloc(512, 7), end], /checksum/],
    ["has a negative size", [good, negative(), end], /no number/],
    ["has a PAX header that is malformed", [good, entry("p", "9 a\n", { type: "x" }), end], /PAX/],
    ["has a PAX size that is none", [good, pax({ size: "-5" }), entry("results/b", "1"), end], /PAX size/],
    ["has extended headers without end", [good, ...Array.from({ length: 10 }, () => pax({ path: "x" }))], /too many/],
    ["is no archive", [Buffer.from("<html>".repeat(200))], /checksum/],
    ["is empty", [], /ended before/],
  ])("because it %s gives what came", async (_, parts, reason) => {
    const { cut, files } = await collector().take(stream(...parts));
    expect(cut?.reason).toMatch(reason);
    expect(cut?.again).toBe(true);
    expect(files.length).toBe(parts[0] === good ? 1 : 0);
  });

  it("goes on with what is missing when it is asked for again", async () => {
    const big = Buffer.alloc(400_000, 5);
    const all = Buffer.concat([good, entry("results/big", big), entry("results/c", "3"), end, zeros]);
    const taking = collector();
    const first = await taking.take(stream(all.subarray(0, 200_000)));
    expect(first.cut).not.toBeNull();
    expect(stored()).toEqual(["results/a"]);
    const second = await taking.take(stream(all));
    expect(second.cut).toBeNull();
    expect(second.files.map((file) => file.path)).toEqual(["results/a", "results/big", "results/c"]);
  });

  it("does not lose the transcript of an earlier one", async () => {
    const said = entry("transcript/mini.jsonl", "{}\n");
    const taking = collector();
    await taking.take(stream(said, good));
    const second = await taking.take(stream(said.subarray(0, 514)));
    expect(second.cut).not.toBeNull();
    expect(second.transcripts.get("mini.jsonl")?.toString()).toBe("{}\n");
  });

  it("and claims more than there can be is given up, and not asked for again", async () => {
    async function* endless(): AsyncGenerator<Buffer> {
      yield entry("results/huge", "", { size: 8 ** 11 - 1 });
      for (;;) yield Buffer.alloc(8 * 1024 ** 2);
    }
    const { cut, files } = await collector({ bytes: 1024 }).take(endless());
    expect(cut).toMatchObject({ again: false, reason: /more than/ });
    expect(files).toEqual([]);
  });

  it("whatever its bytes, never throws and never stores outside", async () => {
    const base = Buffer.concat([pax({ path: "results/long" }), entry("x", "1"), entry("results/b", "2"), end, zeros]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 12 }), async (changes) => {
        store = new MemoryStore();
        const bytes = Buffer.from(base);
        for (const [at, value] of changes) bytes[at] = value;
        await collector().take(stream(bytes));
        for (const name of stored()) expect(name.startsWith("results/")).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});

function negative(): Buffer {
  const header = entry("results/n", "").subarray(0, 512);
  header.fill(0xff, 124, 136);
  return signed(header);
}

describe("a store that fails", () => {
  it.each([10, 500_000])("while %i bytes are written is told as what it is", async (bytes) => {
    store.failCreate = () => "no_space";
    await expect(take([entry("results/a", Buffer.alloc(bytes))])).rejects.toMatchObject({ code: "no_space" });
  });

  it("for a name that it cannot hold skips that file alone", async () => {
    store.failCreate = (key) => (key.endsWith("bad") ? "bad_key" : null);
    const { skipped, files } = await take([entry("results/bad", "1"), entry("results/good", "1")]);
    expect(skipped).toMatchObject([{ path: "results/bad" }]);
    expect(files).toHaveLength(1);
  });
});

describe("the package's tar", () => {
  it("is read by another tar reader, long names, odd names and large files included", async () => {
    const digest = "d".repeat(64);
    const contents = new Map<string, Buffer>([
      ["request.md", Buffer.from("do it")],
      [`sources/${"long/".repeat(60)}ü.txt`, Buffer.from("x")],
      ["sources/big.bin", Buffer.alloc(300_000, 9)],
      ["sources/empty", Buffer.alloc(0)],
      ["sources/block", Buffer.alloc(512, 1)],
    ]);
    for (const [path, body] of contents) await store.create(packageFile("t", digest, "agent", path), body);
    await store.create(packageFile("t", digest, "hidden", "references/eval_rule.md"), "hidden");
    const found = new Map<string, Buffer>();
    const reader = extract();
    packageTar(store, "t", digest).pipe(reader);
    for await (const file of reader) {
      const parts: Buffer[] = [];
      for await (const part of file) parts.push(part as Buffer);
      found.set(file.header.name, Buffer.concat(parts));
    }
    expect(found).toEqual(contents);
  });

  it("of a package that is not there is an error", async () => {
    const tar = packageTar(store, "t", "e".repeat(64));
    await expect(
      (async () => {
        for await (const _ of tar) {
          // Nothing is expected.
        }
      })(),
    ).rejects.toThrow(/no agent part/);
  });

  it("has headers of whole blocks", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 400, unit: "grapheme" }), fc.nat(), (name, bytes) => {
        expect(tarHeader(name, bytes).length % 512).toBe(0);
      }),
      { numRuns: 50 },
    );
  });
});
