/** Writes a turn's evidence through its grant: each file once, with its hash, and manifest.json after all others. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { Usage } from "../../attempt/usage.ts";
import { evidenceFileKey, evidenceFiles, type TryName } from "../../firewall/keys.ts";
import type { ObjectStore } from "../../platform/ports.ts";
import type { EvidenceFile, EvidenceKind, EvidenceManifest, SkippedFile } from "../../trajectory/evidence-manifest.ts";

export class EvidenceWriter {
  readonly #files: EvidenceFile[] = [];

  constructor(
    private readonly objects: ObjectStore,
    private readonly of: TryName,
    private readonly turn: number,
  ) {}

  /** Where the manifest will stand. */
  get manifestKey(): string {
    return evidenceFileKey(this.of, this.turn, evidenceFiles.manifest).key;
  }

  /** @throws StoreError */
  async put(path: string, kind: EvidenceKind, text: string): Promise<void> {
    const body = Buffer.from(text);
    await this.objects.create(evidenceFileKey(this.of, this.turn, path), body);
    this.#files.push({ path, kind, bytes: body.length, sha256: createHash("sha256").update(body).digest("hex") });
  }

  /** Streams a file of this machine. @throws StoreError */
  async putFile(path: string, kind: EvidenceKind, file: string): Promise<void> {
    const hash = createHash("sha256");
    let bytes = 0;
    const body = Readable.from(
      (async function* () {
        for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
          hash.update(chunk);
          bytes += chunk.length;
          yield chunk;
        }
      })(),
      { objectMode: false },
    );
    await this.objects.create(evidenceFileKey(this.of, this.turn, path), body);
    this.#files.push({ path, kind, bytes, sha256: hash.digest("hex") });
  }

  /** Ends the evidence. @throws StoreError */
  async finish(rest: {
    collected: readonly EvidenceFile[];
    skipped: SkippedFile[];
    usage: Usage;
    toolCounts: Record<string, number>;
  }): Promise<void> {
    const byPath = (a: EvidenceFile, b: EvidenceFile): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
    const manifest: EvidenceManifest = {
      v: 1,
      files: [...this.#files, ...rest.collected].sort(byPath),
      skipped: rest.skipped,
      usage: rest.usage,
      toolCounts: rest.toolCounts,
    };
    const name = evidenceFileKey(this.of, this.turn, evidenceFiles.manifest);
    await this.objects.create(name, JSON.stringify(manifest));
  }
}
