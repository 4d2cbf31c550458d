import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { watchOptions } from '../../test/server/world.ts';
import { memoryState } from '../backends/memory/index.ts';
import { nodeEnvironment } from '../environment/index.ts';
import type { Resource } from '../resource/index.ts';
import { Bytes, makeResource } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import type { WatchRequest, WatchResponse, WireEvent, WireWatchOptions } from '../wire/index.ts';
import { grpcCodes, ResourceCodec, stateService } from '../wire/index.ts';
import type { Server, ServeStateOptions } from './index.ts';
import { parseListenAddress, serveState } from './index.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };
const codec = new ResourceCodec();
const control = { version: '0', pid: 1, store: 'memory:' };
let environment: ReturnType<typeof nodeEnvironment>;
let directory: string;
let state: CoreState & AsyncDisposable;
let servers: Server[];
let clients: Client[];

beforeEach(async () => {
  environment = nodeEnvironment();
  directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  state = memoryState({ environment });
  servers = [];
  clients = [];
});
afterEach(async () => {
  for (const client of clients) client.close();
  for (const server of servers) await server.stop(200);
  await state[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

async function serve(options: Partial<ServeStateOptions> = {}): Promise<Server> {
  const server = await serveState({ state, environment, listen: ['unix:run/api.sock'], directory, control, ...options });
  servers.push(server);
  return server;
}

function clientOf(server: Server): Client {
  const address = (server.addresses[0] as string).replace('grpc://', '');
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.default_authority': 'localhost',
  });
  clients.push(client);
  return client;
}

type Method = {
  readonly path: string;
  readonly requestSerialize: (message: never) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => unknown;
};

function call(
  client: Client,
  method: Method,
  request: unknown,
): Promise<{ readonly code: number; readonly value?: unknown; readonly message: string }> {
  return new Promise((resolve) => {
    const serialize = (message: unknown) => (Buffer.isBuffer(message) ? message : method.requestSerialize(message as never));
    client.makeUnaryRequest(method.path, serialize, method.responseDeserialize, request, new Metadata(), {}, (error, value) =>
      resolve(error === null ? { code: 0, value, message: '' } : { code: error.code, message: error.details }),
    );
  });
}

/** The messages of a watch, one after another. */
function watch(client: Client, request: Partial<Omit<WatchRequest, 'options'>> & { readonly options?: Partial<WireWatchOptions> } = {}) {
  const { requestSerialize, responseDeserialize, path } = stateService.watch;
  const full = { ...kind, apiVersion: 1, ...request, options: { ...watchOptions, ...request.options } };
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, full);
  const ended = new Promise<number>((resolve) => stream.on('status', ({ code }) => resolve(code)));
  stream.on('error', () => {});
  const messages = stream[Symbol.asyncIterator]() as AsyncIterableIterator<WatchResponse>;
  return {
    stream,
    ended,
    async next(): Promise<readonly WireEvent[]> {
      return ((await messages.next()).value as WatchResponse).event;
    },
  };
}

const wire = (id: string, spec: unknown = { n: 1 }, more: object = {}) =>
  codec.toWire(makeResource({ metadata: { ...kind, id, ...more }, spec }));
const forms = ({ spec }: ReturnType<typeof wire>) => spec && [[...spec.protoSpec], spec.yamlSpec];
const create = (id: string, spec: unknown = { n: 1 }): Promise<Resource> => state.create({ metadata: { ...kind, id }, spec });
const request = (id: string, owner = '') => ({ ...kind, id, options: { owner } });

