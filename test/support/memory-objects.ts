/** An object store in memory, guarded by the access matrix like every other: for tests in virtual time. */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ObjectName } from "../../lib/firewall/keys.ts";
import { allows, type Verb } from "../../lib/firewall/matrix.ts";
import { keySegments } from "../../lib/platform/local/key-paths.ts";
import { type Identity, type ObjectInfo, type ObjectStore, StoreError } from "../../lib/platform/ports.ts";

export class MemoryObjects {
  readonly #objects = new Map<string, Buffer>();

  /** The objects as an identity sees them. */
  as(identity: Identity): ObjectStore {
    const open = (verb: Verb, name: ObjectName): Buffer | undefined => {
      keySegments(verb === "list" ? `${name.key}x` : name.key);
      if (!allows(identity, verb, name)) {
        throw new StoreError("access_denied", `${identity.role} may not ${verb} ${name.bucket}/${name.key}`);
      }
      return this.#objects.get(`${name.bucket}/${name.key}`);
    };
    const found = (verb: Verb, name: ObjectName): Buffer => {
      const body = open(verb, name);
      if (!body) throw new StoreError("not_found", `there is no ${name.bucket}/${name.key}`);
      return body;
    };
    const exists = (name: ObjectName): StoreError =>
      new StoreError("already_exists", `${name.bucket}/${name.key} is there already`);
    return {
      get: async (name) => Buffer.from(found("get", name)),
      stream: async (name, range) => Readable.from([found("get", name).subarray(range?.start ?? 0, range?.end)]),
      create: async (name, body) => {
        if (open("create", name)) throw exists(name);
        const bytes = body instanceof Readable ? await buffer(body) : Buffer.from(body);
        if (this.#objects.has(`${name.bucket}/${name.key}`)) throw exists(name);
        this.#objects.set(`${name.bucket}/${name.key}`, Buffer.from(bytes));
        return { key: name.key, bytes: bytes.length };
      },
      list: (prefix) => this.#list(prefix, () => void open("list", prefix)),
    };
  }

  async *#list(prefix: ObjectName, check: () => void): AsyncIterable<ObjectInfo> {
    check();
    const below = `${prefix.bucket}/${prefix.key}`;
    const names = [...this.#objects.keys()].filter((name) => name.startsWith(below));
    for (const name of names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
      yield { key: name.slice(prefix.bucket.length + 1), bytes: this.#objects.get(name)?.length ?? 0 };
    }
  }

  /** Puts an object there, as a test's own hand. */
  put(name: ObjectName, body: string | Uint8Array): void {
    this.#objects.set(`${name.bucket}/${name.key}`, Buffer.from(body));
  }

  /** Takes it away, which nothing but a test does. */
  remove(name: ObjectName): void {
    this.#objects.delete(`${name.bucket}/${name.key}`);
  }

  names(): string[] {
    return [...this.#objects.keys()].sort();
  }

  text(name: ObjectName): string | null {
    return this.#objects.get(`${name.bucket}/${name.key}`)?.toString("utf8") ?? null;
  }
}
