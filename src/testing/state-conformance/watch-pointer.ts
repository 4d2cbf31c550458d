import { strict as assert } from 'node:assert';
import type { StateEvent } from '../../state/index.ts';
import { brief, Reader } from './reader.ts';
import type { Case } from './world.ts';
import { expectRejects } from './world.ts';

export const watchPointerCases: readonly Case[] = [
  {
    name: 'watch: first the present value, then every change, with the old value',
    async run(world) {
      const made = await world.create('a', 1);
      const reader = await world.watch('a');
      const second = await world.resize('a', 2);
      await world.create('other');
      const third = await world.resize('a', 3);
      await world.core.destroy(world.pointer('a'));
      const again = await world.create('a', 4);
      const events = await reader.take(5);
      assert.deepEqual(brief(events), ['created a', 'updated a', 'updated a', 'destroyed a', 'created a']);
      assert.deepEqual(valuesOf(events), [
        [made, undefined],
        [second, made],
        [third, second],
        [third, undefined],
        [again, undefined],
      ]);
    },
  },
  {
    name: 'watch: of what is not there begins with a tombstone, and goes on when it comes',
    async run(world) {
      const reader = await world.watch('a');
      const first = await reader.next();
      assert.equal(first.type, 'destroyed');
      assert.ok('resource' in first);
      assert.equal(first.resource.spec, undefined, 'a tombstone has no spec');
      assert.equal(first.resource.metadata.id, 'a');
      assert.equal(first.resource.metadata.version, 'undefined', 'a tombstone was never written');
      await world.create('a');
      await world.core.destroy(world.pointer('a'));
      assert.deepEqual(brief(await reader.take(2)), ['created a', 'destroyed a']);
    },
  },
  {
    name: 'watch: a change after its promise resolved is seen, although nobody has asked for an event yet',
    async run(world) {
      await world.create('a', 1);
      const pointer = await world.core.watch(world.pointer('a'));
      const kind = await world.core.watchKind(world.kind);
      await world.resize('a', 2);
      await using first = new Reader(pointer, world.environment, world.limitMs);
      await using second = new Reader(kind, world.environment, world.limitMs);
      assert.deepEqual(brief(await first.take(2)), ['created a', 'updated a']);
      assert.deepEqual(brief(await second.take(1)), ['updated a']);
    },
  },
  {
    name: 'watch: two of one resource both see all, and others see nothing',
    async run(world) {
      const first = await world.watch('a');
      const second = await world.watch('a');
      const other = await world.watch('b');
      await world.create('a');
      await world.resize('a', 2);
      await world.create('b');
      for (const reader of [first, second]) assert.deepEqual(brief(await reader.take(3)), ['destroyed a', 'created a', 'updated a']);
      assert.deepEqual(brief(await other.take(2)), ['destroyed b', 'created b']);
    },
  },
  {
    name: 'watch: tailEvents gives the newest n, oldest first, then live, without an initial event',
    needs: ['tailEvents'],
    async run(world) {
      await world.create('a', 1);
      for (let size = 2; size <= 5; size++) {
        await world.create(`other-${size}`);
        await world.resize('a', size);
      }
      const reader = await world.watch('a', { tailEvents: 2 });
      await world.resize('a', 6);
      assert.deepEqual(sizesOf(await reader.take(3)), [4, 5, 6]);
      const none = await world.watch('a', { tailEvents: 0 });
      await world.resize('a', 7);
      assert.deepEqual(sizesOf(await none.take(1)), [7]);
      const all = await world.watch('a', { tailEvents: 100 });
      assert.deepEqual(sizesOf(await all.take(7)), [1, 2, 3, 4, 5, 6, 7]);
    },
  },
  {
    name: 'watch: startFromBookmark goes on right after it, without an initial event',
    async run(world) {
      const first = await world.watch('a');
      await world.create('a', 1);
      for (let size = 2; size <= 4; size++) await world.resize('a', size);
      const [initial, ...events] = await first.take(5);
      assert.ok(initial?.bookmark !== undefined, 'the first event carries a bookmark');
      for (const [index, event] of [initial, ...events].entries()) {
        if (event.bookmark === undefined) continue;
        const resumed = await world.watch('a', { startFromBookmark: event.bookmark });
        assert.deepEqual(sizesOf(await resumed.take(4 - index)), [1, 2, 3, 4].slice(index));
      }
      assert.ok(events.at(-1)?.bookmark !== undefined, 'events of a watch that keeps up carry bookmarks');
      const last = await world.watch('a', { startFromBookmark: events.at(-1)?.bookmark as NonNullable<StateEvent['bookmark']> });
      await world.resize('a', 5);
      assert.deepEqual(sizesOf(await last.take(1)), [5]);
    },
  },
  {
    name: 'watch: bad options reject it',
    async run(world) {
      const bookmark = await world.bookmark();
      const bad = [{ tailEvents: 1, startFromBookmark: bookmark }, { tailEvents: -1 }, { tailEvents: 1.5 }, { tailEvents: Number.NaN }];
      for (const options of bad) {
        await expectRejects(world.core.watch(world.pointer('a'), options), { code: 'Invalid', path: 'tailEvents' });
        await expectRejects(world.core.watchKind(world.kind, options), { code: 'Invalid', path: 'tailEvents' });
      }
      for (const options of [{ tailEvents: 1 }, { startFromBookmark: bookmark }]) {
        await expectRejects(world.core.watchKind(world.kind, { ...options, bootstrapContents: true }), {
          code: 'Invalid',
          path: 'bootstrapContents',
        });
        await expectRejects(world.core.watchKinds([world.kind], { ...options, bootstrapContents: true }), {
          code: 'Invalid',
          path: 'bootstrapContents',
        });
      }
    },
  },
];

