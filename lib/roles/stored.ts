/** Small JSON objects of the store, read and written once. */
import type { ObjectName } from "../firewall/keys.ts";
import { type ObjectStore, StoreError } from "../platform/ports.ts";

export function parsedJson<T>(schema: { parse(value: unknown): T }, bytes: Uint8Array): T {
  return schema.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
}

/** Creates the object unless it is there already: then the first writer's stands. */
export async function createOnce(
  store: Pick<ObjectStore, "create">,
  name: ObjectName,
  body: string | Uint8Array,
): Promise<void> {
  try {
    await store.create(name, body);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "already_exists") throw error;
  }
}
