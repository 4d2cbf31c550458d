import { strict as assert } from 'node:assert';
import type { LabelTerm, ResourceQuery } from '../../resource/index.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

async function idsOf(world: World, query: ResourceQuery): Promise<string[]> {
  return (await world.core.list(world.kind, query)).items.map((item) => item.metadata.id);
}

const where = (...terms: LabelTerm[]): ResourceQuery => ({ labelQueries: [{ terms }] });

export const readCases: readonly Case[] = [
  {
    name: 'get: what is not there is NotFound with its pointer',
    async run(world) {
      await expectRejects(world.core.get(world.pointer('missing')), { code: 'NotFound', id: 'missing' });
      await world.create('here');
      await expectRejects(world.core.get(world.pointer('here', world.otherKind)), { code: 'NotFound' });
      await expectRejects(world.core.get(world.pointer('here', { ...world.kind, namespace: 'other' })), { code: 'NotFound' });
    },
  },
  {
    name: 'get: sees what was acknowledged, at once',
    async run(world) {
      for (let size = 1; size <= 20; size++) {
        const written = size === 1 ? await world.create('x', 1) : await world.resize('x', size);
        const read = await world.core.get(world.pointer('x'));
        assert.deepEqual(read.spec, { size });
        assert.equal(read.metadata.version, written.metadata.version);
        const { items } = await world.core.list(world.kind);
        assert.deepEqual(
          items.map((item) => item.spec),
          [{ size }],
        );
      }
      await world.core.destroy(world.pointer('x'));
      await expectRejects(world.core.get(world.pointer('x')), { code: 'NotFound' });
      assert.deepEqual(await idsOf(world, {}), []);
    },
  },
  {
    name: 'raw: reads and watches give the same as without it, where there is nothing to decode',
    async run(world) {
      await world.create('a', 1, { labels: { app: 'web' } });
      const plain = await world.core.get(world.pointer('a'));
      const raw = { raw: true };
      assert.deepEqual(await world.core.get(world.pointer('a'), raw), plain);
      assert.deepEqual((await world.core.list(world.kind, raw)).items, [plain]);
      await expectRejects(world.core.get(world.pointer('missing'), raw), { code: 'NotFound', id: 'missing' });
      const watches = [await world.watch('a', raw), await world.watchKind({ ...raw, bootstrapContents: true })];
      for (const watch of watches) {
        const event = await watch.next();
        assert.deepEqual(event.type === 'created' && event.resource, plain);
      }
    },
  },
  {
    name: 'list: an unknown kind is an empty list',
    async run(world) {
      for (let round = 0; round < 3; round++) {
        const { items } = await world.core.list({ namespace: `nowhere-${round}`, type: 'Nothings.example.dev' });
        assert.deepEqual([...items], []);
      }
    },
  },
  {
    name: 'list: one kind only, sorted by the UTF-8 bytes of the ids',
    async run(world) {
      const many = Array.from({ length: 30 }, (_, index) => `z${index + 10}`);
      const sorted = ['A', 'B', 'a', 'a-b', 'a/b', 'aa', 'b', 'z', ...many, 'é', 'é1', 'ü0', '日', '\uffee', '🌍', '\u{10ffff}'];
      for (const id of sorted.toReversed()) await world.create(id);
      await world.core.create(world.thing('elsewhere', 1, {}, world.otherKind));
      await world.core.create(world.thing('elsewhere', 1, {}, { ...world.kind, namespace: 'other' }));
      await world.core.create(world.thing('elsewhere', 1, {}, { ...world.kind, type: 'Others.example.dev' }));
      assert.deepEqual(await idsOf(world, {}), sorted);
    },
  },
  {
    name: 'list: a snapshot that later writes do not change',
    async run(world) {
      await world.create('a');
      await world.create('b');
      const list = await world.core.list(world.kind);
      await world.create('c');
      await world.resize('a', 2);
      await world.core.destroy(world.pointer('b'));
      assert.deepEqual(
        list.items.map((item) => [item.metadata.id, item.spec]),
        [
          ['a', { size: 1 }],
          ['b', { size: 1 }],
        ],
      );
      assert.deepEqual(await idsOf(world, {}), ['a', 'c']);
    },
  },
  {
    name: 'list: carries the revision of the snapshot',
    needs: ['globalRevision'],
    async run(world) {
      const first = await world.core.list(world.kind);
      const a = await world.create('a');
      const second = await world.core.list(world.kind);
      assert.equal(String(second.revision), a.metadata.version, 'the revision of a list is that of the newest write');
      assert.equal(second.revision, (first.revision ?? Number.NaN) + 1, 'one write is one revision');
      await world.core.create(world.thing('b', 1, {}, world.otherKind));
      assert.equal((await world.core.list(world.kind)).revision, (second.revision ?? Number.NaN) + 1, 'one revision over all kinds');
    },
  },
  {
    name: 'queries: every term, with and without inversion',
    async run(world) {
      await world.create('none');
      await world.create('web', 1, { labels: { app: 'web', size: '5' } });
      await world.create('db', 1, { labels: { app: 'db', size: '10' } });
      await world.create('cache', 1, { labels: { app: 'cache', size: '4Ki' } });
      await world.create('odd', 1, { labels: { app: '', size: 'large' } });
      const expected: readonly (readonly [LabelTerm, readonly string[]])[] = [
        [{ key: 'app', op: 'exists' }, ['cache', 'db', 'odd', 'web']],
        [{ key: 'app', op: 'exists', invert: true }, ['none']],
        [{ key: 'toString', op: 'exists' }, []],
        [{ key: 'app', op: 'equal', values: ['web'] }, ['web']],
        [{ key: 'app', op: 'equal', values: [''] }, ['odd']],
        [{ key: 'app', op: 'equal', values: ['web'], invert: true }, ['cache', 'db', 'none', 'odd']],
        [{ key: 'app', op: 'in', values: ['web', 'db', 'x'] }, ['db', 'web']],
        [{ key: 'app', op: 'in', values: ['web', 'db'], invert: true }, ['cache', 'none', 'odd']],
        [{ key: 'app', op: 'lessThan', values: ['db'] }, ['cache', 'odd']],
        [{ key: 'app', op: 'lessOrEqual', values: ['db'] }, ['cache', 'db', 'odd']],
        [{ key: 'app', op: 'lessThan', values: ['db'], invert: true }, ['db', 'web']],
        [{ key: 'size', op: 'lessThan', values: ['5'] }, ['cache', 'db']],
        [{ key: 'size', op: 'lessThanNumeric', values: ['10'] }, ['web']],
        [{ key: 'size', op: 'lessOrEqualNumeric', values: ['10'] }, ['db', 'web']],
        [{ key: 'size', op: 'lessOrEqualNumeric', values: ['4096'] }, ['cache', 'db', 'web']],
        [{ key: 'size', op: 'lessThanNumeric', values: ['10'], invert: true }, ['cache', 'db']],
        [{ key: 'size', op: 'lessThanNumeric', values: ['1k'], invert: true }, ['cache']],
      ];
      for (const [term, ids] of expected) assert.deepEqual(await idsOf(world, where(term)), ids, JSON.stringify(term));
    },
  },
  {
    name: 'queries: OR between queries, AND between terms',
    async run(world) {
      await world.create('a', 1, { labels: { app: 'web', tier: 'front' } });
      await world.create('b', 1, { labels: { app: 'web', tier: 'back' } });
      await world.create('c', 1, { labels: { app: 'db', tier: 'back' } });
      const web: LabelTerm = { key: 'app', op: 'equal', values: ['web'] };
      const back: LabelTerm = { key: 'tier', op: 'equal', values: ['back'] };
      const db: LabelTerm = { key: 'app', op: 'equal', values: ['db'] };
      assert.deepEqual(await idsOf(world, where(web, back)), ['b']);
      assert.deepEqual(await idsOf(world, { labelQueries: [{ terms: [web] }, { terms: [db] }] }), ['a', 'b', 'c']);
      assert.deepEqual(await idsOf(world, { labelQueries: [{ terms: [web, db] }, { terms: [db, back] }] }), ['c']);
      assert.deepEqual(await idsOf(world, { labelQueries: [] }), ['a', 'b', 'c']);
      assert.deepEqual(await idsOf(world, { labelQueries: [{ terms: [back] }], idQuery: '^[ab]$' }), ['b']);
    },
  },
  {
    name: 'queries: ids by RE2 expressions, in linear time',
    async run(world) {
      for (const id of ['web-1', 'web-2', 'db-1', 'a.b', 'axb', 'ключ', `${'a'.repeat(1000)}!`]) await world.create(id);
      const expected: readonly (readonly [string, readonly string[]])[] = [
        ['web', ['web-1', 'web-2']],
        ['^web-1$', ['web-1']],
        ['-1$', ['db-1', 'web-1']],
        ['^(web|db)-[1]$', ['db-1', 'web-1']],
        ['^a\\.b$', ['a.b']],
        ['^a.b$', ['a.b', 'axb']],
        ['(?i)^WEB', ['web-1', 'web-2']],
        ['^\\p{Cyrillic}+$', ['ключ']],
        ['^(a+)+$', []],
        ['nothing', []],
      ];
      for (const [idQuery, ids] of expected) assert.deepEqual(await idsOf(world, { idQuery }), ids, idQuery);
      for (const idQuery of ['(', '(?=x)', '\\1', '[', '*a'])
        await expectRejects(world.core.list(world.kind, { idQuery }), { code: 'Invalid' });
    },
  },
  {
    name: 'queries: a bad term is Invalid in list and watch',
    async run(world) {
      const bad: LabelTerm[] = [
        { key: 'a', op: 'equal' },
        { key: 'a', op: 'equal', values: ['x', 'y'] },
        { key: 'a', op: 'lessThanNumeric', values: ['many'] },
        { key: 'a', op: 'like' as 'equal', values: ['x'] },
        { key: '', op: 'exists' },
      ];
      for (const term of bad) {
        await expectRejects(world.core.list(world.kind, where(term)), { code: 'Invalid' });
        await expectRejects(world.core.watchKind(world.kind, where(term)), { code: 'Invalid' });
      }
      await expectRejects(world.core.watchKind(world.kind, { idQuery: '(' }), { code: 'Invalid' });
    },
  },
  {
    name: 'signals: a call with an aborted signal rejects with its reason, and nothing is written',
    async run(world) {
      await world.create('here');
      const reason = new Error('enough');
      const call = { signal: AbortSignal.abort(reason) };
      const calls: readonly (() => Promise<unknown>)[] = [
        () => world.core.get(world.pointer('here'), call),
        () => world.core.list(world.kind, call),
        () => world.core.create(world.thing('new'), call),
        () => world.core.update(world.thing('here', { size: 2 }, { version: '1' }), call),
        () => world.core.destroy(world.pointer('here'), call),
        () => world.core.watch(world.pointer('here'), call),
        () => world.core.watchKind(world.kind, call),
        () => world.core.watchKindAggregated(world.kind, call),
        () => world.core.watchKinds([world.kind], call),
      ];
      for (const made of calls)
        await assert.rejects(made(), (error) => error === reason, `${made.toString()} must reject with the signal's reason`);
      assert.deepEqual(
        (await world.core.list(world.kind)).items.map((item) => [item.metadata.id, item.spec]),
        [['here', { size: 1 }]],
      );
    },
  },
];
