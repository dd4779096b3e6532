/** The agent's part of a package as a tar, read through the turn's grant and streamed: PUT /package takes it. */
import { Readable } from "node:stream";
import { packagePrefix } from "../../firewall/keys.ts";
import type { ObjectStore } from "../../platform/ports.ts";

/** The stream ends with an error when an object can not be read. */
export function packageTar(objects: ObjectStore, task: string, digest: string): Readable {
  return Readable.from(blocks(objects, task, digest), { objectMode: false });
}

const blockBytes = 512;
const smallBytes = 256 * 1024;

async function* blocks(objects: ObjectStore, task: string, digest: string): AsyncGenerator<Buffer> {
  const prefix = packagePrefix(task, digest, "agent");
  let files = 0;
  for await (const { key, bytes } of objects.list(prefix)) {
    files++;
    const name = { bucket: prefix.bucket, key };
    yield tarHeader(key.slice(prefix.key.length), bytes);
    let sent = 0;
    if (bytes <= smallBytes) {
      const body = Buffer.from(await objects.get(name));
      sent = body.length;
      yield body;
    } else {
      for await (const chunk of (await objects.stream(name)) as AsyncIterable<Buffer>) {
        sent += chunk.length;
        yield chunk;
      }
    }
    if (sent !== bytes) throw new Error(`${key} has ${sent} bytes where ${bytes} were listed`);
    yield padding(bytes);
  }
  if (files === 0) throw new Error(`the package ${task}@${digest} has no agent part in the store`);
  yield Buffer.alloc(2 * blockBytes);
}

/**
 * The header of a regular file, with a PAX header before it where the name does not fit. Mode 0644 and a fixed time, so
 * that what an agent finds does not depend on when its package was published.
 */
export function tarHeader(name: string, bytes: number): Buffer {
  if (Buffer.byteLength(name) <= 100 && bytes < 8 ** 11) return ustar(name, bytes, "0");
  const records = Buffer.concat([paxRecord("path", name), paxRecord("size", String(bytes))]);
  const short = Buffer.from(name)
    .subarray(0, 60)
    .toString("latin1")
    .replace(/[^\w./-]/g, "_");
  return Buffer.concat([
    ustar("PaxHeader", records.length, "x"),
    records,
    padding(records.length),
    ustar(short, Math.min(bytes, 8 ** 11 - 1), "0"),
  ]);
}

function ustar(name: string, bytes: number, type: string): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, digits: number): void => {
    header.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  };
  header.write(name, 0, "utf8");
  octal(0o644, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(bytes, 124, 11);
  octal(0, 136, 11);
  header.write(type, 156, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  header.fill(" ", 148, 156, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** `<length> <key>=<value>\n`, where the length counts its own digits too. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function padding(bytes: number): Buffer {
  return Buffer.alloc((blockBytes - (bytes % blockBytes)) % blockBytes);
}