describe('where it listens', () => {
  test('a folder of its own and a socket that only the owner may use', async () => {
    const server = await serve();
    expect(server.addresses).toEqual([`unix:${join(directory, 'run/api.sock')}`]);
    expect((await stat(join(directory, 'run'))).mode & 0o777).toBe(0o700);
    expect((await stat(join(directory, 'run/api.sock'))).mode & 0o777).toBe(0o600);
    await server.stop();
    expect(await readdir(join(directory, 'run'))).toEqual([]);
  });

  test('a socket that a dead process left over is removed, one that is in use is not', async () => {
    const first = await serve();
    const second = memoryState({ environment });
    await expect(serve({ state: second })).rejects.toMatchObject({ code: 'Locked' });
    await second[Symbol.asyncDispose]();
    expect(await call(clientOf(first), stateService.get, { ...kind, id: 'x' })).toMatchObject({ code: grpcCodes.notFound });
    await first.stop();
    const path = join(directory, 'run/api.sock');
    const holder = createServer().listen(`${path}.old`);
    await once(holder, 'listening');
    await import('node:fs/promises').then(({ rename }) => rename(`${path}.old`, path));
    holder.close();
    await once(holder, 'close');
    expect((await stat(path)).isSocket()).toBe(true);
    await serve();
  });

  test('the socket of a server that took the place of another outlives that other one, whenever it came', async () => {
    const path = join(directory, 'run/api.sock');
    const get = async (server: Server): Promise<void> =>
      expect(await call(clientOf(server), stateService.get, { ...kind, id: 'x' })).toMatchObject({ code: grpcCodes.notFound });
    const first = await serve();
    await rm(path);
    const second = await serve();
    await first.stop();
    await get(second);
    // It comes while the one before it still lets its calls end.
    const ended = second.stop(200);
    while ((await stat(path).catch(() => undefined)) !== undefined) await environment.sleep(1);
    const third = await serve();
    await ended;
    await get(third);
    expect(await readdir(join(directory, 'run'))).toEqual(['api.sock']);
    await third.stop();
    expect(await readdir(join(directory, 'run'))).toEqual([]);
  });

  test('a file that is no socket is left alone', async () => {
    await writeFile(join(directory, 'file'), 'mine');
    await expect(serve({ listen: ['unix:file'] })).rejects.toMatchObject({ code: 'Invalid' });
    expect((await stat(join(directory, 'file'))).size).toBe(4);
  });

  test('paths over 100 bytes, and addresses beyond loopback, are refused', async () => {
    expect(() => parseListenAddress(`unix:${'x'.repeat(101)}`, '/')).toThrow(/at most 100/);
    expect(() => parseListenAddress('unix:', '/')).toThrow(/expected a path/);
    expect(() => parseListenAddress('unix:api.sock', '/a\nb')).toThrow(/holds a line break/);
    for (const address of ['grpc://0.0.0.0:1', 'grpc://example.com:1', 'grpcs://127.0.0.1:1']) {
      expect(() => parseListenAddress(address, '/')).toThrow(/loopback/);
    }
    expect(() => parseListenAddress('http://127.0.0.1:1', '/')).toThrow(/expected unix:/);
    expect(parseListenAddress('unix:///abs/s', '/x')).toEqual({ kind: 'unix', path: '/abs/s' });
  });

  test('loopback on a free port', async () => {
    const server = await serve({ listen: ['grpc://127.0.0.1:0'] });
    expect(server.addresses[0]).toMatch(/^grpc:\/\/127\.0\.0\.1:[1-9][0-9]+$/);
    expect(await call(clientOf(server), stateService.get, { ...kind, id: 'x' })).toMatchObject({ code: grpcCodes.notFound });
  });
});

