import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { DefinitionRegistry, defineResource, makeResource } from '../../src/resource/index.ts';
import type { WireResource } from '../../src/wire/index.ts';
import { controlService, grpcCodes, stateService } from '../../src/wire/index.ts';
import type { Answer } from '../server/world.ts';
import { codec, ending, expectServed, framed, kind, openCall, World } from '../server/world.ts';
import { aliasBomb, expectUntouched, mergeBomb } from './untouched.ts';

/** A type that the server knows, so that it reads specs of it. */
const things = defineResource({ type: kind.type, spec: z.any() });
const registry = new DefinitionRegistry([things]);

type Service = typeof stateService & typeof controlService;
type Call = keyof Service;

let world: World;

beforeAll(async () => {
  world = await World.serve('unix', {
    registry,
    control: {
      version: '0',
      pid: 1,
      store: 'memory:',
      validate: (resource) => registry.get(resource.metadata.type)?.from(resource as never) ?? (resource as never),
    },
  });
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(async () => {
  expectUntouched();
  await expectServed(await world.client());
});

function call(name: Call, message: unknown): Promise<Answer & { readonly bytes: Buffer }> {
  const method = ({ ...stateService, ...controlService } as Service)[name];
  const serialize = method.requestSerialize as (message: unknown) => Buffer;
  return answered(method.path, Buffer.isBuffer(message) ? message : serialize(message));
}

async function answered(path: string, body: Buffer): Promise<Answer & { readonly bytes: Buffer }> {
  const session = world.session();
  const stream = openCall(session, path);
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.end(framed(body));
  const answer = await ending(stream);
  session.close();
  return { ...answer, bytes: Buffer.concat(chunks).subarray(5) };
}

const options = { owner: '' };
const watchOptions = { bootstrapContents: false, tailEvents: 0, labelQuery: [], aggregated: true, bootstrapBookmark: false, strict: false };

/** A resource as a client that checks nothing would send it. */
function wire(yamlSpec: string, metadata: object = {}): WireResource {
  const made = codec.toWire(makeResource({ metadata: { ...kind, id: 'bad' }, spec: {} }));
  return {
    metadata: { ...(made.metadata as NonNullable<typeof made.metadata>), ...metadata },
    spec: { protoSpec: new Uint8Array(), yamlSpec },
  };
}

/** Every call that carries a spec; a Go client reads INVALID_ARGUMENT of an update as a phase conflict, so that one says UNKNOWN. */
const carriers: readonly (readonly [Call, (resource: WireResource) => unknown, number])[] = [
  ['create', (resource) => ({ resource, options }), grpcCodes.invalidArgument],
  ['update', (newResource) => ({ newResource, options }), grpcCodes.unknown],
];

describe.each<[string, string, RegExp]>([
  ['row 1: an alias bomb', aliasBomb(9), /more than 200000 nodes/],
  ['row 2: merge keys', 'a: &a {b: 1}\nc: {<<: *a}', /merge keys/],
  ['row 2: merge keys of merge keys', mergeBomb(9), /merge keys/],
  ['row 3: flow nested 100k deep', '['.repeat(100_000), /nested deeper than 100/],
  ['row 3: JSON nested 100k deep', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, /nested deeper than 100/],
  ['row 3: blocks nested 100k deep', '- '.repeat(100_000), /nested deeper than 100/],
  ['row 3: a staircase', Array.from({ length: 2_000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'), /nested deeper than 100/],
  ['row 6: __proto__ in YAML', '__proto__: {polluted: 1}', /__proto__.*not allowed/],
  ['row 6: __proto__ in JSON', '{"__proto__": {"polluted": 1}}', /__proto__.*not allowed/],
  ['row 6: __proto__ deep below', 'a: {constructor: {prototype: {__proto__: {polluted: 1}}}}', /__proto__.*not allowed/],
  ['row 7: duplicate keys', '{"a": 1, "a": 2}', /stands here twice/],
  ['row 7: duplicate keys by escapes', '{"a": 1, "\\u0061": 2}', /stands here twice/],
  ['row 7: 1e400', '{"a": 1e400}', /not a finite number/],
  ['row 7: -1e400', '{"a": -1e400}', /not a finite number/],
  ['row 7: not a number', 'a: .nan', /not a finite number/],
  ['row 7: infinity', 'a: .inf', /not a finite number/],
  ['row 7: a float that would be rounded', '{"a": 9007199254740993.0}', /beyond 2\^53/],
  ['row 7: half a surrogate pair', '{"a": "\\ud800"}', /surrogate|Unicode/],
  ['row 7: half a surrogate pair as a key', '{"\\udc00": 1}', /surrogate|Unicode/],
  ['row 24: a tag that nobody knows', 'a: !!js/function "x"', /js\/function/],
  ['row 24: a tag of another language', 'a: !!python/object/apply:os.system ["id"]', /python/],
])('a spec that cannot be: %s', (_name, text, message) => {
  test.each(carriers)('%s', async (name, request, code) => {
    const answer = await call(name, request(wire(text)));
    expect(answer).toMatchObject({ code, message: expect.stringMatching(message) });
    expect((await world.state.list(kind)).items).toEqual([]);
  });

  test('validate tells it as a problem of that resource', async () => {
    const answer = await call('validate', { resource: [wire('{}', { id: 'good' }), wire(text)] });
    expect(answer.code).toBe(0);
    const { problem, resource } = controlService.validate.responseDeserialize(answer.bytes);
    expect(problem.map(({ index, code }) => [index, code])).toEqual([[1, 'Invalid']]);
    expect(problem.map((each) => `${each.path}: ${each.message}`).join()).toMatch(message);
    expect(resource).toEqual([]);
  });
});

test.each<[string, string, unknown]>([
  ['constructor and prototype are keys like others', '{"constructor": {"prototype": {"polluted": 1}}, "toString": 1}', undefined],
  ['an integer beyond 2^53', '{"a": 9007199254740993}', { a: 9007199254740993n }],
  ['a very long integer', `{"a": ${'9'.repeat(500)}}`, { a: BigInt('9'.repeat(500)) }],
  ['a very small float', '{"a": 1.5e-300}', { a: 1.5e-300 }],
  ['text with every plane', '{"a": "\\u0000 \\u2028 \u{1F642}"}', { a: '\u0000 \u2028 \u{1F642}' }],
])('rows 6 and 7, what can be: %s: an exact round trip', async (_name, text, expected) => {
  expect(await call('create', { resource: wire(text), options })).toMatchObject({ code: 0 });
  const { spec } = await world.state.get({ ...kind, id: 'bad' });
  if (expected !== undefined) expect(spec).toEqual(expected);
  else expect(JSON.stringify(spec)).toBe(JSON.stringify(JSON.parse(text)));
  const { resource } = stateService.get.responseDeserialize((await call('get', { ...kind, id: 'bad' })).bytes);
  expect(codec.fromWire(resource).spec).toBeDefined();
  await world.state.destroy({ ...kind, id: 'bad' });
});

const badNames: readonly (readonly [string, string])[] = [
  ['empty', ''],
  ['NUL', 'a\u0000b'],
  ['a newline', 'a\nb'],
  ['an escape', '\u001b[2Ja'],
  ['a control character of the second set', 'a\u009b2J'],
  ['1025 bytes', 'x'.repeat(1025)],
  ['1025 bytes of few characters', '\u{1F642}'.repeat(257)],
];

/** Every call that names something, and what it needs besides. */
const naming: readonly (readonly [Call, readonly ('namespace' | 'type' | 'id')[], (name: object) => unknown])[] = [
  ['get', ['namespace', 'type', 'id'], (name) => name],
  ['list', ['namespace', 'type'], (name) => ({ ...name, options: { labelQuery: [] } })],
  ['create', ['namespace', 'type', 'id'], (name) => ({ resource: wire('{}', name), options })],
  ['update', ['namespace', 'type', 'id'], (name) => ({ newResource: wire('{}', name), options })],
  ['destroy', ['namespace', 'type', 'id'], (name) => ({ ...name, options })],
  ['teardown', ['namespace', 'type', 'id'], (name) => ({ ...name, options })],
  ['teardownAndDestroy', ['namespace', 'type', 'id'], (name) => ({ ...name, options })],
  ['watch', ['namespace', 'type'], (name) => ({ ...name, id: undefined, apiVersion: 1, options: watchOptions })],
  ['watch', ['namespace', 'type', 'id'], (name) => ({ ...name, apiVersion: 1, options: watchOptions })],
  ['destroyIncarnation', ['namespace', 'type', 'id'], (name) => ({ ...name, owner: '', uid: '1' })],
  ['watchKinds', ['namespace', 'type'], (name) => ({ kind: [kind, name], options: watchOptions })],
  ['watchNamespaces', ['type'], (name) => name],
  ['finalizers', ['namespace', 'type', 'id'], (name) => name],
  ['readiness', ['namespace', 'type', 'id'], (name) => name],
  ['notes', ['namespace', 'type', 'id'], (name) => name],
];

describe.each(naming.map(([name, fields, request]) => [`${name} by ${fields.join(', ')}`, name, fields, request] as const))(
  'row 8, names that cannot be: %s',
  (_title, name, fields, request) => {
    test.each(badNames)('%s', async (_what, text) => {
      for (const field of fields) {
        const answer = await call(name, request({ ...kind, id: 'a', [field]: text }));
        expect(answer, field).toMatchObject({ code: name === 'update' ? grpcCodes.unknown : grpcCodes.invalidArgument });
        // biome-ignore lint/suspicious/noControlCharactersInRegex: row 23: control characters are what is looked for.
        expect(decodeURIComponent(answer.message)).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      }
    });

    test('bytes that are not UTF-8', async () => {
      const serialize = ({ ...stateService, ...controlService } as Service)[name].requestSerialize as (message: unknown) => Buffer;
      for (const field of fields) {
        const bytes = serialize(request({ ...kind, id: 'a', [field]: 'MARKER' }));
        for (const wrong of ['ff', 'c0', 'eda080', 'f4908080']) {
          const at = bytes.indexOf('MARKER');
          const spoilt = Buffer.from(bytes);
          Buffer.from(wrong.padEnd(12, '20'), 'hex').copy(spoilt, at);
          expect((await call(name, spoilt)).code, `${field} ${wrong}`).toBe(
            name === 'update' ? grpcCodes.unknown : grpcCodes.invalidArgument,
          );
        }
      }
    });
  },
);

test.each([
  '../../etc/passwd',
  '%2e%2e%2f',
  'ａdmin',
  'аdmin',
  'var/run',
  '__proto__',
  'constructor',
  'toString',
  '.',
  '..',
  '-rf',
  '*',
  "'; DROP TABLE things; --",
])('row 8: %s is an inert id', async (id) => {
  expect(await call('create', { resource: wire('{"a": 1}', { id }), options })).toMatchObject({ code: 0 });
  expect((await world.state.list(kind)).items.map(({ metadata }) => metadata.id)).toEqual([id]);
  expect(await call('get', { ...kind, id })).toMatchObject({ code: 0 });
  expect(await call('destroy', { ...kind, id, options })).toMatchObject({ code: 0 });
  expect((await world.state.list(kind)).items).toEqual([]);
});

test.each(['__proto__', 'constructor', 'prototype', 'hasOwnProperty'])(
  'row 6: a label and an annotation %s: inert, or refused',
  async (key) => {
    const pairs = Object.defineProperty({} as Record<string, string>, key, { value: 'polluted', enumerable: true });
    const { code } = await call('create', { resource: wire('{}', { labels: pairs, annotations: pairs }), options });
    if (code !== 0) {
      expect(code).toBe(grpcCodes.invalidArgument);
      return;
    }
    const { metadata } = await world.state.get({ ...kind, id: 'bad' });
    for (const found of [metadata.labels, metadata.annotations]) expect(Object.entries(found)).toEqual([[key, 'polluted']]);
    const query = { labelQuery: [{ terms: [{ key, value: ['polluted'], op: 1, invert: false }] }] };
    expect(await call('list', { ...kind, options: query })).toMatchObject({ code: 0 });
    await world.state.destroy({ ...kind, id: 'bad' });
  },
);

test('row 9: a write that is too large is refused before anything is stored, and one that could not be sent to anybody too', async () => {
  const made = await world.state.create({ metadata: { ...kind, id: 'bad' }, spec: {} });
  const version = made.metadata.version;
  for (const [size, code] of [
    [3_950_000, grpcCodes.unknown],
    [5_000_000, grpcCodes.resourceExhausted],
  ] as const)
    expect(await call('update', { newResource: wire(JSON.stringify({ a: 'x'.repeat(size) }), { version }), options })).toMatchObject({
      code,
    });
  const client = await world.client();
  for (const size of [3_950_000, 5_000_000, 17_000_000])
    await expect(client.update({ metadata: { ...kind, id: 'bad', version }, spec: { a: 'x'.repeat(size) } })).rejects.toMatchObject({
      code: 'Invalid',
    });
  expect((await world.state.get({ ...kind, id: 'bad' })).metadata.version).toBe(version);
  await world.state.destroy({ ...kind, id: 'bad' });
});

describe('row 10: expensive expressions', () => {
  const expensive = ['(a+)+$', '(a|a)*$', '(.*)*b', '(a*)*(a*)*(a*)*$', '(?:a?){300}a{300}$'];

  test.each(expensive)('%s takes linear time, in lists and in watches', async (regexp) => {
    for (let index = 0; index < 5; index++)
      await world.state.create({ metadata: { ...kind, id: `${'a'.repeat(1000)}!${index}` }, spec: {} });
    const query = { labelQuery: [], idQuery: { regexp } };
    const start = performance.now();
    const list = await call('list', { ...kind, options: query });
    expect([0, grpcCodes.invalidArgument]).toContain(list.code);
    expect(performance.now() - start).toBeLessThan(10_000);
    for (const { metadata } of (await world.state.list(kind)).items) await world.state.destroy(metadata);
  });

  test.each(['(?=a)', '(a)\\1', '(?<!a)b', '(', '[z-a]', 'a{1001}', '*'])('%s is refused', async (regexp) => {
    for (const [name, request] of [
      ['list', { ...kind, options: { labelQuery: [], idQuery: { regexp } } }],
      ['watch', { ...kind, apiVersion: 1, options: { ...watchOptions, idQuery: { regexp } } }],
      ['watchKinds', { kind: [kind], options: { ...watchOptions, idQuery: { regexp } } }],
    ] as const)
      expect(await call(name, request), name).toMatchObject({ code: grpcCodes.invalidArgument });
  });
});

describe('row 16: what a client may not say', () => {
  const forged = { uid: '777', created: { seconds: 1, nanos: 0 }, updated: { seconds: 1, nanos: 0 } };

  test('uid and times of a create and of an update are ignored', async () => {
    expect(await call('create', { resource: wire('{}', { ...forged, version: '999999' }), options })).toMatchObject({ code: 0 });
    const made = (await world.state.get({ ...kind, id: 'bad' })).metadata;
    expect(made.uid).not.toBe('777');
    expect(made.created.startsWith('1970')).toBe(false);
    const newResource = wire('{"a": 1}', { ...forged, version: made.version });
    expect(await call('update', { newResource, options })).toMatchObject({ code: 0 });
    const changed = (await world.state.get({ ...kind, id: 'bad' })).metadata;
    expect([changed.uid, changed.created]).toEqual([made.uid, made.created]);
    expect(changed.updated.startsWith('1970')).toBe(false);
    await world.state.destroy({ ...kind, id: 'bad' });
  });

  test('an owner that is not the caller is an owner conflict, in every call that has one', async () => {
    await world.state.create({ metadata: { ...kind, id: 'bad' }, spec: {} }, { owner: 'A' });
    const { version, uid } = (await world.state.get({ ...kind, id: 'bad' })).metadata;
    const denied = { code: grpcCodes.permissionDenied };
    expect(await call('create', { resource: wire('{}', { id: 'other', owner: 'A' }), options })).toMatchObject(denied);
    for (const owner of ['', 'B', 'a', 'A '])
      for (const claimed of ['', 'A', owner]) {
        const newResource = wire('{"a": 1}', { version, owner: claimed });
        expect(await call('update', { newResource, options: { owner } }), `${owner} ${claimed}`).toMatchObject(denied);
      }
    for (const owner of ['', 'B']) {
      for (const name of ['destroy', 'teardown', 'teardownAndDestroy'] as const)
        expect(await call(name, { ...kind, id: 'bad', options: { owner } }), name).toMatchObject(denied);
      expect(await call('destroyIncarnation', { ...kind, id: 'bad', owner, uid })).toMatchObject(denied);
    }
    expect((await world.state.get({ ...kind, id: 'bad' })).metadata).toMatchObject({ version, owner: 'A', phase: 'running' });
    await world.state.destroy({ ...kind, id: 'bad' }, { owner: 'A' });
  });

  test('a phase goes from running to tearing down, never back, and there is no third', async () => {
    await world.state.create({ metadata: { ...kind, id: 'bad', phase: 'tearingDown' }, spec: {} });
    const { version } = (await world.state.get({ ...kind, id: 'bad' })).metadata;
    for (const expectedPhase of [undefined, 'running', 'tearingDown'])
      expect(
        await call('update', {
          newResource: wire('{}', { version, phase: 'running' }),
          options: { owner: '', ...(expectedPhase && { expectedPhase }) },
        }),
      ).toMatchObject({ code: grpcCodes.invalidArgument });
    for (const phase of ['Running', 'gone', '', 'RUNNING', '0'])
      expect(await call('update', { newResource: wire('{}', { version, phase }), options }), phase).toMatchObject({
        code: grpcCodes.unknown,
      });
    expect((await world.state.get({ ...kind, id: 'bad' })).metadata).toMatchObject({ version, phase: 'tearingDown' });
    await world.state.destroy({ ...kind, id: 'bad' });
  });

  test('an incarnation that is another one is not destroyed', async () => {
    const { uid } = (await world.state.create({ metadata: { ...kind, id: 'bad' }, spec: {} })).metadata;
    for (const wrong of ['0', `${uid}0`, '18446744073709551615', 'x'])
      expect((await call('destroyIncarnation', { ...kind, id: 'bad', owner: '', uid: wrong })).code, wrong).not.toBe(0);
    expect(await call('destroyIncarnation', { ...kind, id: 'bad', owner: '', uid })).toMatchObject({ code: 0 });
  });

  test.each(['-1', '1.5', '0x1', '18446744073709551616', '1'.repeat(100), 'latest', ' 1'])('the version %s is refused', async (version) => {
    await world.state.create({ metadata: { ...kind, id: 'bad' }, spec: {} });
    expect((await call('update', { newResource: wire('{}', { version }), options })).code).not.toBe(0);
    expect((await world.state.get({ ...kind, id: 'bad' })).spec).toEqual({});
    await world.state.destroy({ ...kind, id: 'bad' });
  });
});

test('row 23: what errors say of names is one line without anything that a terminal obeys', async () => {
  const id = 'pay\u202egpj.exe\u200b';
  const answer = await call('get', { ...kind, id });
  expect(answer.code).toBe(grpcCodes.notFound);
  expect(decodeURIComponent(answer.message)).toContain('pay\\u202egpj.exe\\u200b');
});
