import { addAbortListener } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { createServer, connect as netConnect } from 'node:net';
import type { NetworkPort } from './network.ts';
import type { OpenCounter } from './open-counter.ts';

const bodyLimit = 64 * 1024;
const loopback = '127.0.0.1';
const loopback6 = '::1';
/** How many ports that one family offers are tried in the other. */
const attempts = 20;

/** The machine's network. */
export function nodeNetwork(open: OpenCounter): NetworkPort {
  return {
    http({ url, method = 'GET', headers = {}, limitMs, signal, statusOnly = false }) {
      return bounded(open, limitMs, `no answer from ${url}`, signal, (done, fail) => {
        const request = url.startsWith('https:') ? httpsRequest : httpRequest;
        const outgoing = request(url, { method, headers, agent: false }, (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          const finish = (): void => {
            done({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).subarray(0, bodyLimit).toString('utf8') });
            outgoing.destroy();
          };
          response.on('error', fail);
          if (statusOnly) return finish();
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk);
            size += chunk.length;
            if (size >= bodyLimit) finish();
          });
          response.on('end', finish);
        });
        outgoing.on('error', fail);
        outgoing.end();
        return () => outgoing.destroy();
      });
    },
    connect({ host, port, limitMs, signal }) {
      return bounded<void>(open, limitMs, `no connection to ${host}:${port}`, signal, (done, fail) => {
        const socket = netConnect({ host, port }, () => {
          const toItself = connectedToItself(socket);
          socket.destroy();
          if (toItself) fail(Object.assign(new Error(`connect ECONNREFUSED ${host}:${port}`), { code: 'ECONNREFUSED' }));
          else done();
        });
        socket.on('error', fail);
        return () => socket.destroy();
      });
    },
    portFree: (port, host) => free(open, port, host),
    async freePort(host) {
      for (let attempt = 0; attempt < attempts; attempt++) {
        const port = await bind(open, 0, host ?? loopback);
        if (port !== undefined && (host !== undefined || (await free(open, port, loopback6)))) return port;
      }
      throw new Error(`no free TCP port on ${host ?? loopback}`);
    },
  };
}

/**
 * Whether a connection is its own other end: where nobody listens, the system may choose the very port that is called as the
 * one to call from.
 */
export function connectedToItself({ localAddress, localPort, remoteAddress, remotePort }: Socket): boolean {
  return localPort !== undefined && localPort === remotePort && localAddress === remoteAddress;
}

/** A program that listens on all addresses, or is called by the name localhost, needs a port in both families. */
async function free(open: OpenCounter, port: number, host?: string): Promise<boolean> {
  if (host === undefined) return (await free(open, port, loopback)) && (await free(open, port, loopback6));
  return (await bind(open, port, host)) !== undefined;
}

/** Runs one exchange under a limit and a signal; whatever ends it, it is torn down once. */
function bounded<Answer>(
  open: OpenCounter,
  limitMs: number,
  late: string,
  signal: AbortSignal | undefined,
  start: (done: (answer: Answer) => void, fail: (error: Error) => void) => () => void,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const tracked = open.track('socket');
    let stop = (): void => {};
    const settle = (finish: () => void): void => {
      clearTimeout(timer);
      listener?.[Symbol.dispose]();
      tracked[Symbol.dispose]();
      finish();
      stop();
    };
    const timer = setTimeout(
      () => settle(() => reject(Object.assign(new Error(`${late} within ${limitMs} ms`), { code: 'ETIMEDOUT' }))),
      limitMs,
    );
    const listener = signal && addAbortListener(signal, () => settle(() => reject(signal.reason as Error)));
    try {
      stop = start(
        (answer) => settle(() => resolve(answer)),
        (error) => settle(() => reject(error)),
      );
    } catch (error) {
      settle(() => reject(error as Error));
    }
  });
}

/** Binds a port for a moment; `undefined` when it is taken or may not be bound. What this machine lacks altogether takes nothing. */
function bind(open: OpenCounter, port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const tracked = open.track('socket');
    const server = createServer();
    server.on('error', (error: NodeJS.ErrnoException) => {
      tracked[Symbol.dispose]();
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else if (host === loopback6 && (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT')) resolve(port);
      else reject(error);
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        tracked[Symbol.dispose]();
        resolve(typeof address === 'object' && address !== null ? address.port : undefined);
      });
    });
  });
}