const throwing = (reason: Error) => (): never => {
  throw reason;
};

export const streamCases: readonly Case[] = [
  {
    name: 'streams: an abort ends a watch quietly, also beside a pending next',
    async run(world) {
      const controller = new AbortController();
      const { signal } = controller;
      const idle = await world.core.watchKind(world.kind, { signal });
      const pending = idle[Symbol.asyncIterator]().next();
      const unread = await world.watch('a', { signal });
      const batches = await world.watchBatches({ signal });
      const drained = (await world.core.watchKind(world.kind, { signal })).drain(() => {});
      controller.abort(new Error('enough'));
      assert.deepEqual(await world.within(pending, 'the end'), { done: true, value: undefined });
      await world.within(drained, 'the end of drain');
      await batches.expectEnd();
      const rest = await unread.rest();
      assert.ok(rest.length <= 1 && rest.every((event) => event.type === 'destroyed'), 'an abort is not an error');
    },
  },
  {
    name: 'streams: return settles at once beside a pending next, and dispose too',
    async run(world) {
      const iterator = (await world.core.watchKind(world.kind))[Symbol.asyncIterator]();
      const pending = iterator.next();
      assert.ok(iterator.return, 'an iterator of a watch has return');
      assert.equal((await world.within(iterator.return(), 'return')).done, true);
      assert.equal((await world.within(pending, 'the pending next')).done, true);
      assert.equal((await world.within(iterator.next(), 'next after return')).done, true);
      const watch = await world.core.watchKind(world.kind);
      const next = watch[Symbol.asyncIterator]().next();
      await watch[Symbol.asyncDispose]();
      await watch[Symbol.asyncDispose]();
      assert.equal((await world.within(next, 'the pending next')).done, true);
    },
  },
  {
    name: 'streams: break closes the watch',
    async run(world) {
      await world.create('a');
      const watch = await world.core.watchKind(world.kind, { bootstrapContents: true });
      for await (const event of watch) {
        assert.equal(event.type, 'created');
        break;
      }
      assert.throws(() => watch[Symbol.asyncIterator](), 'a watch that was read gives no second iterator');
    },
  },
  {
    name: 'streams: one reader per watch',
    async run(world) {
      await using watch = await world.core.watchKind(world.kind);
      watch[Symbol.asyncIterator]();
      assert.throws(() => watch[Symbol.asyncIterator]());
      assert.throws(() => void watch.drain(() => {}).catch(() => {}));
    },
  },
  {
    name: 'streams: drain hands over what comes, in order, and rejects with what its reader throws',
    async run(world) {
      await world.create('a');
      const seen: StateEvent[] = [];
      const watch = await world.core.watchKind(world.kind, { bootstrapContents: true });
      let reached = (): void => {};
      const all = new Promise<void>((resolve) => (reached = resolve));
      const drained = watch.drain((batch) => {
        seen.push(...batch);
        if (seen.length >= 4) reached();
      });
      await world.create('b');
      await world.core.destroy(world.pointer('b'));
      await world.within(all, 'four events');
      assert.deepEqual(brief(seen), ['created a', 'bootstrapped', 'created b', 'destroyed b']);
      await watch[Symbol.asyncDispose]();
      await world.within(drained, 'the end of drain');
      const failing = await world.core.watchKind(world.kind, { bootstrapContents: true });
      const reason = new Error('reader failed');
      const failed = failing.drain(() => {
        throw reason;
      });
      await assert.rejects(world.within(failed, 'the failure'), (error) => error === reason);
    },
  },
  {
    name: 'streams: forEach hands over one event after another, waits for what its handler promises, and rejects with what it throws',
    async run(world) {
      await world.create('a');
      await world.create('b');
      const watch = await world.core.watchKind(world.kind, { bootstrapContents: true });
      const seen: StateEvent[] = [];
      let handling = 0;
      let most = 0;
      const ended = watch.forEach(async (event) => {
        most = Math.max(most, ++handling);
        await world.environment.breathe();
        handling--;
        seen.push(event);
        if (event.type === 'destroyed') await watch[Symbol.asyncDispose]();
      });
      await world.create('c');
      await world.core.destroy(world.pointer('a'));
      await world.create('d');
      await world.within(ended, 'the end of forEach');
      assert.deepEqual(brief(seen), ['created a', 'created b', 'bootstrapped', 'created c', 'destroyed a'], 'nothing after the dispose');
      assert.equal(most, 1, 'the handler is not called again before its promise is settled');
      const reason = new Error('handler failed');
      for (const handle of [() => Promise.reject(reason), throwing(reason)]) {
        const failing = await world.core.watchKind(world.kind, { bootstrapContents: true });
        await assert.rejects(world.within(failing.forEach(handle), 'the failure'), (error) => error === reason);
        assert.throws(() => failing[Symbol.asyncIterator](), 'a watch is read once');
      }
      const controller = new AbortController();
      const aborted = await world.core.watchKindAggregated(world.kind, { bootstrapContents: true, signal: controller.signal });
      const batches: StateEvent[] = [];
      const quiet = aborted.forEach((batch) => {
        batches.push(...batch);
        if (batch.at(-1)?.type === 'bootstrapped') controller.abort(new Error('enough'));
      });
      await world.within(quiet, 'the end of forEach in batches');
      assert.deepEqual(brief(batches), ['created b', 'created c', 'created d', 'bootstrapped']);
    },
  },
  {
    name: 'streams: reading what is ready lets timers and input have their turn',
    async run(world) {
      for (let index = 0; index < 600; index++) await world.create(`n${String(index).padStart(4, '0')}`);
      const reader = await world.watchKind({ bootstrapContents: true });
      let breaths = 0;
      let reading = true;
      const breathing = (async () => {
        while (reading) {
          await world.environment.breathe();
          breaths++;
        }
      })();
      const events = await reader.takeUntil((event) => event.type === 'bootstrapped');
      reading = false;
      await breathing;
      assert.equal(events.length, 601);
      assert.ok(breaths >= 2, `expected a macrotask between some of 600 ready events, found ${breaths}`);
    },
  },
];

function valuesOf(events: readonly StateEvent[]): unknown[] {
  return events.map((event) => ['resource' in event ? event.resource : undefined, event.type === 'updated' ? event.old : undefined]);
}

export function sizesOf(events: readonly StateEvent[]): unknown[] {
  return events.map((event) => ('resource' in event ? (event.resource.spec as { size?: unknown } | undefined)?.size : event.type));
}
