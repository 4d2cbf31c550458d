import type { Client } from '@grpc/grpc-js';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeResource, SteadystateError } from '../../src/resource/index.ts';
import type { CoreState, StateEvent } from '../../src/state/index.ts';
import { openStore } from '../../src/stores/index.ts';
import type { ListRequest, ResourceAnswer, WatchResponse, WireLabelTerm, WireResource } from '../../src/wire/index.ts';
import { grpcCodes, revisionKey, stateService } from '../../src/wire/index.ts';
import { codec, kind, World, watchOptions } from './world.ts';

const none = new Uint8Array();
let world: World;
let client: Client;

beforeEach(async () => {
  world = await World.serve('unix', { limits: { requestBytes: 8 * 1024 * 1024 } });
  client = clientOf(world);
});
afterEach(async () => {
  client.close();
  await world[Symbol.asyncDispose]();
});

function clientOf({ address }: World): Client {
  return new GrpcClient(address, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.default_authority': 'localhost',
  });
}

interface Ended {
  readonly code: number;
  readonly message: string;
}

function write(which: 'create' | 'update', resource: WireResource): Promise<Ended & { readonly resource?: WireResource | undefined }> {
  const bytes =
    which === 'create'
      ? stateService.create.requestSerialize({ resource, options: { owner: '' } })
      : stateService.update.requestSerialize({ newResource: resource, options: { owner: '' } });
  const { path, responseDeserialize } = stateService[which];
  return new Promise((resolve) => {
    const serialize = (message: Buffer) => message;
    client.makeUnaryRequest(path, serialize, responseDeserialize, bytes, new Metadata(), {}, (error, value) =>
      resolve(error === null ? { code: 0, message: '', ...(value as ResourceAnswer) } : { code: error.code, message: error.details }),
    );
  });
}

function stream<Message>(method: 'list' | 'watch', request: unknown, onMessage: (message: Message) => boolean): Promise<Ended> {
  const { path, requestSerialize, responseDeserialize } = stateService[method];
  const call = client.makeServerStreamRequest(path, requestSerialize as never, responseDeserialize as never, request);
  call.on('data', (message: Message) => void (onMessage(message) || call.cancel()));
  call.on('error', () => {});
  return new Promise((resolve) => call.on('status', ({ code, details }) => resolve({ code, message: details })));
}

async function listed(terms: readonly WireLabelTerm[]): Promise<Ended & { readonly ids: readonly string[] }> {
  const ids: string[] = [];
  const request: ListRequest = { ...kind, options: { labelQuery: [{ terms }] } };
  const ended = await stream<ResourceAnswer>('list', request, ({ resource }) => ids.push(resource?.metadata?.id ?? '') > 0);
  return { ...ended, ids };
}

const wire = (id: string, more: object = {}): WireResource => codec.toWire(makeResource({ metadata: { ...kind, id, ...more }, spec: {} }));
const made = ({ resource }: { readonly resource?: WireResource | undefined }): WireResource => resource as WireResource;

test('a spec goes back to its zero value: its protobuf form is empty, which the protocol cannot tell from none', async () => {
  const first = await write('create', { ...wire('a'), spec: { protoSpec: Uint8Array.of(10, 1, 97), yamlSpec: 'description: a\n' } });
  const zero = { ...made(first), spec: { protoSpec: none, yamlSpec: 'description: ""\ncount: 0\nlist: []\nnested: null\n' } };
  const second = await write('update', zero);
  expect(second).toMatchObject({ code: grpcCodes.ok, resource: { spec: { yamlSpec: zero.spec.yamlSpec } } });
  expect(made(second).spec?.protoSpec).toHaveLength(0);
  const third = await write('update', { ...made(second), spec: { protoSpec: Uint8Array.of(10, 1, 98), yamlSpec: 'description: b\n' } });
  expect(third.code).toBe(grpcCodes.ok);
  // What says more than that would be lost to readers of the protobuf form.
  const lost = await write('update', { ...made(third), spec: { protoSpec: none, yamlSpec: 'description: c\n' } });
  expect(lost).toMatchObject({ code: grpcCodes.unknown, message: expect.stringContaining('protobuf form') });
});

