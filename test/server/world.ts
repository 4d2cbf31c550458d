import { mkdtemp, rm } from 'node:fs/promises';
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { connect as http2Connect } from 'node:http2';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { RemoteState } from '../../src/backends/remote/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { Server, ServeStateOptions } from '../../src/server/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import type { WireWatchOptions } from '../../src/wire/index.ts';
import { ResourceCodec, stateService } from '../../src/wire/index.ts';
import { frame, preface } from './raw-http2.ts';

export type Transport = 'unix' | 'loopback';
export const transports: readonly Transport[] = ['unix', 'loopback'];

export const kind = { namespace: 'default', type: 'Things.example.dev' };
export const codec = new ResourceCodec();

/** What a watch asks for when it asks for nothing. */
export const watchOptions: WireWatchOptions = {
  bootstrapContents: false,
  tailEvents: 0,
  labelQuery: [],
  aggregated: false,
  bootstrapBookmark: false,
  strict: false,
  caughtUp: false,
};

/** The bytes of requests. */
export const getRequest = (id: string): Buffer => framed(stateService.get.requestSerialize({ ...kind, id }));
export const watchRequest = (options: Partial<WireWatchOptions> = {}): Buffer =>
  framed(stateService.watch.requestSerialize({ ...kind, apiVersion: 1, options: { ...watchOptions, aggregated: true, ...options } }));

export function framed(message: Uint8Array, compressed = false): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = compressed ? 1 : 0;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export interface Answer {
  readonly http: number;
  readonly code: number;
  readonly message: string;
}

/** A server and what attacks it, all of it closed at the end. */
export class World implements AsyncDisposable {
  readonly environment = nodeEnvironment();
  readonly state: CoreState & AsyncDisposable;
  readonly #sockets: Socket[] = [];
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #remotes: RemoteState[] = [];
  #directory = '';
  #server: Server | undefined;

  constructor() {
    this.state = memoryState({ environment: this.environment, historySize: 256 });
  }

  static async serve(transport: Transport, options: Partial<ServeStateOptions> = {}): Promise<World> {
    const world = new World();
    world.#directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
    world.#server = await serveState({
      state: world.state,
      environment: world.environment,
      listen: [transport === 'unix' ? 'unix:s' : 'grpc://127.0.0.1:0'],
      directory: world.#directory,
      control: { version: '0', pid: 1, store: 'memory:' },
      ...options,
    });
    return world;
  }

  get server(): Server {
    return this.#server as Server;
  }

  /** `unix:/abs` or `host:port`. */
  get address(): string {
    return (this.server.addresses[0] as string).replace('grpc://', '');
  }

  socket(): Socket {
    const { address } = this;
    const socket = address.startsWith('unix:')
      ? connect(address.slice('unix:'.length))
      : connect(Number(address.split(':')[1]), '127.0.0.1');
    socket.on('error', () => {});
    this.#sockets.push(socket);
    return socket;
  }

  session(): ClientHttp2Session {
    const session = http2Connect('http://localhost', { createConnection: () => this.socket(), settings: { enablePush: false } });
    session.on('error', () => {});
    this.#sessions.push(session);
    return session;
  }

  /** A connection of our client, by which others measure that they are served. */
  async client(): Promise<RemoteState> {
    const remote = await openRemoteState({ address: this.address, environment: this.environment });
    this.#remotes.push(remote);
    return remote;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const remote of this.#remotes) await remote[Symbol.asyncDispose]();
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await this.#server?.stop(100);
    await this.state[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
    expect(this.environment.open.counts()).toEqual({});
  }
}

/** Opens a stream of a call; its body is left to the caller. */
export function openCall(session: ClientHttp2Session, path: string, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...headers });
  stream.on('error', () => {});
  return stream;
}

/** How a call ended: its status comes in the trailers, or in the headers when there is nothing else. */
export async function ending(stream: ClientHttp2Stream): Promise<Answer> {
  let headers: IncomingHttpHeaders = {};
  stream.on('response', (found) => {
    headers = { ...headers, ...found };
  });
  stream.on('trailers', (found) => {
    headers = { ...headers, ...found };
  });
  stream.resume();
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
  return {
    http: Number(headers[':status'] ?? 0),
    code: Number(headers['grpc-status'] ?? -1),
    message: String(headers['grpc-message'] ?? ''),
  };
}

/** One whole call. */
export function callRaw(
  session: ClientHttp2Session,
  path: string,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const stream = openCall(session, path, headers);
  stream.end(body);
  return ending(stream);
}

/** The bytes of a whole connection with one call, for clients that are none. */
export function callBytes(path: string, body: Buffer): Buffer {
  const literal = (name: readonly number[], value: string): Buffer =>
    Buffer.concat([Buffer.from([...name, value.length]), Buffer.from(value)]);
  const headers = Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal([0x04], path),
    literal([0x01], 'localhost'),
    literal([0x0f, 0x10], 'application/grpc'),
  ]);
  return Buffer.concat([preface, frame(4, 0, 0), frame(1, 4, 1, headers), frame(0, 1, 1, body)]);
}

/** Fails when a client that does nothing wrong is not served. */
export async function expectServed(client: RemoteState): Promise<void> {
  await expect(client.get({ ...kind, id: 'nobody' })).rejects.toMatchObject({ code: 'NotFound' });
}
