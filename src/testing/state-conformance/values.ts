import { strict as assert } from 'node:assert';
import { Bytes, maximumDepth, sameValue } from '../../resource/index.ts';
import type { Case } from './world.ts';
import { expectRejects } from './world.ts';

/** Every kind of plain data that a spec may hold. */
const allKinds = {
  text: 'grüße, 世界 🌍 \u0000 tab\t line\n "quotes" \\',
  empty: '',
  numbers: [0, 1, -1, 0.1, 5e-324, -2.5, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
  big: [2n ** 53n, -(2n ** 53n), 2n ** 200n],
  flags: [true, false, null],
  bytes: Bytes.from(Uint8Array.of(0, 1, 127, 128, 255)),
  noBytes: Bytes.from(new Uint8Array()),
  containers: { list: [], map: {}, nested: [[{ deep: [1, [2, [3]]] }]] },
  'odd key': { '': 'empty key', 'a.b': 1, 'with space': 2, ключ: 3, constructor: 4, prototype: 5, toString: 6, hasOwnProperty: 7 },
  looksLike: ['1', 'true', 'null', '~', '0x10', '1e3', '2026-01-01', '- item', '# comment', ': ', '!!binary x', '{}', '[]', 'no', 'off'],
};

export const valueCases: readonly Case[] = [
  {
    name: 'values: every kind of plain data comes back as it went in',
    async run(world) {
      const written = await world.core.create(world.thing('all', allKinds));
      const read = await world.core.get(world.pointer('all'));
      assert.ok(sameValue(written.spec, allKinds), 'the answer of create must hold the spec');
      assert.ok(sameValue(read.spec, allKinds), `expected the same spec, found ${JSON.stringify(read.spec, textOfBig)}`);
      const { bytes } = read.spec as { bytes: Bytes };
      assert.deepEqual([...bytes.toUint8Array()], [0, 1, 127, 128, 255]);
    },
  },
  {
    name: 'values: a spec that is not a map is as good',
    async run(world) {
      for (const [id, spec] of Object.entries({ text: 'x', number: 1.5, list: [1, 'b'], nothing: null, flag: false, big: 2n ** 64n })) {
        await world.core.create(world.thing(id, spec));
        const read = await world.core.get(world.pointer(id));
        assert.ok(sameValue(read.spec, spec), `${id}: found ${String(read.spec)}`);
      }
    },
  },
  {
    name: 'values: what is not plain data is Invalid, and the error names the path',
    async run(world) {
      class Custom {
        readonly size = 1;
      }
      const circle: { self?: unknown } = {};
      circle.self = circle;
      let deep: unknown = 1;
      for (let level = 0; level <= maximumDepth; level++) deep = [deep];
      const bad: Readonly<Record<string, unknown>> = {
        'a NaN': { a: { b: Number.NaN } },
        infinity: { a: { b: Number.POSITIVE_INFINITY } },
        'an unsafe integer': { a: { b: 2 ** 53 } },
        'a small bigint': { a: { b: 5n } },
        undefined: { a: { b: undefined } },
        'a function': { a: { b: () => 1 } },
        'a symbol': { a: { b: Symbol('x') } },
        'a date': { a: { b: new Date(0) } },
        'a map': { a: { b: new Map() } },
        'a class instance': { a: { b: new Custom() } },
        'a byte array': { a: { b: new Uint8Array(1) } },
        'half a surrogate pair': { a: { b: 'x\ud800y' } },
        __proto__: JSON.parse('{"a":{"b":{"__proto__":{"polluted":true}}}}') as unknown,
        'a circle': { a: { b: circle } },
        'a deep nesting': { a: { b: deep } },
        'a hole in a list': { a: { b: new Array(1) } },
      };
      for (const [name, spec] of Object.entries(bad)) {
        await expectRejects(world.core.create(world.thing(`with ${name}`, spec)), { code: 'Invalid', path: 'spec.a.b' });
      }
      assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
      assert.equal((await world.core.list(world.kind)).items.length, 0, 'what is refused must not be written');
    },
  },
  {
    name: 'values: a resource without a spec is Invalid',
    async run(world) {
      await expectRejects(world.core.create({ metadata: world.pointer('none'), spec: undefined }), { code: 'Invalid', path: 'spec' });
    },
  },
  {
    name: 'values: names and ids are any well-formed text of 1 to 1024 bytes without control characters',
    async run(world) {
      const ids = [
        '/',
        'var/run',
        '../x',
        '%2e%2e',
        'a b',
        ' ',
        '.',
        'é',
        '世界',
        '🌍',
        'x'.repeat(1024),
        '🌍'.repeat(256),
        'A',
        'a',
        '"q"',
        '#',
        '\\',
      ];
      for (const id of ids) {
        await world.core.create(world.thing(id, { id }));
        assert.deepEqual((await world.core.get(world.pointer(id))).spec, { id });
      }
      assert.equal((await world.core.list(world.kind)).items.length, ids.length, 'ids that look alike are different ids');
      for (const namespace of ['/', 'ünicode', 'a b']) {
        const kind = { namespace, type: 'Odd/Type.example.dev' };
        await world.core.create(world.thing('x', 1, {}, kind));
        assert.equal((await world.core.list(kind)).items.length, 1);
      }
    },
  },
  {
    name: 'values: what is no pointer or kind at all is Invalid in every call',
    async run(world) {
      for (const nothing of [undefined, null, 'a', 5] as unknown as ReturnType<typeof world.pointer>[]) {
        for (const call of ['get', 'destroy', 'watch', 'list', 'watchKind', 'watchKindAggregated'] as const)
          await expectRejects(world.core[call](nothing), { code: 'Invalid' });
        await expectRejects(world.core.watchKinds([nothing]), { code: 'Invalid' });
        await expectRejects(world.core.create(nothing as never), { code: 'Invalid' });
        await expectRejects(world.core.update(nothing as never), { code: 'Invalid' });
      }
    },
  },
  {
    name: 'values: other names are Invalid in every call',
    async run(world) {
      for (const id of ['', 'a\u0000b', 'a\nb', '\u007f', '\u0085', 'x'.repeat(1025), '🌍'.repeat(257), '\ud800']) {
        await expectRejects(world.core.create(world.thing(id)), { code: 'Invalid', path: 'metadata.id' });
        await expectRejects(world.core.get(world.pointer(id)), { code: 'Invalid', path: 'metadata.id' });
        await expectRejects(world.core.destroy(world.pointer(id)), { code: 'Invalid', path: 'metadata.id' });
        await expectRejects(world.core.watch(world.pointer(id)), { code: 'Invalid', path: 'metadata.id' });
        const kind = { namespace: id, type: world.kind.type };
        await expectRejects(world.core.list(kind), { code: 'Invalid', path: 'metadata.namespace' });
        await expectRejects(world.core.watchKind(kind), { code: 'Invalid', path: 'metadata.namespace' });
        await expectRejects(world.core.create(world.thing('x', 1, {}, { namespace: 'default', type: id })), {
          code: 'Invalid',
          path: 'metadata.type',
        });
      }
    },
  },
  {
    name: 'values: labels, annotations and finalizers are text, and what is not is Invalid',
    async run(world) {
      const metadata = {
        labels: { app: 'web', 'a/b': '', toString: 'x' },
        annotations: { note: 'line\nline' },
        finalizers: ['b', 'a', 'b'],
      };
      const { metadata: stored } = await world.core.create(world.thing('good', 1, metadata));
      assert.deepEqual({ ...stored.labels }, metadata.labels);
      assert.deepEqual({ ...stored.annotations }, metadata.annotations);
      assert.deepEqual([...stored.finalizers], ['b', 'a'], 'finalizers are an ordered set');
      const bad = [
        { labels: { app: 1 as unknown as string } },
        { labels: JSON.parse('{"__proto__":"x"}') as Record<string, string> },
        { annotations: { app: '\ud800' } },
        { finalizers: [''] },
        { finalizers: [null as unknown as string] },
      ];
      for (const metadata of bad)
        await expectRejects(world.core.create(world.thing('bad', 1, metadata)), { code: 'Invalid', path: 'metadata.' });
    },
  },
  {
    name: 'values: what a call answers is deeply frozen, and the argument is neither changed nor kept',
    async run(world) {
      const spec = { list: [{ size: 1 }], map: { key: 'value' } };
      const labels = { app: 'web' };
      const written = await world.core.create(world.thing('shared', spec, { labels }));
      spec.list[0] = { size: 99 };
      spec.map.key = 'other';
      labels.app = 'other';
      const read = await world.core.get(world.pointer('shared'));
      assert.ok(sameValue(read.spec, { list: [{ size: 1 }], map: { key: 'value' } }), 'a later change of the argument must not be seen');
      assert.equal(read.metadata.labels.app, 'web');
      const { items } = await world.core.list(world.kind);
      await using reader = await world.watchKind({ bootstrapContents: true });
      const event = (await reader.next()) as { resource: typeof read };
      for (const answer of [written, read, items[0], event.resource]) expectFrozen(answer, 'resource');
      assert.ok(Object.isFrozen(items), 'a list is frozen');
      assert.ok(Object.isFrozen(event), 'an event is frozen');
    },
  },
];

function expectFrozen(value: unknown, path: string): void {
  if (typeof value !== 'object' || value === null) return;
  assert.ok(Object.isFrozen(value), `${path} must be frozen`);
  if (Bytes.is(value)) return;
  for (const [key, item] of Object.entries(value)) expectFrozen(item, `${path}.${key}`);
}

function textOfBig(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}
