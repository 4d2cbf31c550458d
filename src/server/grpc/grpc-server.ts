import type { ListenOptions, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Environment } from '../../environment/index.ts';
import { Turns } from '../turns.ts';
import type { ServerShare } from './connection.ts';
import { Connection } from './connection.ts';
import { FairQueue } from './fair-queue.ts';
import type { ServerLimits } from './limits.ts';
import type { ServerMethod } from './methods.ts';

/** How often connections are looked at, milliseconds, at most: limits of time are kept within this. */
const longestLookMs = 1_000;
/** Time for the last answers to leave after their handlers are done, milliseconds. */
const flushMs = 100;
/** Time for a client to end its side of a connection that has ended here, milliseconds. */
const leaveMs = 1_000;

/** A gRPC server over cleartext HTTP/2, with quotas for each client. */
export class GrpcServer {
  readonly #environment: Environment;
  readonly #share: ServerShare;
  readonly #servers: Server[] = [];
  readonly #connections = new Set<Connection>();
  /** Those without calls, the one that has been so longest first. */
  readonly #idle = new Set<Connection>();
  /** Those that have ended here, by when they did. */
  readonly #leaving = new Map<Connection, number>();
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
      turns: new Turns(environment),
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
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
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
    for (const connection of this.#connections) connection.close();
    await this.#until(graceMs, (done) => (this.#running === 0 ? done() : void this.#whenNone.push(done)));
    await this.#until(flushMs, (done) => void Promise.all(closed).then(done));
    for (const connection of this.#connections) connection.destroy();
    for (const connection of this.#leaving.keys()) connection.cut();
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

  #accept(socket: Socket): void {
    const { limits } = this.#share;
    const connection = new Connection(socket, this.#share, {
      idle: (one, idle) => {
        if (!idle) this.#idle.delete(one);
        else if (this.#connections.has(one)) this.#idle.add(one);
      },
      gone: (one) => {
        this.#forget(one);
        this.#leaving.set(one, this.#environment.elapsed());
      },
      left: (one) => void this.#leaving.delete(one),
    });
    if (this.#connections.size >= limits.connections) {
      const [oldest] = this.#idle;
      // A client that was idle connects again when it next has something to say.
      if (oldest !== undefined) {
        this.#forget(oldest);
        oldest.close();
      }
    }
    if (this.#closing || this.#connections.size >= limits.connections) return connection.destroy();
    this.#connections.add(connection);
    this.#idle.add(connection);
  }

  #forget(connection: Connection): void {
    this.#idle.delete(connection);
    this.#connections.delete(connection);
  }

  #arm(): void {
    const { requestMs, keepaliveMs, keepaliveTimeoutMs } = this.#share.limits;
    const lookMs = Math.min(longestLookMs, requestMs / 2, keepaliveMs / 2, keepaliveTimeoutMs / 2);
    this.#timer = this.#environment.after(lookMs, () => {
      const now = this.#environment.elapsed();
      for (const connection of this.#connections) connection.look(now);
      for (const [connection, since] of this.#leaving) if (now - since >= leaveMs) connection.cut();
      this.#arm();
    });
  }
}
