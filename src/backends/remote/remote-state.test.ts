import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials, Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { makeResource } from '../../resource/index.ts';
import type { Server } from '../../server/index.ts';
import { serveState } from '../../server/index.ts';
import type { CoreState, StateEvent, Watch } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import type { UpdateRequest } from '../../wire/index.ts';
import { controlService, grpcCodes, ResourceCodec, stateService } from '../../wire/index.ts';
import { memoryState } from '../memory/index.ts';
import type { RemoteState } from './index.ts';
import { openRemoteState } from './index.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };
const control = { version: '0', pid: 1, store: 'memory:' };
const thing = (id: string, n = 1) => ({ metadata: { ...kind, id }, spec: { n } });

let environment: ReturnType<typeof nodeEnvironment>;
let directory: string;
let state: CoreState & AsyncDisposable;
let server: Server | undefined;
let remote: RemoteState | undefined;
const address = () => `unix:${join(directory, 's')}`;

beforeEach(async () => {
  environment = nodeEnvironment();
  directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  state = memoryState({ environment });
});
afterEach(async () => {
  await remote?.[Symbol.asyncDispose]();
  await server?.stop(100);
  await state[Symbol.asyncDispose]();
  remote = server = undefined;
  await rm(directory, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

async function serve(core: CoreState = state): Promise<void> {
  server = await serveState({ state: core, environment, listen: ['unix:s'], directory, control });
}
async function open(): Promise<RemoteState> {
  remote = await openRemoteState({ address: address(), environment });
  return remote;
}
function reader(watch: Watch): () => Promise<StateEvent | undefined> {
  const events = watch[Symbol.asyncIterator]();
  return async () => (await events.next()).value;
}

test('a proxy that the environment names is not asked', async () => {
  server = await serveState({ state, environment, listen: ['grpc://127.0.0.1:0'], directory, control });
  const [first = ''] = server.addresses;
  // Nobody listens there.
  for (const name of ['grpc_proxy', 'https_proxy', 'http_proxy']) vi.stubEnv(name, 'http://127.0.0.1:9');
  try {
    remote = await openRemoteState({ address: first.slice('grpc://'.length), environment });
    expect((await remote.create(thing('a'))).metadata.version).toBe('1');
  } finally {
    vi.unstubAllEnvs();
  }
});

describe('a lost connection', () => {
  test('a watch goes on from its last bookmark, however long the server was away: nothing missed, nothing twice', async () => {
    await serve();
    const core = await open();
    const watch = await core.watchKind(kind, { bootstrapContents: true });
    const next = reader(watch);
    expect(await next()).toMatchObject({ type: 'bootstrapped' });
    await state.create(thing('a'));
    expect(await next()).toMatchObject({ type: 'created', resource: { metadata: { id: 'a' } } });
    await server?.stop(0);
    await state.create(thing('b'));
    await state.destroy({ ...kind, id: 'a' });
    await environment.sleep(300);
    await serve();
    expect(await next()).toMatchObject({ type: 'created', resource: { metadata: { id: 'b' } } });
    expect(await next()).toMatchObject({ type: 'destroyed', resource: { metadata: { id: 'a' } } });
    // Now it is level with the store again.
    expect(await next()).toMatchObject({ type: 'noop', bookmark: expect.anything() });
    await state.create(thing('c'));
    expect(await next()).toMatchObject({ type: 'created', resource: { metadata: { id: 'c' } } });
    await watch[Symbol.asyncDispose]();
  });

  test('a watch whose place is gone ends in an error, not in silence', async () => {
    await serve();
    const watch = await (await open()).watchKind(kind);
    const next = reader(watch);
    await state.create(thing('a'));
    expect(await next()).toMatchObject({ type: 'created' });
    await server?.stop(0);
    await state[Symbol.asyncDispose]();
    state = memoryState({ environment });
    await serve();
    expect(await next()).toMatchObject({ type: 'errored', error: { code: 'InvalidBookmark' } });
    expect(await next()).toBeUndefined();
  });

  test('a watch whose place was compacted away meanwhile ends in an error, not in silence', async () => {
    await state[Symbol.asyncDispose]();
    state = memoryState({ environment, historySize: 16 });
    await serve();
    const core = await open();
    const next = reader(await core.watchKind(kind));
    await state.create(thing('a'));
    expect(await next()).toMatchObject({ type: 'created' });
    await server?.stop(0);
    for (let index = 0; index < 100; index++) await state.create(thing(`n${index}`));
    await serve();
    expect(await next()).toMatchObject({ type: 'errored', error: { code: 'InvalidBookmark' } });
    expect(await next()).toBeUndefined();
  });

  test('a watch that is refused for a quota when it goes on tries again', async () => {
    server = await serveState({ state, environment, listen: ['unix:s'], directory, control, limits: { watchesInTotal: 1 } });
    const watch = await (await open()).watchKind(kind);
    const next = reader(watch);
    await server.stop(0);
    server = await serveState({ state, environment, listen: ['unix:s'], directory, control, limits: { watchesInTotal: 1 } });
    // Somebody else is faster.
    const other = await openRemoteState({ address: address(), environment });
    const theirs = await other.watchKind(kind);
    await state.create(thing('a'));
    await environment.sleep(400);
    await theirs[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    expect(await next()).toMatchObject({ type: 'created', resource: { metadata: { id: 'a' } } });
    await watch[Symbol.asyncDispose]();
  });

  test('a watch that is closed while it waits leaves nothing behind', async () => {
    await serve();
    const watch = await (await open()).watchKind(kind);
    await server?.stop(0);
    await environment.sleep(150);
    await watch[Symbol.asyncDispose]();
  });

  test('closing the connection ends its watches and what waits for an answer; a write that was sent has its own', async () => {
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const core = wrapCore(state, { environment });
    await serve({
      ...core,
      get: () => new Promise(() => {}),
      create: async (resource) => {
        await gate;
        return state.create(resource);
      },
    });
    const closing = await open();
    const far = wrapCore(closing, { environment });
    const watch = await far.watchKind(kind);
    const next = reader(watch)();
    const awaited = far.watchFor({ ...kind, id: 'b' }, { phases: ['running'] });
    const reading = far.get({ ...kind, id: 'a' });
    const waiting = far.waitForRevision?.(1_000);
    const writing = far.create(thing('a'));
    const lost = await far.watchKindAggregated(kind);
    const ended = lost.drain(() => {});
    await environment.sleep(50);
    await closing[Symbol.asyncDispose]();
    expect(await next).toBeUndefined();
    await ended;
    await expect(awaited).rejects.toMatchObject({ code: 'Closed' });
    await expect(reading).rejects.toMatchObject({ code: 'Closed' });
    await expect(waiting).rejects.toMatchObject({ code: 'Closed' });
    await expect(far.watchKind(kind)).rejects.toMatchObject({ code: 'Closed' });
    go();
    expect((await writing).metadata.id).toBe('a');
  });

  test('a connection that is closed while a watch waits to go on leaves nothing behind', async () => {
    await serve();
    const closing = await open();
    const next = reader(await closing.watchKind(kind))();
    await server?.stop(0);
    await environment.sleep(150);
    await closing[Symbol.asyncDispose]();
    expect(await next).toBeUndefined();
    expect(environment.open.counts()).toEqual({});
  });

  test('a watch that a server does not establish ends with its signal, or with the connection', async () => {
    const never = (): Promise<never> => new Promise(() => {});
    await serve({
      ...wrapCore(state, { environment }),
      watch: never,
      watchKind: never,
      watchKindAggregated: never,
      watchKinds: never,
      watchNamespaces: never,
    });
    const closing = await open();
    const far = wrapCore(closing, { environment });
    const calls = (options: { signal?: AbortSignal }): Promise<unknown>[] => [
      far.watch({ ...kind, id: 'a' }, options),
      far.watchKind(kind, options),
      far.watchKindAggregated(kind, options),
      far.watchKinds([kind], options),
      far.watchNamespaces?.(kind.type, options) ?? never(),
      far.watchFor({ ...kind, id: 'a' }, { phases: ['running'] }, options),
      far.follow(kind, options),
    ];
    const stop = new AbortController();
    const stopped = calls({ signal: stop.signal });
    const abandoned = calls({});
    await environment.sleep(50);
    const reason = new Error('enough');
    stop.abort(reason);
    for (const call of stopped) await expect(call).rejects.toBe(reason);
    await closing[Symbol.asyncDispose]();
    for (const call of abandoned) await expect(call).rejects.toMatchObject({ code: 'Closed' });
  });

  test('nobody there: Unavailable, with what to do', async () => {
    await expect(open()).rejects.toMatchObject({ code: 'Unavailable', message: expect.stringContaining('no server answers at unix:') });
    await serve();
    const core = await open();
    await server?.stop(0);
    await environment.sleep(50);
    await expect(core.create(thing('a'))).rejects.toMatchObject({ code: expect.stringMatching(/^(Unavailable|Ambiguous)$/) });
    await expect(core.get({ ...kind, id: 'a' })).rejects.toMatchObject({ code: 'Unavailable' });
  });
});

describe('a write whose answer does not come', () => {
  /** A store that takes a write and never answers. */
  const silent = (taken: () => void): CoreState => ({
    ...state,
    capabilities: state.capabilities,
    get: () => new Promise(() => {}),
    create: () => {
      taken();
      return new Promise(() => {});
    },
  });

  test('is Ambiguous when the caller gives up; a read rejects with the reason', async () => {
    const aborter = new AbortController();
    const reason = new Error('enough');
    await serve(silent(() => aborter.abort(reason)));
    const core = await open();
    await expect(core.create(thing('a'), { signal: aborter.signal })).rejects.toMatchObject({
      code: 'Ambiguous',
      pointer: { ...kind, id: 'a' },
      message: expect.stringContaining('read before you write again'),
    });
    const reading = new AbortController();
    const read = core.get({ ...kind, id: 'a' }, { signal: reading.signal });
    reading.abort(reason);
    await expect(read).rejects.toBe(reason);
    await expect(core.create(thing('b'), { signal: aborter.signal })).rejects.toBe(reason);
  });

  test('is Ambiguous when the server goes away, and is not sent again', async () => {
    let taken = 0;
    let arrived = (): void => {};
    const there = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const core = silent(() => {
      taken++;
      arrived();
    });
    await serve(core);
    const client = await open();
    const write = client.create(thing('a')).catch((error: unknown) => error);
    await there;
    await server?.stop(0);
    await serve(core);
    expect(await write).toMatchObject({ code: 'Ambiguous' });
    expect(taken).toBe(1);
  });
});

describe('a server of others', () => {
  const codec = new ResourceCodec();
  let grpc: GrpcServer;
  let asked: string[];

  const held = (version: string, phase: 'running' | 'tearingDown') =>
    makeResource({ metadata: { ...kind, id: 'a', version, phase, finalizers: ['f'] }, spec: {} });

  /** Knows Get and Update of one resource, and a Teardown that answers UNKNOWN, after another's won or without one. */
  async function serveLittle(teardown?: 'loses' | 'fails'): Promise<void> {
    asked = [];
    let stored = codec.toWire(held('1', 'running'));
    const answer = (call: string) => ({ call, resource: stored });
    const plain = { responseSerialize: (bytes: Buffer) => bytes };
    const answerBytes = ({ resource }: ReturnType<typeof answer>) =>
      stateService.create.requestSerialize({ resource, options: { owner: '' } });
    grpc = new GrpcServer();
    const calls = { get: { ...stateService.get, ...plain }, update: { ...stateService.update, ...plain } };
    grpc.addService({ ...calls, ...(teardown && { teardown: stateService.teardown }) } as never, {
      ...(teardown && {
        teardown: (_call: unknown, callback: (error: object) => void) => {
          asked.push('teardown');
          if (teardown === 'loses') stored = codec.toWire(held('3', 'tearingDown'));
          callback({ code: grpcCodes.unknown, details: 'resource a is not in phase running' });
        },
      }),
      get: (_call: unknown, callback: (error: null, bytes: Buffer) => void) => {
        asked.push('get');
        callback(null, answerBytes(answer('get')));
      },
      update: (call: { readonly request: UpdateRequest }, callback: (error: object | null, bytes?: Buffer) => void) => {
        asked.push(`update ${call.request.newResource?.metadata?.phase}`);
        if (call.request.newResource?.metadata?.id === 'refused') return callback({ code: grpcCodes.unknown, details: 'what?' });
        stored = call.request.newResource as typeof stored;
        callback(null, answerBytes(answer('update')));
      },
    });
    await new Promise<void>((resolve, reject) =>
      grpc.bindAsync(address(), ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
    );
  }
  afterEach(() => grpc.forceShutdown());

  test('says by its silence what it lacks, and is torn down by an update, remembered for the connection', async () => {
    await serveLittle();
    const core = await open();
    expect(core.control).toBeUndefined();
    expect([core.watchNamespaces, core.waitForRevision, core.finalizerNotes]).toEqual([undefined, undefined, undefined]);
    expect(core.capabilities).toMatchObject({ globalRevision: false, incarnations: false, multiKindWatch: false });
    expect(await core.teardown?.({ ...kind, id: 'a' })).toBe(false);
    expect(await core.teardown?.({ ...kind, id: 'a' })).toBe(false);
    expect(asked).toEqual(['get', 'update tearingDown', 'get']);
    await expect(core.destroy({ ...kind, id: 'a' }, { uid: '1' })).rejects.toMatchObject({ code: 'Unsupported' });
    const several = await core.watchKinds([kind]);
    expect((await several[Symbol.asyncIterator]().next()).value).toMatchObject([
      { type: 'kindErrored', kind, error: { code: 'Unsupported' } },
    ]);
    await several[Symbol.asyncDispose]();
    await expect(core.watchKinds([kind], { tailEvents: 1 })).rejects.toMatchObject({ code: 'Unsupported' });
    await remote?.[Symbol.asyncDispose]();
  });

  test('an UNKNOWN of it after a teardown is read again: what is in teardown was torn down, else it stays Ambiguous', async () => {
    await serveLittle('loses');
    expect(await (await open()).teardown?.({ ...kind, id: 'a' })).toBe(false);
    expect(asked).toEqual(['teardown', 'get']);
    await remote?.[Symbol.asyncDispose]();
    grpc.forceShutdown();
    await serveLittle('fails');
    await expect((await open()).teardown?.({ ...kind, id: 'a' })).rejects.toMatchObject({ code: 'Ambiguous' });
    expect(asked).toEqual(['teardown', 'get']);
    await remote?.[Symbol.asyncDispose]();
  });

  test('an UNKNOWN of it after a write is Ambiguous', async () => {
    await serveLittle();
    const core = await open();
    await expect(core.update({ metadata: { ...kind, id: 'refused', version: '1' }, spec: {} })).rejects.toMatchObject({
      code: 'Ambiguous',
    });
    await remote?.[Symbol.asyncDispose]();
  });
});

test('writes under a lease: the server says honestly that it has none', async () => {
  await serve();
  const core = await open();
  expect(core.control?.info.capabilities).not.toContain('fencedWrites');
  const client = new Client(address(), credentials.createInsecure());
  const { path, requestSerialize, responseDeserialize } = controlService.fencedWrite;
  const fence = { ...kind, id: 'lease', holder: 'me', term: 1 };
  const request = { fence, destroy: { ...kind, id: 'a', options: { owner: '' } } };
  const code = await new Promise((resolve) =>
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error) => resolve(error?.code)),
  );
  client.close();
  expect(code).toBe(grpcCodes.unimplemented);
});

test('a closed connection says so', async () => {
  await serve();
  const core = await open();
  await core[Symbol.asyncDispose]();
  await expect(core.get({ ...kind, id: 'a' })).rejects.toMatchObject({ code: 'Closed' });
});