describe('calls', () => {
  test('create and update answer the resource with its owner', async () => {
    const client = clientOf(await serve());
    const made = await call(client, stateService.create, { resource: wire('a'), options: { owner: 'A' } });
    const { resource } = made.value as { resource: ReturnType<typeof wire> };
    expect(resource.metadata).toMatchObject({ owner: 'A', id: 'a' });
    expect(resource.metadata?.version).toMatch(/^[0-9]+$/);
    const changed = await call(client, stateService.update, { newResource: { ...resource }, options: { owner: 'A' } });
    expect((changed.value as typeof made & { resource: ReturnType<typeof wire> }).resource.metadata).toMatchObject({ owner: 'A' });
  });

  test('forged uid and times are ignored, a forged owner is an owner conflict', async () => {
    const client = clientOf(await serve());
    const forged = wire('a', {}, { uid: '777', created: '2000-01-01T00:00:00Z' });
    const { value } = await call(client, stateService.create, { resource: forged, options: { owner: '' } });
    const { metadata } = codec.fromWire((value as { resource: typeof forged }).resource);
    expect(metadata.uid).not.toBe('777');
    expect(metadata.created).not.toMatch(/^2000/);
    expect(await call(client, stateService.create, { resource: wire('b', {}, { owner: 'X' }), options: { owner: '' } })).toMatchObject({
      code: grpcCodes.permissionDenied,
    });
  });

  test('expected_phase absent means any phase, a phase that does not fit is INVALID_ARGUMENT', async () => {
    const client = clientOf(await serve());
    const made = await create('a');
    const down = await state.update({ metadata: { ...made.metadata, phase: 'tearingDown' }, spec: made.spec });
    const newResource = codec.toWire(down);
    expect(await call(client, stateService.update, { newResource, options: { owner: '', expectedPhase: 'running' } })).toMatchObject({
      code: grpcCodes.invalidArgument,
    });
    expect(await call(client, stateService.update, { newResource, options: { owner: '' } })).toMatchObject({ code: 0 });
    expect(await call(client, stateService.update, { newResource, options: { owner: '', expectedPhase: 'gone' } })).toMatchObject({
      code: grpcCodes.unknown,
    });
  });

  test('bytes that are no message, text that is not UTF-8, names that cannot be: INVALID_ARGUMENT, on an update UNKNOWN', async () => {
    const client = clientOf(await serve());
    for (const bytes of [Buffer.from([0x0a, 0x7f]), Buffer.from([0x0a, 0x02, 0xff, 0xfe]), Buffer.from([0x80])]) {
      for (const method of [stateService.get, stateService.create, stateService.destroy, stateService.teardown])
        expect(await call(client, method, bytes)).toMatchObject({ code: grpcCodes.invalidArgument });
      expect(await call(client, stateService.update, bytes)).toMatchObject({ code: grpcCodes.unknown });
    }
    for (const id of ['', 'a\u0000', 'x'.repeat(1025)])
      expect(await call(client, stateService.get, { ...kind, id })).toMatchObject({ code: grpcCodes.invalidArgument });
    const nobody = { newResource: { spec: { protoSpec: new Uint8Array(), yamlSpec: '' } }, options: { owner: '' } };
    expect(await call(client, stateService.update, nobody)).toMatchObject({ code: grpcCodes.unknown });
  });

  test('a list is sorted by the bytes of its ids', async () => {
    const client = clientOf(await serve());
    for (const id of ['b', 'a', '\u{10000}', '\uffff', 'B']) await create(id);
    const { path, requestSerialize, responseDeserialize } = stateService.list;
    const found: string[] = [];
    const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { ...kind, options: { labelQuery: [] } });
    for await (const answer of stream) found.push((answer as { resource: ReturnType<typeof wire> }).resource.metadata?.id ?? '');
    expect(found).toEqual(['B', 'a', 'b', '\uffff', '\u{10000}']);
  });

  test('an expression without linear time, or none at all, is INVALID_ARGUMENT', async () => {
    const client = clientOf(await serve());
    for (const regexp of ['(', '(?=a)', '(a)\\1'])
      expect(await watch(client, { options: { idQuery: { regexp } } }).ended).toBe(grpcCodes.invalidArgument);
  });

  test('teardownAndDestroy blocks until the finalizers are gone, and ends with its client', async () => {
    const client = clientOf(await serve());
    const made = await state.create({ metadata: { ...kind, id: 'a', finalizers: ['f'] }, spec: {} });
    let done = false;
    const both = call(client, stateService.teardownAndDestroy, request('a')).then((answer) => {
      done = true;
      return answer;
    });
    const tail = watch(client, { id: 'a' });
    await tail.next();
    for (;;) {
      const [event] = await tail.next();
      if (event?.resource?.metadata?.phase === 'tearingDown') break;
    }
    expect(done).toBe(false);
    const current = await state.get({ ...kind, id: 'a' });
    await state.update({ metadata: { ...current.metadata, finalizers: [] }, spec: made.spec }, { expectedPhase: 'any' });
    expect(await both).toMatchObject({ code: 0 });
    tail.stream.cancel();
  });

  test('a write that would lose a protobuf form is refused, one of metadata keeps both forms', async () => {
    const client = clientOf(await serve());
    const both = { protoSpec: Uint8Array.of(1, 2), yamlSpec: 'n: 1\n' };
    const made = await call(client, stateService.create, { resource: { ...wire('a'), spec: both }, options: { owner: '' } });
    const { resource } = made.value as { resource: ReturnType<typeof wire> };
    expect(forms(resource)).toEqual([[1, 2], 'n: 1\n']);
    const lost = { ...resource, spec: { protoSpec: new Uint8Array(), yamlSpec: 'n: 2\n' } };
    const refused = await call(client, stateService.update, { newResource: lost, options: { owner: '' } });
    expect(refused).toMatchObject({ code: grpcCodes.unknown, message: expect.stringContaining('protobuf form') });
    const labelled = { ...resource, metadata: { ...(resource.metadata as NonNullable<typeof resource.metadata>), labels: { a: 'b' } } };
    const changed = await call(client, stateService.update, { newResource: labelled, options: { owner: '' } });
    expect(forms((changed.value as { resource: typeof resource }).resource)).toEqual([[1, 2], 'n: 1\n']);
  });

  test('a spec that is protobuf alone outlives an update of metadata, byte for byte', async () => {
    const client = clientOf(await serve());
    const spec = { protoSpec: Uint8Array.of(255, 0, 1), yamlSpec: '' };
    const made = await call(client, stateService.create, { resource: { ...wire('a'), spec }, options: { owner: '' } });
    const { resource } = made.value as { resource: ReturnType<typeof wire> };
    const labelled = { ...resource, metadata: { ...(resource.metadata as NonNullable<typeof resource.metadata>), labels: { a: 'b' } } };
    const changed = await call(client, stateService.update, { newResource: labelled, options: { owner: '' } });
    expect(forms((changed.value as { resource: typeof resource }).resource)).toEqual([[255, 0, 1], '']);
    expect(await call(client, stateService.teardown, request('a'))).toMatchObject({ code: 0 });
    const got = await call(client, stateService.get, { ...kind, id: 'a' });
    expect(forms((got.value as { resource: typeof resource }).resource)).toEqual([[255, 0, 1], '']);
  });

  test('what cannot travel is refused at the write', async () => {
    const client = clientOf(await serve({ limits: { requestBytes: 8 * 1024 * 1024 } }));
    const resource = { ...wire('a'), spec: { protoSpec: new Uint8Array(3_950_000), yamlSpec: '' } };
    expect(await call(client, stateService.create, { resource, options: { owner: '' } })).toMatchObject({
      code: grpcCodes.invalidArgument,
    });
    expect((await state.list(kind)).items).toEqual([]);
  });
});

