/** A Unix socket at a fixed path that passes from one process to the next. */
import { chmodSync, lstatSync, renameSync, rmSync } from "node:fs";
import type { Server } from "node:net";

/**
 * Listens at `path`, in place of whatever stood there. The socket is made under another name and moved into place: a
 * server removes on closing the name that it was made under, and must not remove what a successor has put at the path.
 * @returns closes the server; removes the path only while it is still this server's
 * @throws Error when the socket cannot be made
 */
export async function listenAt(server: Server, path: string): Promise<() => Promise<void>> {
  const made = `${path}.${process.pid}`;
  rmSync(made, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(made, () => {
      server.off("error", reject);
      resolve();
    });
  });
  chmodSync(made, 0o600);
  const own = lstatSync(made).ino;
  renameSync(made, path);
  return async () => {
    if (inodeAt(path) === own) rmSync(path, { force: true });
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
}

function inodeAt(path: string): number | null {
  try {
    return lstatSync(path).ino;
  } catch {
    return null;
  }
}