test('metadata counts for what can travel, as the spec does', async () => {
  const text = 'x'.repeat(1_300_000);
  for (const metadata of [
    { annotations: { a: text, b: text, c: text } },
    { labels: { a: text, b: text, c: text } },
    { finalizers: Array.from({ length: 3_950 }, (_, index) => `${index}`.padEnd(1_000, 'f')) },
  ])
    expect(await write('create', wire('a', metadata))).toMatchObject({
      code: grpcCodes.invalidArgument,
      message: expect.stringContaining('can be sent'),
    });
  expect((await world.state.list(kind)).items).toEqual([]);
});

test('an operation of label queries that is not known is UNIMPLEMENTED; NOT_EXISTS is what it says, whatever else the term says', async () => {
  await write('create', wire('with', { labels: { app: 'a' } }));
  await write('create', wire('without'));
  const term = { key: 'app', value: [], invert: false };
  expect((await listed([{ ...term, op: 8 }])).code).toBe(grpcCodes.unimplemented);
  for (const invert of [false, true])
    expect(await listed([{ ...term, op: 2, invert }])).toMatchObject({ code: grpcCodes.ok, ids: ['without'] });
});

test('a bookmark without bytes is no place to go on from, and never the beginning of another watch', async () => {
  for (const id of [undefined, 'a']) {
    const request = { ...kind, ...(id !== undefined && { id }), apiVersion: 1, options: { ...watchOptions, startFromBookmark: none } };
    const seen: WatchResponse[] = [];
    expect((await stream<WatchResponse>('watch', request, (message) => seen.push(message) < 1)).code).toBe(grpcCodes.failedPrecondition);
    expect(seen).toEqual([]);
  }
});

test('writes, destroys and lists tell their revision behind the answer', async () => {
  await using store = await openStore('memory:', { environment: world.environment, directory: '/' });
  const control = { version: '0', pid: 1, store: 'memory:', ...(store.revision && { revision: store.revision }) };
  await using served = await World.serve('unix', { state: store.state, control });
  client.close();
  client = clientOf(served);
  const revisionOf = (path: string, bytes: Buffer): Promise<string | undefined> =>
    new Promise((resolve) => {
      const same = (message: Buffer) => message;
      const call = client.makeServerStreamRequest(path, same, same, bytes);
      call.on('data', () => {});
      call.on('error', () => {});
      call.on('status', ({ metadata }: { readonly metadata: Metadata }) => resolve(metadata.get(revisionKey)[0]?.toString()));
    });
  const { create, update, destroy, list } = stateService;
  const owner = { owner: '' };
  const bytes = create.requestSerialize({ resource: wire('a'), options: owner });
  expect(await revisionOf(create.path, bytes)).toBe('1');
  expect(await revisionOf(create.path, bytes)).toBeUndefined();
  const stored = codec.toWire(await store.state.get({ ...kind, id: 'a' }));
  expect(await revisionOf(update.path, update.requestSerialize({ newResource: stored, options: owner }))).toBe('2');
  expect(await revisionOf(destroy.path, destroy.requestSerialize({ ...kind, id: 'a', options: owner }))).toBe('3');
  expect(await revisionOf(list.path, list.requestSerialize({ ...kind, options: { labelQuery: [] } }))).toBe('3');
});

test('who does not know ERRORED is told by the status; others by the event', async () => {
  const error = new SteadystateError('InvalidBookmark', 'history is gone');
  const core: CoreState = {
    capabilities: world.state.capabilities,
    get: world.state.get.bind(world.state),
    list: world.state.list.bind(world.state),
    create: world.state.create.bind(world.state),
    update: world.state.update.bind(world.state),
    destroy: world.state.destroy.bind(world.state),
    watch: world.state.watch.bind(world.state),
    watchKind: world.state.watchKind.bind(world.state),
    watchKinds: world.state.watchKinds.bind(world.state),
    async watchKindAggregated() {
      async function* events(): AsyncGenerator<readonly StateEvent[], undefined> {
        yield [{ type: 'errored', error }];
      }
      return Object.assign(events(), { [Symbol.asyncDispose]: async () => {} }) as never;
    },
  };
  await using other = await World.serve('unix', { state: core });
  client.close();
  client = clientOf(other);
  for (const apiVersion of [0, 1]) {
    const seen: (number | undefined)[] = [];
    const request = { ...kind, apiVersion, options: watchOptions };
    const ended = await stream<WatchResponse>('watch', request, ({ event }) => {
      if (event[0] !== undefined) seen.push(event[0].eventType);
      return true;
    });
    expect([ended.code, seen]).toEqual(apiVersion === 0 ? [grpcCodes.failedPrecondition, []] : [grpcCodes.ok, [4]]);
  }
});
