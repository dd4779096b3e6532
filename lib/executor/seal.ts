/**
 * Sealing of mailbox objects: AES-256-GCM with the key of one try, so that whoever can read the mailbox but was not
 * handed the key (an agent that uses its task's role) finds ciphertext.
 *
 * A sealed object: 1 byte format (1), 12 bytes IV, 16 bytes tag, then the ciphertext of the message as JSON.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { type SealedMessage, sealedMessage } from "./sealed-message.ts";

const format = 1;
const cipher = "aes-256-gcm";
const sealKeyBytes = 32;
export const sealIvBytes = 12;
const tagBytes = 16;
const headBytes = 1 + sealIvBytes + tagBytes;

/** A mailbox object that is not ours: cut, altered, or sealed with another try's key. The message holds none of it. */
export class SealError extends Error {
  override readonly name = "SealError";
}

/**
 * Seals one message. `key`: base64 of 32 bytes, as a lease holds it. `iv`: 12 random bytes, never used twice with a key.
 * @throws SealError for a key or IV of the wrong length
 */
export function seal(key: string, message: SealedMessage, iv: Uint8Array): Uint8Array {
  if (iv.length !== sealIvBytes) throw new SealError(`an IV has ${sealIvBytes} bytes, this one ${iv.length}`);
  const cipherer = createCipheriv(cipher, keyBytes(key), iv, { authTagLength: tagBytes });
  cipherer.setAAD(Uint8Array.of(format));
  const body = Buffer.concat([cipherer.update(JSON.stringify(sealedMessage.parse(message)), "utf8"), cipherer.final()]);
  return Buffer.concat([Uint8Array.of(format), iv, cipherer.getAuthTag(), body]);
}

/** Opens what `seal` made with the same key. @throws SealError when it was altered, cut, or sealed with another key */
export function unseal(key: string, sealed: Uint8Array): SealedMessage {
  if (sealed.length <= headBytes || sealed[0] !== format) {
    throw new SealError("the mailbox object is not a sealed message of this version");
  }
  const decipherer = createDecipheriv(cipher, keyBytes(key), sealed.subarray(1, 1 + sealIvBytes), {
    authTagLength: tagBytes,
  });
  decipherer.setAAD(sealed.subarray(0, 1));
  decipherer.setAuthTag(sealed.subarray(1 + sealIvBytes, headBytes));
  let text: string;
  try {
    text = Buffer.concat([decipherer.update(sealed.subarray(headBytes)), decipherer.final()]).toString("utf8");
  } catch (error) {
    throw new SealError("the mailbox object was altered or sealed with another key", { cause: error });
  }
  return sealedMessage.parse(JSON.parse(text));
}

function keyBytes(key: string): Uint8Array {
  const bytes = Buffer.from(key, "base64");
  if (bytes.length !== sealKeyBytes) throw new SealError(`a key has ${sealKeyBytes} bytes, this one ${bytes.length}`);
  return bytes;
}
