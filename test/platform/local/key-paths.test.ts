import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeSegment, folderPath, isPiece, keySegments, objectPath } from "../../../lib/platform/local/key-paths.ts";

/** Segments back from a path of names, as listing puts them together. */
function decodePath(names: readonly string[]): string[] {
  const segments: string[] = [];
  let chain: string[] = [];
  for (const name of names) {
    chain.push(name);
    if (isPiece(name)) continue;
    const decoded = decodeSegment(chain);
    if (!decoded) throw new Error(`not decoded: ${chain.join(" ")}`);
    segments.push(decoded.segment);
    chain = [];
  }
  return segments;
}

const segment = fc
  .oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
    fc.string({
      unit: fc.constantFrom("a", "A", ".", "%", "_", "-", " ", "é", "É", "数", "\ud83d\ude00"),
      minLength: 1,
    }),
  )
  .filter((text) => text !== "." && text !== ".." && !/[/\0\p{Surrogate}]/u.test(text));

describe("keys as paths", () => {
  it("come back from their paths, with names that every file system keeps apart", () => {
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
        const names = objectPath(segments);
        expect(decodePath(names)).toEqual(segments);
        for (const name of names) {
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
          expect(name).toBe(name.toLowerCase());
          expect(name).toBe(name.normalize("NFD"));
          expect(name).not.toMatch(/^\.|[. ]$|[\\/:*?"<>|\0]/);
        }
      }),
    );
  });

  it("are told apart when they differ in case, in Unicode form or in kind", () => {
    const keys = ["A.txt", "a.txt", "é.txt", "e\u0301.txt", "a.txt.", "%41.txt", "a%.txt", "a.txt%_", "a"];
    const paths = [
      ...keys.map((key) => objectPath([key]).join("/")),
      folderPath(["a"]).join("/"),
      folderPath(["a.txt"])[0],
    ];
    expect(new Set(paths).size).toBe(paths.length);
  });

  it("stay readable where they can", () => {
    expect(objectPath(["attempts", "abc", "01", "turn-01", "report.json"])).toEqual([
      "attempts",
      "abc",
      "01",
      "turn-01",
      "report.json",
    ]);
    expect(objectPath(["数独.txt"])).toEqual(["数独.txt"]);
    expect(objectPath(["README.md"])).toEqual(["readme.md%.3f"]);
  });

  it("hold segments of a thousand bytes", () => {
    const long = ["数".repeat(300), "X".repeat(900), "%".repeat(1000)];
    for (const name of long) expect(decodePath(objectPath([name]))).toEqual([name]);
  });

  for (const [key, why] of [
    ["", "is empty"],
    ["a//b", "empty segment"],
    ["/a", "empty segment"],
    ["a/", "empty segment"],
    ["a/../b", "segment .."],
    ["./a", "segment ."],
    ["a\0b", "NUL"],
    ["a\ud800", "surrogate"],
    ["a".repeat(1025), "1024 bytes"],
    ["数".repeat(342), "1024 bytes"],
  ] as const) {
    it(`refuses ${JSON.stringify(key.slice(0, 20))}`, () => {
      expect(() => keySegments(key)).toThrow(why);
    });
  }

  it("passes over names that no key gives", () => {
    for (const name of [".new", ".DS_Store", "A.txt", "a b.txt", "%zz.txt", "a%5F.txt", "%2f.txt", "x%_%_"]) {
      expect(decodeSegment([name])).toBeNull();
    }
  });
});
