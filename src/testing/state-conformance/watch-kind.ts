import { strict as assert } from 'node:assert';
import type { StateEvent } from '../../state/index.ts';
import { brief } from './reader.ts';
import { sizesOf } from './watch-pointer.ts';
import type { Case } from './world.ts';

const web = { labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'] } as const] }] };

export const watchKindCases: readonly Case[] = [
  {
    name: 'watchKind: no initial events, then every change of this kind only',
    async run(world) {
      await world.create('before');
      const reader = await world.watchKind();
      await world.core.create(world.thing('elsewhere', 1, {}, world.otherKind));
      await world.core.create(world.thing('elsewhere', 1, {}, { ...world.kind, namespace: 'other' }));
      const a = await world.create('a', 1);
      const next = await world.resize('a', 2);
      await world.core.destroy(world.pointer('before'));
      const events = await reader.take(3);
      assert.deepEqual(brief(events), ['created a', 'updated a', 'destroyed before']);
      assert.deepEqual((events[1] as { old: unknown }).old, a, 'W10: the old value is the one before');
      assert.deepEqual((events[1] as { resource: unknown }).resource, next);
      assert.equal(sizesOf(events)[2], 1, 'destroyed carries the last value');
    },
  },
  {
    name: 'watchKind: bootstrapContents gives all, sorted, then bootstrapped, and no bookmark before',
    async run(world) {
      const ids = ['A', 'a', 'b', 'é', '\uffee', '🌍'];
      for (const id of ids.toReversed()) await world.create(id);
      const reader = await world.watchKind({ bootstrapContents: true });
      await world.create('z');
      const events = await reader.take(ids.length + 2);
      assert.deepEqual(brief(events), [...ids.map((id) => `created ${id}`), 'bootstrapped', 'created z']);
      for (const event of events.slice(0, ids.length)) assert.equal(event.bookmark, undefined, 'no bookmark before bootstrapped');
      const empty = await world.watchKind({ bootstrapContents: true }, world.otherKind);
      assert.deepEqual(brief(await empty.take(1)), ['bootstrapped']);
    },
  },
  {
    name: 'watchKind: contents are as new as what was acknowledged, in every sort of watch, so that nothing is told again',
    async run(world) {
      let written = await world.create('x', 1);
      for (let size = 2; size <= 5; size++) {
        written = await world.resize('x', size);
        await world.create('gone');
        await world.core.destroy(world.pointer('gone'));
        const options = { bootstrapContents: true };
        const ofKind = [await world.watchKind(options), await world.watchBatches(options)];
        if (world.capabilities.multiKindWatch) ofKind.push(await world.watchKinds([world.kind, world.otherKind], options));
        const readers = [...ofKind, await world.watch('x')];
        const next = await world.resize('x', size * 10);
        for (const reader of readers) {
          const events = await reader.take(reader === readers.at(-1) ? 2 : 3);
          assert.deepEqual(
            events.filter(({ type }) => type !== 'bootstrapped').map((event) => 'resource' in event && [event.type, event.resource]),
            [
              ['created', written],
              ['updated', next],
            ],
          );
        }
      }
    },
  },
  {
    name: 'watchKind: bootstrapBookmark gives one noop with a bookmark, after bootstrapped',
    async run(world) {
      await world.create('a');
      const alone = await world.watchKind({ bootstrapBookmark: true });
      const both = await world.watchKind({ bootstrapBookmark: true, bootstrapContents: true });
      const resumed = await world.watchKind({ bootstrapBookmark: true, startFromBookmark: await world.bookmark() });
      await world.create('b');
      const noop = await alone.take(2);
      assert.deepEqual(brief(noop), ['noop', 'created b']);
      assert.ok(noop[0]?.bookmark !== undefined);
      const events = await both.take(4);
      assert.deepEqual(brief(events), ['created a', 'bootstrapped', 'noop', 'created b']);
      assert.ok(events[2]?.bookmark !== undefined);
      assert.deepEqual(brief(await resumed.take(2)), ['noop', 'created b']);
    },
  },
  {
    name: 'watchKind: with tailEvents and a bookmark of now it also combines',
    needs: ['tailEvents'],
    async run(world) {
      for (const id of ['a', 'b', 'c']) await world.create(id);
      const reader = await world.watchKind({ tailEvents: 2, bootstrapBookmark: true });
      await world.create('d');
      const events = await reader.take(4);
      assert.deepEqual(
        brief(events).filter((text) => text !== 'noop'),
        ['created b', 'created c', 'created d'],
      );
    },
  },
  {
    name: 'watchKind: tailEvents counts before the query',
    needs: ['tailEvents'],
    async run(world) {
      await world.create('w1', 1, { labels: { app: 'web' } });
      await world.create('w2', 1, { labels: { app: 'web' } });
      await world.create('d1', 1, { labels: { app: 'db' } });
      const reader = await world.watchKind({ tailEvents: 2, ...web });
      await world.create('w3', 1, { labels: { app: 'web' } });
      assert.deepEqual(brief(await reader.take(2)), ['created w2', 'created w3']);
      const all = await world.watchKind({ tailEvents: 100 });
      assert.deepEqual(brief(await all.take(4)), ['created w1', 'created w2', 'created d1', 'created w3']);
    },
  },
  {
    name: 'watchKind: W11, a query turns updates into created and destroyed without an old value',
    async run(world) {
      await world.create('was', 1, { labels: { app: 'web' } });
      await world.create('never', 1, { labels: { app: 'db' } });
      const reader = await world.watchKind({ ...web, bootstrapContents: true });
      await world.relabel('was', { app: 'web', tier: 'front' });
      await world.relabel('never', { app: 'cache' });
      await world.relabel('was', { app: 'db' });
      await world.relabel('was', { app: 'db', tier: 'x' });
      const back = await world.relabel('was', { app: 'web' });
      await world.core.destroy(world.pointer('never'));
      await world.core.destroy(world.pointer('was'));
      await world.create('unlabelled');
      await world.create('end', 1, { labels: { app: 'web' } });
      const events = await reader.takeBefore('end');
      assert.deepEqual(brief(events), ['created was', 'bootstrapped', 'updated was', 'destroyed was', 'created was', 'destroyed was']);
      assert.ok((events[2] as { old?: unknown }).old !== undefined, 'an update that goes on matching carries the old value');
      for (const index of [3, 4, 5]) assert.equal((events[index] as { old?: unknown }).old, undefined, 'a transition has no old value');
      assert.deepEqual((events[4] as { resource: unknown }).resource, back);
    },
  },
  {
    name: 'watchKind: id queries, label queries and both together',
    async run(world) {
      const ids = await world.watchKind({ idQuery: '^a' });
      const both = await world.watchKind({ ...web, idQuery: '^a' });
      const inverted = await world.watchKind({ labelQueries: [{ terms: [{ key: 'app', op: 'exists', invert: true }] }] });
      await world.create('a1', 1, { labels: { app: 'web' } });
      await world.create('b1', 1, { labels: { app: 'web' } });
      await world.create('a2', 1, { labels: { app: 'db' } });
      await world.create('a3');
      await world.create('b3');
      await world.create('a-end', 1, { labels: { app: 'web' } });
      await world.create('end');
      assert.deepEqual(brief(await ids.takeBefore('a-end')), ['created a1', 'created a2', 'created a3']);
      assert.deepEqual(brief(await both.takeBefore('a-end')), ['created a1']);
      assert.deepEqual(brief(await inverted.takeBefore('end')), ['created a3', 'created b3']);
    },
  },
  {
    name: 'watchKindAggregated: the same events, in batches that are never empty',
    async run(world) {
      for (let index = 0; index < 30; index++) await world.create(`n${String(index).padStart(2, '0')}`);
      const single = await world.watchKind({ bootstrapContents: true, bootstrapBookmark: true });
      const batches = await world.watchBatches({ bootstrapContents: true, bootstrapBookmark: true });
      for (let index = 0; index < 30; index += 3) await world.resize(`n${String(index).padStart(2, '0')}`, 2);
      await world.create('z');
      const expected = await single.takeUntil((event) => brief([event])[0] === 'created z');
      const found = await batches.takeUntil((event) => brief([event])[0] === 'created z');
      assert.deepEqual(brief(found), brief(expected));
      assert.equal(found.length, 43);
    },
  },
  {
    name: 'watchKinds: several kinds in commit order',
    needs: ['multiKindWatch'],
    async run(world) {
      await world.create('a0');
      await world.core.create(world.thing('b0', 1, {}, world.otherKind));
      const reader = await world.watchKinds([world.otherKind, world.kind], { bootstrapContents: true });
      const resumeAt: StateEvent[] = [];
      for (let round = 1; round <= 5; round++) {
        await world.create(`a${round}`);
        await world.core.create(world.thing(`b${round}`, 1, {}, world.otherKind));
        await world.core.create(world.thing(`c${round}`, 1, {}, { namespace: 'third', type: 'Thirds.example.dev' }));
      }
      const events = await reader.take(13);
      resumeAt.push(...events);
      const order = [1, 2, 3, 4, 5].flatMap((round) => [`created a${round}`, `created b${round}`]);
      assert.deepEqual(brief(events), ['created b0', 'created a0', 'bootstrapped', ...order]);
      const place = events[5]?.bookmark;
      assert.ok(place !== undefined);
      const resumed = await world.watchKinds([world.kind, world.otherKind], { startFromBookmark: place });
      assert.deepEqual(brief(await resumed.take(7)), order.slice(3));
    },
  },
  {
    name: 'watchKinds: one kind named twice is watched once, and no kind at all gives nothing',
    needs: ['multiKindWatch'],
    async run(world) {
      const reader = await world.watchKinds([world.kind, world.kind]);
      const none = await world.watchKinds([]);
      await world.create('a');
      await world.create('b');
      assert.deepEqual(brief(await reader.take(2)), ['created a', 'created b']);
      await none[Symbol.asyncDispose]();
      await none.expectEnd();
    },
  },
  {
    name: 'events: revisions rise, and an event carries the version that its write made',
    needs: ['globalRevision'],
    async run(world) {
      const reader = await world.watchKind({ bootstrapContents: true });
      await world.create('a');
      await world.core.create(world.thing('elsewhere', 1, {}, world.otherKind));
      await world.resize('a', 2);
      await world.core.destroy(world.pointer('a'));
      await world.create('a');
      const events = (await reader.take(5)).slice(1);
      const revisions = events.map((event) => event.revision as number);
      for (const [index, revision] of revisions.entries()) {
        assert.ok(Number.isSafeInteger(revision), 'an event carries its revision');
        if (index > 0) assert.ok(revision > (revisions[index - 1] as number), 'revisions rise');
      }
      for (const event of events) {
        if (event.type === 'created' || event.type === 'updated') assert.equal(event.resource.metadata.version, String(event.revision));
      }
      assert.equal((revisions[1] as number) - (revisions[0] as number), 2, 'the write of another kind took a revision');
    },
  },
  {
    name: 'events: another incarnation has another uid, and updates keep it',
    needs: ['incarnations'],
    async run(world) {
      const reader = await world.watch('a');
      await world.create('a');
      await world.resize('a', 2);
      await world.core.destroy(world.pointer('a'));
      await world.create('a');
      const [, created, updated, destroyed, again] = (await reader.take(5)).map((event) =>
        'resource' in event ? event.resource.metadata.uid : '',
      );
      assert.ok(created !== '' && created === updated && created === destroyed);
      assert.notEqual(again, created);
    },
  },
];
