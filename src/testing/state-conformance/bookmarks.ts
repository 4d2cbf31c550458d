import { strict as assert } from 'node:assert';
import { Bytes } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import { brief } from './reader.ts';
import { sizesOf } from './watch-pointer.ts';
import type { Case } from './world.ts';
import { expectRejects } from './world.ts';

const web = { labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'] } as const] }] };

export const bookmarkCases: readonly Case[] = [
  {
    name: 'bookmarks: W5 and W6, every one resumes exactly after its event, with any kind and query',
    async run(world) {
      const reader = await world.watchKind({ bootstrapContents: true });
      for (let index = 0; index < 6; index++) {
        await world.create(`w${index}`, index, { labels: { app: 'web' } });
        await world.core.create(world.thing(`e${index}`, 1, {}, world.otherKind));
        await world.create(`d${index}`, index, { labels: { app: 'db' } });
      }
      const events = await reader.take(13);
      for (const [index, event] of events.entries()) {
        if (event.bookmark === undefined) continue;
        const rest = events.slice(index + 1);
        const plain = await world.watchKind({ startFromBookmark: event.bookmark });
        assert.deepEqual(brief(await plain.take(rest.length)), brief(rest));
        const filtered = await world.watchKind({ startFromBookmark: event.bookmark, ...web });
        const matching = rest.filter((other) => brief([other])[0]?.startsWith('created w'));
        assert.deepEqual(brief(await filtered.take(matching.length)), brief(matching));
        // Without a common revision a bookmark is one of its namespace only.
        if (!world.capabilities.globalRevision) continue;
        const elsewhere = await world.watchKind({ startFromBookmark: event.bookmark }, world.otherKind);
        const later = ['e0', 'e1', 'e2', 'e3', 'e4', 'e5'].slice(Math.floor(index / 2));
        assert.deepEqual(
          brief(await elsewhere.take(later.length)),
          later.map((id) => `created ${id}`),
        );
      }
      assert.ok(events.at(-1)?.bookmark !== undefined, 'events of a watch that keeps up carry bookmarks');
      assert.ok(events[0]?.bookmark !== undefined, 'bootstrapped carries a bookmark');
    },
  },
  {
    name: 'bookmarks: W9, a foreign, damaged or future one is an error, never silence',
    async run(world) {
      await world.create('a');
      const good = (await world.bookmark()).toUint8Array();
      const bad: Uint8Array[] = [new Uint8Array(), Uint8Array.of(1), good.slice(0, -1), Uint8Array.of(...good, 0)];
      for (const place of [0, 1, 8, 16]) bad.push(changed(good, place, (byte) => byte ^ 0xff));
      // Towards the future: the revision stands at the end.
      bad.push(changed(good, good.length - 2, () => 0x7f));
      for (const bytes of bad) {
        const startFromBookmark = Bytes.from(bytes);
        await expectRejects(world.core.watchKind(world.kind, { startFromBookmark }), { code: 'InvalidBookmark' });
        await expectRejects(world.core.watch(world.pointer('a'), { startFromBookmark }), { code: 'InvalidBookmark' });
      }
      await expectRejects(world.core.watchKind(world.kind, { startFromBookmark: 'text' as unknown as Bookmark }), {
        code: 'InvalidBookmark',
      });
    },
  },
  {
    name: 'bookmarks: W9, one of another store is an error',
    async run(world) {
      await world.create('a');
      const bookmark = await world.bookmark();
      const other = await world.anotherStore();
      for (const id of ['a', 'b', 'c']) await other.create(world.thing(id));
      await expectRejects(other.watchKind(world.kind, { startFromBookmark: bookmark }), { code: 'InvalidBookmark' });
      await expectRejects(other.watch(world.pointer('a'), { startFromBookmark: bookmark }), { code: 'InvalidBookmark' });
      await expectRejects(other.watchKinds([world.kind], { startFromBookmark: bookmark }), { code: 'InvalidBookmark' });
    },
  },
  {
    name: 'bookmarks: of a kind resume a watch of one resource, and the other way round',
    async run(world) {
      const kind = await world.watchKind({ bootstrapBookmark: true });
      const start = await kind.next();
      const pointer = await world.watch('a');
      await world.create('a', 1);
      await world.create('b', 2);
      await world.resize('a', 3);
      const [tombstone, created] = await pointer.take(2);
      assert.ok(start.bookmark !== undefined && tombstone?.bookmark !== undefined && created?.bookmark !== undefined);
      const one = await world.watch('a', { startFromBookmark: start.bookmark });
      assert.deepEqual(brief(await one.take(2)), ['created a', 'updated a']);
      const all = await world.watchKind({ startFromBookmark: created.bookmark });
      assert.deepEqual(brief(await all.take(2)), ['created b', 'updated a']);
    },
  },
  {
    name: 'bookmarks: W8, one below the floor is an error, and above it nothing is missing',
    historySize: 8,
    async run(world) {
      const bookmarks: { readonly bookmark: Bookmark; readonly size: number }[] = [];
      await world.create('a', 0);
      for (let size = 1; size <= 60; size++) {
        bookmarks.push({ bookmark: await world.bookmark(), size });
        await world.resize('a', size);
      }
      let refused = 0;
      for (const { bookmark, size } of bookmarks) {
        let reader: Awaited<ReturnType<typeof world.watchKind>>;
        try {
          reader = await world.watchKind({ startFromBookmark: bookmark });
        } catch (error) {
          await expectRejects(Promise.reject(error), { code: 'InvalidBookmark' });
          await expectRejects(world.core.watch(world.pointer('a'), { startFromBookmark: bookmark }), { code: 'InvalidBookmark' });
          refused++;
          continue;
        }
        assert.deepEqual(
          sizesOf(await reader.take(61 - size)),
          Array.from({ length: 61 - size }, (_, index) => size + index),
        );
      }
      assert.ok(refused < 60, 'the newest bookmarks must resume');
      if (world.options.shortHistory === true)
        assert.ok(refused > 0, 'this store was asked for a short history, so the oldest must have expired');
    },
  },
  {
    name: 'bookmarks: of a store that was opened again they go on where they were',
    needs: ['durableBookmarks'],
    async run(world) {
      await world.create('a', 1);
      const bookmark = await world.bookmark();
      await world.resize('a', 2);
      await world.core.create(world.thing('e', 1, {}, world.otherKind));
      await world.create('b', 3);
      await world.core.destroy(world.pointer('b'));
      await world.reopen();
      const reader = await world.watchKind({ startFromBookmark: bookmark });
      const fresh = await world.create('c', 4);
      assert.deepEqual(brief(await reader.take(4)), ['updated a', 'created b', 'destroyed b', 'created c']);
      assert.deepEqual(
        (await world.core.list(world.kind)).items.map((item) => [item.metadata.id, item.spec]),
        [
          ['a', { size: 2 }],
          ['c', { size: 4 }],
        ],
      );
      assert.ok(Number(fresh.metadata.version) > 5, 'versions go on after a restart');
    },
  },
  {
    name: 'bookmarks: a snapshot and the events from its bookmark are the whole history',
    async run(world) {
      for (let index = 0; index < 5; index++) await world.create(`n${index}`, index);
      const reader = await world.watchKind({ bootstrapContents: true });
      const snapshot = await reader.takeUntil((event) => event.type === 'bootstrapped');
      const bookmark = snapshot.at(-1)?.bookmark;
      assert.ok(bookmark !== undefined, 'bootstrapped carries a bookmark');
      await reader[Symbol.asyncDispose]();
      await world.resize('n0', 10);
      await world.core.destroy(world.pointer('n1'));
      await world.create('n9', 9);
      const resumed = await world.watchKind({ startFromBookmark: bookmark });
      const events: StateEvent[] = await resumed.take(3);
      assert.deepEqual(brief(events), ['updated n0', 'destroyed n1', 'created n9']);
    },
  },
];

function changed(bytes: Uint8Array, place: number, change: (byte: number) => number): Uint8Array {
  const copy = bytes.slice();
  copy[place] = change(copy[place] ?? 0);
  return copy;
}