describe('watches', () => {
  test('the first message is empty and comes at once; errors of the start come instead of it', async () => {
    const client = clientOf(await serve());
    const open = watch(client);
    expect(await open.next()).toEqual([]);
    open.stream.cancel();
    const cases: readonly [Parameters<typeof watch>[1], number][] = [
      [{ id: 'a', options: { bootstrapContents: true } }, grpcCodes.unimplemented],
      [{ id: 'a', options: { labelQuery: [{ terms: [] }] } }, grpcCodes.unimplemented],
      [{ options: { startFromBookmark: Uint8Array.of(9, 9) } }, grpcCodes.failedPrecondition],
      [{ options: { tailEvents: 1, bootstrapContents: true } }, grpcCodes.invalidArgument],
      [{ options: { tailEvents: -1 } }, grpcCodes.invalidArgument],
      [{ id: '' }, grpcCodes.invalidArgument],
    ];
    for (const [given, code] of cases) expect(await watch(client, given).ended, JSON.stringify(given)).toBe(code);
  });

  test('one message per event; aggregated, one per batch', async () => {
    const client = clientOf(await serve());
    for (const id of ['a', 'b', 'c']) await create(id);
    const single = watch(client, { options: { bootstrapContents: true } });
    const batched = watch(client, { options: { bootstrapContents: true, aggregated: true } });
    const types = (events: readonly WireEvent[]) => events.map(({ eventType }) => eventType);
    expect([await single.next(), await single.next(), await single.next(), await single.next(), await single.next()].map(types)).toEqual([
      [],
      [0],
      [0],
      [0],
      [3],
    ]);
    expect(await batched.next()).toEqual([]);
    const together: number[] = [];
    let messages = 0;
    for (; together.length < 4; messages++) together.push(...types(await batched.next()));
    expect(together).toEqual([0, 0, 0, 3]);
    expect(messages).toBeLessThan(4);
    single.stream.cancel();
    batched.stream.cancel();
  });

  test('no message over 4 MiB, whatever the batch', async () => {
    const client = clientOf(await serve());
    for (let index = 0; index < 12; index++) await create(`n${index}`, { text: 'x'.repeat(900_000) });
    const open = watch(client, { options: { bootstrapContents: true, aggregated: true } });
    let seen = 0;
    // The client's own cap of 4 MiB ends the stream when it is exceeded.
    while (seen < 13) seen += (await open.next()).length;
    open.stream.cancel();
  });

  test('api_version below 1 never gets BOOTSTRAPPED', async () => {
    const client = clientOf(await serve());
    await create('a');
    const open = watch(client, { apiVersion: 0, options: { bootstrapContents: true } });
    await open.next();
    await open.next();
    await create('b');
    expect((await open.next())[0]).toMatchObject({ eventType: 0, resource: { metadata: { id: 'b' } } });
    open.stream.cancel();
  });

  test('bootstrap: only CREATED, each id once, in order, no bookmark; changes made meanwhile wait; BOOTSTRAPPED once', async () => {
    const client = clientOf(await serve());
    for (let index = 0; index < 2000; index++) await create(`n${String(index).padStart(4, '0')}`);
    const open = watch(client, { options: { bootstrapContents: true } });
    await open.next();
    await create('n0000a');
    await state.destroy({ ...kind, id: 'n1999' });
    const ids: string[] = [];
    let event: WireEvent | undefined;
    for (;;) {
      [event] = await open.next();
      if (event?.eventType === 3) break;
      expect(event?.eventType).toBe(0);
      expect(event?.bookmark).toBeUndefined();
      ids.push(event?.resource?.metadata?.id ?? '');
    }
    expect(event.bookmark?.length).toBeGreaterThan(0);
    expect(ids).toEqual([...new Set(ids)].sort());
    expect((await open.next())[0]).toMatchObject({ eventType: 0, resource: { metadata: { id: 'n0000a' } } });
    expect((await open.next())[0]).toMatchObject({ eventType: 2, resource: { metadata: { id: 'n1999' } } });
    open.stream.cancel();
  });

  test('a bookmark alone comes only to who showed to know them', async () => {
    const client = clientOf(await serve());
    await create('a');
    const asked = watch(client, { options: { bootstrapBookmark: true } });
    await asked.next();
    const [noop] = await asked.next();
    expect(noop).toMatchObject({ eventType: 5, resource: { metadata: { ...kind, id: '', version: 'undefined' } } });
    await create('b');
    const resumed = watch(client, { options: { startFromBookmark: noop?.bookmark as Uint8Array } });
    await resumed.next();
    expect((await resumed.next())[0]).toMatchObject({ eventType: 0, resource: { metadata: { id: 'b' } } });
    asked.stream.cancel();
    resumed.stream.cancel();
  });

  test('one that is not read holds nothing up, and catches up with the state', async () => {
    await state[Symbol.asyncDispose]();
    state = memoryState({ environment, historySize: 16 });
    const client = clientOf(await serve());
    const slow = watch(client, { options: { aggregated: true, bootstrapContents: true } });
    expect(await slow.next()).toEqual([]);
    expect((await slow.next()).map(({ eventType }) => eventType)).toEqual([3]);
    slow.stream.pause();
    const text = 'x'.repeat(20_000);
    for (let index = 0; index < 3000; index++) {
      if (index < 10) await create(`n${index}`, { text, index });
      else {
        const current = await state.get({ ...kind, id: `n${index % 10}` });
        await state.update({ metadata: current.metadata, spec: { text, index } });
      }
      if (index % 100 === 0) await environment.breathe();
    }
    const latest = new Map<string, string | undefined>();
    let events = 0;
    while ([...latest.values()].filter((value) => Number(value) > 2990).length < 10) {
      for (const { resource, eventType } of await slow.next()) {
        // Never a second BOOTSTRAPPED, and nothing that others would not know.
        expect([0, 1, 2]).toContain(eventType);
        latest.set(resource?.metadata?.id ?? '', resource?.metadata?.version);
        events++;
      }
    }
    expect(events).toBeLessThan(3000);
    slow.stream.cancel();
  });
});

