import type { Resource } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import type { ConformanceRow } from './tools.ts';
import { brief, kind, resourceOf } from './tools.ts';

/** Watches of one resource and of kinds. */
export const watchRows: readonly ConformanceRow[] = [
  {
    name: 'watch: first the present value, or a tombstone; then every change',
    async run({ core, thing, pointer, read, same }) {
      await using watch = await read(core.watch(pointer('a')));
      const first = await watch.next();
      same(brief(first), 'destroyed a');
      same(resourceOf(first).spec, undefined);
      const made = await core.create(thing('a', 1));
      await core.update({ metadata: made.metadata, spec: 2 });
      await core.destroy(pointer('a'));
      await core.create(thing('a', 3));
      const events = await watch.take(4);
      same(events.map(brief), ['created a', 'updated a', 'destroyed a', 'created a']);
      same(
        events.map((event) => resourceOf(event).spec),
        [1, 2, 2, 3],
      );
      same((events[1] as { readonly old?: Resource }).old?.spec, 1, 'old value');
      await using second = await read(core.watch(pointer('a')));
      same(brief(await second.next()), 'created a');
    },
  },
  {
    name: 'watch: other resources are not told of',
    async run({ core, thing, pointer, read, same }) {
      await using watch = await read(core.watch(pointer('a')));
      await watch.next();
      await core.create(thing('b'));
      await core.create(thing('a'));
      same(brief(await watch.next()), 'created a');
    },
  },
  {
    name: 'watchKind: no initial events; a change right after it resolved is seen',
    async run({ core, thing, readKind, same }) {
      await core.create(thing('before'));
      await using watch = await readKind();
      await core.create(thing('after'));
      same(brief(await watch.next()), 'created after');
    },
  },
  {
    name: 'W7: bootstrap gives everything sorted, then bootstrapped, then changes; no bookmark before',
    async run({ core, thing, readKind, same }) {
      for (const id of ['b', 'a', 'c']) await core.create(thing(id));
      await using watch = await readKind({ bootstrapContents: true, bootstrapBookmark: true });
      const events = await watch.take(5);
      same(events.map(brief), ['created a', 'created b', 'created c', 'bootstrapped', 'noop']);
      for (const event of events.slice(0, 3)) if (event.bookmark !== undefined) throw new Error('no bookmark may come before bootstrapped');
      if (events[3]?.bookmark === undefined || events[4]?.bookmark === undefined) throw new Error('bootstrapped and noop need a bookmark');
      await core.create(thing('d'));
      same(brief(await watch.next()), 'created d');
    },
  },
  {
    name: 'watchKind: bootstrapBookmark alone gives one noop',
    async run({ core, thing, readKind, same }) {
      await core.create(thing('a'));
      await using watch = await readKind({ bootstrapBookmark: true });
      same(brief(await watch.next()), 'noop');
      await core.create(thing('b'));
      same(brief(await watch.next()), 'created b');
    },
  },
  {
    name: 'watchKindAggregated: the same events in batches, in order',
    async run({ core, thing, same }) {
      for (const id of ['a', 'b']) await core.create(thing(id));
      await using watch = await core.watchKindAggregated(kind, { bootstrapContents: true });
      for (const id of ['c', 'd']) await core.create(thing(id));
      const events: StateEvent[] = [];
      for await (const batch of watch) {
        events.push(...batch);
        if (events.length >= 5) break;
      }
      same(events.map(brief), ['created a', 'created b', 'bootstrapped', 'created c', 'created d']);
    },
  },
  {
    name: 'W1–W4: revisions never fall, nothing comes twice, nothing is left out',
    needs: 'globalRevision',
    async run({ core, thing, pointer, readKind }) {
      await using watch = await readKind();
      const written: string[] = [];
      await Promise.all(
        Array.from({ length: 10 }, async (_, id) => {
          let { metadata } = await core.create(thing(`r${id}`, 0));
          written.push(metadata.version);
          for (let spec = 1; spec < 5; spec++) {
            ({ metadata } = await core.update({ metadata, spec }));
            written.push(metadata.version);
          }
          await core.destroy(pointer(`r${id}`));
        }),
      );
      const events = await watch.take(60);
      let last = 0;
      for (const event of events) {
        const revision = event.revision as number;
        if (revision <= last) throw new Error(`revision ${revision} came after ${last}`);
        last = revision;
      }
      const seen = new Set(events.map((event) => resourceOf(event).metadata.version));
      for (const version of written) if (!seen.has(version)) throw new Error(`the write with version ${version} was not told`);
    },
  },
  {
    name: 'W5: a watch goes on after any bookmark with exactly what follows',
    async run({ core, thing, pointer, readKind, same }) {
      await using watch = await readKind();
      for (const id of ['a', 'b', 'c']) await core.create(thing(id));
      await core.destroy(pointer('b'));
      const events = await watch.take(4);
      for (const [index, event] of events.entries()) {
        await using resumed = await readKind({ startFromBookmark: event.bookmark as Bookmark });
        const rest = await resumed.take(3 - index);
        same(rest.map(brief), events.slice(index + 1).map(brief));
      }
    },
  },
  {
    name: 'W5: a bookmark resumes a watch of another kind, and of one resource',
    needs: 'globalRevision',
    async run({ core, thing, pointer, read, readKind, same }) {
      await using watch = await readKind({ bootstrapBookmark: true });
      const { bookmark } = await watch.next();
      const other = { namespace: 'other', type: 'Others.conformance.dev' };
      await core.create({ metadata: { ...other, id: 'o' }, spec: 1 });
      await core.create(thing('a'));
      await using second = await read(core.watchKind(other, { startFromBookmark: bookmark as Bookmark }));
      same(brief(await second.next()), 'created o');
      await using third = await read(core.watch(pointer('a'), { startFromBookmark: bookmark as Bookmark }));
      same(brief(await third.next()), 'created a');
    },
  },
  {
    name: 'W9: a foreign bookmark is an error',
    async run({ core, rejects }) {
      const { Bytes } = await import('../../resource/index.ts');
      await rejects(core.watchKind(kind, { startFromBookmark: Bytes.from(new Uint8Array([1, 2, 3])) }), 'InvalidBookmark');
      await rejects(core.watchKind(kind, { startFromBookmark: Bytes.from(new Uint8Array(25).fill(1)) }), 'InvalidBookmark');
    },
  },
  {
    name: 'W11: with a query, what starts to match is created and what stops is destroyed, both without an old value',
    async run({ core, thing, pointer, read, same }) {
      await core.create(thing('no'));
      await core.create(thing('yes', 1, { labels: { on: '1' } }));
      const query = { labelQueries: [{ terms: [{ key: 'on', op: 'equal' as const, values: ['1'] }] }] };
      await using watch = await read(core.watchKind(kind, { ...query, bootstrapContents: true }));
      same((await watch.take(2)).map(brief), ['created yes', 'bootstrapped']);
      const label = async (id: string, labels: Record<string, string>, spec: unknown): Promise<void> => {
        const { metadata } = await core.get(pointer(id));
        await core.update({ metadata: { ...metadata, labels }, spec });
      };
      await label('no', { on: '1' }, 2);
      await label('no', { on: '1' }, 3);
      await label('no', {}, 4);
      await label('no', {}, 5);
      await core.destroy(pointer('yes'));
      const events = await watch.take(4);
      same(events.map(brief), ['created no', 'updated no', 'destroyed no', 'destroyed yes']);
      same(
        events.map((event) => (event as { readonly old?: Resource }).old?.spec ?? null),
        [null, 2, null, null],
      );
    },
  },
  {
    name: 'tailEvents: the newest n, oldest first, then live; no initial event',
    needs: 'tailEvents',
    async run({ core, thing, pointer, read, readKind, same }) {
      const made = await core.create(thing('a', 1));
      await core.create(thing('b'));
      await core.update({ metadata: made.metadata, spec: 2 });
      await using watch = await readKind({ tailEvents: 2 });
      same((await watch.take(2)).map(brief), ['created b', 'updated a']);
      await using single = await read(core.watch(pointer('a'), { tailEvents: 10 }));
      same((await single.take(2)).map(brief), ['created a', 'updated a']);
      await core.destroy(pointer('a'));
      same(brief(await single.next()), 'destroyed a');
    },
  },
  {
    name: 'watchKind: contents cannot be combined with a tail or a bookmark',
    async run({ core, readKind, rejects }) {
      await using watch = await readKind({ bootstrapBookmark: true });
      const { bookmark } = await watch.next();
      await rejects(core.watchKind(kind, { bootstrapContents: true, startFromBookmark: bookmark as Bookmark }), 'Invalid');
      await rejects(core.watchKind(kind, { bootstrapContents: true, tailEvents: 1 }), 'Invalid');
      await rejects(core.watchKind(kind, { startFromBookmark: bookmark as Bookmark, tailEvents: 1 }), 'Invalid');
    },
  },
  {
    name: 'watchKinds: several kinds in commit order',
    needs: 'multiKindWatch',
    async run({ core, thing, same }) {
      const other = { namespace: 'default', type: 'Others.conformance.dev' };
      await core.create(thing('a'));
      await using watch = await core.watchKinds([kind, other], { bootstrapContents: true });
      for (let index = 0; index < 5; index++) {
        await core.create({ metadata: { ...other, id: `o${index}` }, spec: 1 });
        await core.create(thing(`t${index}`));
      }
      const events: StateEvent[] = [];
      for await (const batch of watch) {
        events.push(...batch);
        if (events.length >= 12) break;
      }
      same(events.map(brief), [
        'created a',
        'bootstrapped',
        ...Array.from({ length: 5 }, (_, index) => [`created o${index}`, `created t${index}`]).flat(),
      ]);
    },
  },
  {
    name: 'watch: an abort ends it without a throw, return ends a pending next',
    async run({ core, same }) {
      const aborter = new AbortController();
      const watch = await core.watchKind(kind, { signal: aborter.signal });
      const iterator = watch[Symbol.asyncIterator]();
      const pending = iterator.next();
      aborter.abort();
      same((await pending).done, true);
      const second = await core.watchKind(kind);
      const reading = second[Symbol.asyncIterator]();
      const waiting = reading.next();
      await reading.return?.();
      same((await waiting).done, true);
    },
  },
];
