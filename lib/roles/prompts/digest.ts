/** One hash for the prompts that a role was given, stored with every answer so that results of different prompts never mix unseen. */
import { canonicalJson, sha256Hex } from "../../tasks/canonical.ts";

/** @param prompts texts and schemas, in any order of keys; first 16 characters of the hash */
export function promptsDigest(prompts: Record<string, unknown>): string {
  return sha256Hex(canonicalJson(prompts)).slice(0, 16);
}
