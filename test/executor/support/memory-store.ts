/** An object store in memory, write-once, that can be made to fail. */
import { Readable } from "node:stream";
import type { ObjectName } from "../../../lib/firewall/keys.ts";
import { type ObjectInfo, type ObjectStore, StoreError, type StoreErrorCode } from "../../../lib/platform/ports.ts";

export class MemoryStore implements ObjectStore {
  readonly objects = new Map<string, Buffer>();
  /** Says which creates fail, and how. */
  failCreate: (key: string) => StoreErrorCode | null = () => null;

  async get(name: ObjectName): Promise<Uint8Array> {
    const body = this.objects.get(id(name));
    if (!body) throw new StoreError("not_found", `${id(name)} is not there`);
    return body;
  }

  async stream(name: ObjectName, range?: { start: number; end?: number }): Promise<Readable> {
    return Readable.from([Buffer.from(await this.get(name)).subarray(range?.start ?? 0, range?.end)]);
  }

  async create(name: ObjectName, body: Uint8Array | string | Readable): Promise<ObjectInfo> {
    const parts: Buffer[] = [];
    if (body instanceof Readable) for await (const part of body) parts.push(Buffer.from(part));
    else parts.push(Buffer.from(body as string));
    const fault = this.failCreate(name.key);
    if (fault) throw new StoreError(fault, `${name.key} can not be written`);
    if (this.objects.has(id(name))) throw new StoreError("already_exists", `${name.key} exists`);
    const whole = Buffer.concat(parts);
    this.objects.set(id(name), whole);
    return { key: name.key, bytes: whole.length };
  }

  async *list(prefix: ObjectName): AsyncIterable<ObjectInfo> {
    const start = id(prefix);
    const found = [...this.objects].filter(([key]) => key.startsWith(start)).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [key, body] of found) yield { key: key.slice(prefix.bucket.length + 1), bytes: body.length };
  }
}

const id = (name: ObjectName): string => `${name.bucket}:${name.key}`;
