/** A port on loopback that leads to a Unix socket: agents speak HTTP to an address, the gateway stands on a socket. */
import { type AddressInfo, connect, createServer } from "node:net";

export interface Forwarder {
  port: number;
  close(): void;
}

const noGateway = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/**
 * Where the network is shared with the host (`web`), other processes of the machine can reach the port; the gateway
 * behind it answers to the try's own gateway key alone.
 */
export function forwardToSocket(path: string): Promise<Forwarder> {
  const open = new Set<{ destroy(): void }>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (agent) => {
    const gateway = connect({ path, allowHalfOpen: true });
    for (const end of [agent, gateway]) {
      open.add(end);
      end.setNoDelay(true);
      end.once("close", () => open.delete(end));
    }
    agent.on("error", () => gateway.destroy());
    agent.once("close", () => gateway.destroy());
    gateway.once("error", () => {
      // To a client that has not asked yet, a closed connection is nothing to report: it hears of it when it asks.
      if (gateway.bytesRead > 0) agent.destroy();
      else agent.once("data", () => agent.end(noGateway)).resume();
    });
    gateway.once("connect", () => {
      gateway.once("close", () => agent.destroy());
      agent.pipe(gateway);
      gateway.pipe(agent);
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      resolve({
        port: (server.address() as AddressInfo).port,
        close: () => {
          server.close();
          for (const end of open) end.destroy();
        },
      });
    });
  });
}
