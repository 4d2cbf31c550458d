import { addAbortListener } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createServer, connect as netConnect } from 'node:net';
import type { NetworkPort } from './network.ts';
import type { OpenCounter } from './open-counter.ts';

const bodyLimit = 64 * 1024;

/** The machine's network. */
export function nodeNetwork(open: OpenCounter): NetworkPort {
  return {
    http({ url, method = 'GET', headers = {}, limitMs, signal }) {
      return bounded(open, limitMs, `no answer from ${url}`, signal, (done, fail) => {
        const request = url.startsWith('https:') ? httpsRequest : httpRequest;
        const outgoing = request(url, { method, headers, agent: false }, (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          const finish = (): void => {
            done({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).subarray(0, bodyLimit).toString('utf8') });
            outgoing.destroy();
          };
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk);
            size += chunk.length;
            if (size >= bodyLimit) finish();
          });
          response.on('end', finish);
          response.on('error', fail);
        });
        outgoing.on('error', fail);
        outgoing.end();
        return () => outgoing.destroy();
      });
    },
    connect({ host, port, limitMs, signal }) {
      return bounded<void>(open, limitMs, `no connection to ${host}:${port}`, signal, (done, fail) => {
        const socket = netConnect({ host, port }, () => {
          socket.destroy();
          done();
        });
        socket.on('error', fail);
        return () => socket.destroy();
      });
    },
    async portFree(port, host = '127.0.0.1') {
      return (await bind(open, port, host)) !== undefined;
    },
    async freePort(host = '127.0.0.1') {
      const port = await bind(open, 0, host);
      if (port === undefined) throw new Error(`no free TCP port on ${host}`);
      return port;
    },
  };
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

/** Binds a port for a moment; `undefined` when it is taken or may not be bound. */
function bind(open: OpenCounter, port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const tracked = open.track('socket');
    const server = createServer();
    server.on('error', (error: NodeJS.ErrnoException) => {
      tracked[Symbol.dispose]();
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
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
