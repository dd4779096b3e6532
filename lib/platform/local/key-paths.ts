/**
 * Keys as paths of files, safely and reversibly, on any file system: names that differ only in case, in Unicode form or
 * in a trailing dot stay apart, and no name of an agent's means anything to the file system.
 *
 * A segment becomes one name: ASCII letters, digits, `-`, `_`, `+`, `@`, `=`, `,`, inner dots and CJK ideographs stand
 * as they are; every other byte of UTF-8 is `%xx`. A name with capitals ends in `%.` and their positions in
 * hexadecimal, one bit a character. In a store both `a` and `a/b` may exist, so objects and folders never share a name:
 * an object's name has a dot, a folder's has none, and the odd ones end in `%_`. A name that is too long goes on in a
 * folder whose name ends in `%-`.
 */
import { StoreError } from "../ports.ts";

export const maxKeyBytes = 1024;
/** File systems take 255 bytes; a CJK ideograph takes three of them. */
const maxNameBytes = 200;

/**
 * Segments of a key.
 * @throws StoreError bad_key for empty, `.` and `..` segments, NUL, text that is no UTF-16, and more than 1,024 bytes.
 */
export function keySegments(key: string): string[] {
  const refuse = (why: string): never => {
    throw new StoreError("bad_key", `the key ${JSON.stringify(key.slice(0, 200))} ${why}`);
  };
  if (key === "") refuse("is empty");
  if (/\p{Surrogate}/u.test(key)) refuse("holds half a surrogate pair, so it is no text");
  if (Buffer.byteLength(key) > maxKeyBytes) refuse(`is longer than ${maxKeyBytes} bytes`);
  if (key.includes("\0")) refuse("holds a NUL");
  const segments = key.split("/");
  for (const segment of segments) {
    if (segment === "") refuse("has an empty segment");
    if (segment === "." || segment === "..") refuse(`has the segment ${segment}`);
  }
  return segments;
}

/** Names of the folders, then of the file, that an object with these segments stands in. */
export function objectPath(segments: readonly string[]): string[] {
  return [...folderPath(segments.slice(0, -1)), ...encodeSegment(segments.at(-1) as string, "object")];
}

export function folderPath(segments: readonly string[]): string[] {
  return segments.flatMap((segment) => encodeSegment(segment, "folder"));
}

/** A chain of names of one segment: all but the last are folders that a long name goes on in. */
function encodeSegment(segment: string, of: "object" | "folder"): string[] {
  let name = "";
  for (const character of segment) name += plain.test(character) ? character.toLowerCase() : percent(character);
  if (name.startsWith(".")) name = `%2e${name.slice(1)}`;
  if (name.endsWith(".")) name = `${name.slice(0, -1)}%2e`;
  const capitals = capitalBits(segment);
  if (capitals !== "") name += `%.${capitals}`;
  if (name.includes(".") !== (of === "object")) name += "%_";
  return inPieces(name);
}

const plain = /^[A-Za-z0-9_+@=,.\-\u4e00-\u9fff]$/;

function percent(character: string): string {
  return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

/** Bit i of the hexadecimal number is set where character i is an ASCII capital; empty when none is. */
function capitalBits(segment: string): string {
  let bits = 0n;
  let at = 0n;
  for (const character of segment) {
    if (character >= "A" && character <= "Z") bits |= 1n << at;
    at += 1n;
  }
  return bits === 0n ? "" : bits.toString(16);
}

function inPieces(name: string): string[] {
  const pieces: string[] = [];
  let rest = name;
  while (Buffer.byteLength(rest) > maxNameBytes) {
    let piece = "";
    for (const character of rest) {
      if (Buffer.byteLength(piece) + Buffer.byteLength(character) > maxNameBytes) break;
      piece += character;
    }
    // A piece's own end must not be lost or look like an ending.
    pieces.push(`${piece}%-`);
    rest = rest.slice(piece.length);
  }
  return [...pieces, rest];
}

/** True for a folder that a long name goes on in. */
export const isPiece = (name: string): boolean => name.endsWith("%-");

/**
 * The segment and its kind behind a chain of names; null for a name that no key gives: a stranger's file.
 */
export function decodeSegment(chain: readonly string[]): { segment: string; of: "object" | "folder" } | null {
  const whole = chain.map((name, at) => (at < chain.length - 1 ? name.slice(0, -2) : name)).join("");
  let name = whole.endsWith("%_") ? whole.slice(0, -2) : whole;
  const capitals = /%\.([0-9a-f]+)$/.exec(name);
  if (capitals) name = name.slice(0, capitals.index);
  const bytes: Buffer[] = [];
  for (const match of name.matchAll(/%([0-9a-f]{2})|([^%])/gu)) {
    bytes.push(match[1] === undefined ? Buffer.from(match[2] as string) : Buffer.from(match[1], "hex"));
  }
  let segment = Buffer.concat(bytes).toString("utf8");
  if (capitals) {
    const bits = BigInt(`0x${capitals[1]}`);
    segment = [...segment].map((c, at) => ((bits >> BigInt(at)) & 1n ? c.toUpperCase() : c)).join("");
  }
  for (const of of ["object", "folder"] as const) {
    if (segment === "" || segment === "." || segment === ".." || segment.includes("/")) return null;
    const again = encodeSegment(segment, of);
    if (again.length === chain.length && again.every((piece, at) => piece === chain[at])) return { segment, of };
  }
  return null;
}