describe('the end', () => {
  test('watches end cleanly, and nothing waits for a client that stays or goes', async () => {
    const server = await serve();
    const client = clientOf(server);
    const open = watch(client);
    await open.next();
    const started = environment.elapsed();
    await server.stop(5_000);
    expect(await open.ended).toBe(grpcCodes.ok);
    expect(environment.elapsed() - started).toBeLessThan(2_000);
  });

  test('a call that blocks is cut after the grace', async () => {
    const server = await serve();
    const client = clientOf(server);
    await state.create({ metadata: { ...kind, id: 'a', finalizers: ['f'] }, spec: {} });
    const blocked = call(client, stateService.teardownAndDestroy, request('a'));
    await environment.sleep(50);
    await server.stop(100);
    expect((await blocked).code).not.toBe(0);
  });
});

test('a spec of a known depth, an alias bomb in YAML: kept as opaque text, walked by nobody', async () => {
  const client = clientOf(await serve());
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from(
    { length: 20 },
    (_, index) =>
      `b${index}: &b${index} [${Array(9)
        .fill(index === 0 ? '*a' : `*b${index - 1}`)
        .join(',')}]`,
  ).join('\n')}\n`;
  const resource = { ...wire('a'), spec: { protoSpec: new Uint8Array(), yamlSpec: bomb } };
  expect(await call(client, stateService.create, { resource, options: { owner: '' } })).toMatchObject({ code: 0 });
  const got = await call(client, stateService.get, { ...kind, id: 'a' });
  expect((got.value as { resource: typeof resource }).resource.spec.yamlSpec).toBe(bomb);
});

test('bookmarks of the store go over the wire as they are', async () => {
  const client = clientOf(await serve());
  const open = watch(client, { options: { bootstrapContents: true } });
  await open.next();
  const [event] = await open.next();
  await create('a');
  const mine = await state.watchKind(kind, { startFromBookmark: Bytes.from(event?.bookmark as Uint8Array) });
  const { value } = await mine[Symbol.asyncIterator]().next();
  expect(value).toMatchObject({ type: 'created' });
  await mine[Symbol.asyncDispose]();
  open.stream.cancel();
});
