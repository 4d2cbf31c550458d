import type { Http2Server, ServerHttp2Session } from 'node:http2';
import { constants, createServer } from 'node:http2';
import type { ListenOptions } from 'node:net';
import type { Environment } from '../../environment/index.ts';
import type { ServerShare } from './connection.ts';
import { Connection } from './connection.ts';
import { FairQueue } from './fair-queue.ts';
import type { ServerLimits } from './limits.ts';
import type { ServerMethod } from './methods.ts';

/** How often connections are looked at, milliseconds, at most: limits of time are kept within this. */
const longestLookMs = 1_000;
/** Time for the last answers to leave after their handlers are done, milliseconds. */
const flushMs = 100;

/** A gRPC server over cleartext HTTP/2, with quotas for each client. */
export class GrpcServer {
  readonly #environment: Environment;
  readonly #share: ServerShare;
  readonly #servers: Http2Server[] = [];
  readonly #connections = new Map<ServerHttp2Session, Connection>();
  /** Those without calls, the one that has been so longest first. */
  readonly #idle = new Set<ServerHttp2Session>();
  #timer: Disposable | undefined;
  #running = 0;
  #whenNone: (() => void)[] = [];
  #closing = false;

  constructor(environment: Environment, methods: Iterable<ServerMethod>, limits: ServerLimits) {
    this.#environment = environment;
    this.#share = {
      environment,
      limits,
      methods: new Map(Array.from(methods, (method) => [method.path, method])),
      queue: new FairQueue(environment),
      watches: 0,
      requestBytes: 0,
      onCalls: (change) => {
        this.#running += change;
        if (this.#running === 0) for (const wake of this.#whenNone.splice(0)) wake();
      },
    };
  }

  /** Resolves with the port, 0 for a path. Rejects with the error of the system. */
  async listen(where: ListenOptions): Promise<number> {
    const { limits } = this.#share;
    const server = createServer({
      maxSessionMemory: 128,
      maxHeaderListPairs: 64,
      settings: {
        enablePush: false,
        // More than the quotas, so that who exceeds them is told so instead of waiting.
        maxConcurrentStreams: limits.watchesPerConnection + limits.callsPerConnection + 100,
        maxHeaderListSize: 16 * 1024,
        initialWindowSize: 256 * 1024,
      },
    });
    server.on('session', (session) => this.#accept(session));
    server.on('sessionError', () => {});
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(where, () => {
        server.off('error', reject);
        server.on('error', (error) => this.#environment.log.log('warn', 'the server cannot take a connection', { error: error.message }));
        resolve();
      });
    });
    this.#servers.push(server);
    if (this.#timer === undefined) this.#arm();
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Takes no more connections and calls; resolves when all have ended, or `graceMs` are over and they were cut. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    this.#timer?.[Symbol.dispose]();
    const closed = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const connection of this.#connections.values()) connection.close();
    await this.#until(graceMs, (done) => (this.#running === 0 ? done() : void this.#whenNone.push(done)));
    await this.#until(flushMs, (done) => void Promise.all(closed).then(done));
    for (const connection of this.#connections.values()) connection.destroy();
    await Promise.all(closed);
  }

  #until(limitMs: number, when: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#environment.after(limitMs, resolve);
      when(() => {
        timer[Symbol.dispose]();
        resolve();
      });
    });
  }

  #accept(session: ServerHttp2Session): void {
    const { limits } = this.#share;
    const connection = new Connection(session, this.#share, (idle) => {
      if (!idle) this.#idle.delete(session);
      else if (this.#connections.has(session)) this.#idle.add(session);
    });
    if (this.#connections.size >= limits.connections) {
      const [oldest] = this.#idle;
      // A client that was idle connects again when it next has something to say.
      if (oldest !== undefined) this.#forget(oldest)?.close();
    }
    if (this.#closing || this.#connections.size >= limits.connections) return connection.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#connections.set(session, connection);
    this.#idle.add(session);
    session.on('close', () => this.#forget(session));
  }

  #forget(session: ServerHttp2Session): Connection | undefined {
    const connection = this.#connections.get(session);
    this.#idle.delete(session);
    this.#connections.delete(session);
    return connection;
  }

  #arm(): void {
    const { requestMs, keepaliveMs, keepaliveTimeoutMs } = this.#share.limits;
    const lookMs = Math.min(longestLookMs, requestMs / 2, keepaliveMs / 2, keepaliveTimeoutMs / 2);
    this.#timer = this.#environment.after(lookMs, () => {
      const now = this.#environment.elapsed();
      for (const connection of this.#connections.values()) connection.look(now);
      this.#arm();
    });
  }
}
