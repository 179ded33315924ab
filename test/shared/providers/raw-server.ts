import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';

export interface RawServer {
  url: string;
  /** Whole requests in order of arrival, head and body as they came. */
  requests: string[];
  connections: number;
  close(): Promise<void>;
}

/** A TCP server that reads whole HTTP requests and answers each with whatever bytes the script writes. */
export const startRawServer = async (
  script: (socket: Socket, requestNumber: number) => unknown,
): Promise<RawServer> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    raw.connections += 1;
    let pending = Buffer.alloc(0);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (;;) {
        const headEnd = pending.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const length = Number(
          /content-length: (\d+)/i.exec(pending.subarray(0, headEnd).toString())?.[1] ?? 0,
        );
        const end = headEnd + 4 + length;
        if (pending.length < end) return;
        raw.requests.push(pending.subarray(0, end).toString());
        pending = pending.subarray(end);
        void script(socket, raw.requests.length);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const raw: RawServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    connections: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  return raw;
};

export const head = (headers: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\n${headers}\r\n\r\n`;

export const whole = (
  body: string | Buffer,
  type = 'application/json',
  status = '200 OK',
  more = '',
): Buffer =>
  Buffer.concat([
    Buffer.from(
      head(
        `${type ? `content-type: ${type}\r\n` : ''}${more}content-length: ${Buffer.byteLength(body)}`,
        status,
      ),
    ),
    Buffer.from(body),
  ]);

export const streamHead = head('content-type: text/event-stream\r\ntransfer-encoding: chunked');

export const chunk = (bytes: string | Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`${Buffer.byteLength(bytes).toString(16)}\r\n`),
    Buffer.from(bytes),
    Buffer.from('\r\n'),
  ]);

export const lastChunk = '0\r\n\r\n';

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
