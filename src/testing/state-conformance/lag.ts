import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import { brief } from './reader.ts';
import type { Case, World } from './world.ts';

/** Enough writes to push any watcher of a short history behind it. */
const lagWrites = 400;

/** What a reader knows after these events; fails where an event does not fit what is known. */
export function fold(known: Map<string, Resource>, events: readonly StateEvent[]): Map<string, Resource> {
  for (const event of events) {
    if (event.type === 'created') {
      const { id } = event.resource.metadata;
      // A snapshot after an overflow tells again what is known already; nothing else may.
      if (event.resync !== true) assert.ok(!known.has(id), `created ${id}, which the reader knows already`);
      known.set(id, event.resource as Resource);
    } else if (event.type === 'updated') {
      const { id } = event.resource.metadata;
      const base = known.get(id);
      assert.ok(base !== undefined, `updated ${id}, which the reader does not know`);
      if (event.old !== undefined) assert.deepEqual(event.old, base, `the old value of ${id} must be the value that was delivered last`);
      known.set(id, event.resource);
    } else if (event.type === 'destroyed') {
      const { id } = event.resource.metadata;
      assert.ok(known.has(id), `destroyed ${id}, which the reader does not know`);
      known.delete(id);
    }
  }
  return known;
}

async function expectState(world: World, known: ReadonlyMap<string, Resource>): Promise<void> {
  const { items } = await world.core.list(world.kind);
  assert.deepEqual(
    [...known.values()].map((resource) => [resource.metadata.id, resource.metadata.version]).sort(),
    items.map((resource) => [resource.metadata.id, resource.metadata.version]).sort(),
    'W7: the folded events must equal the state',
  );
}

function mustHaveLagged(world: World, events: readonly StateEvent[]): boolean {
  const lagged = events.some((event) => event.resync === true);
  if (world.options.shortHistory === true)
    assert.ok(lagged, 'this store was asked for a short history, so this watcher must have been coalesced');
  return lagged;
}

export const lagCases: readonly Case[] = [
  {
    name: 'lag: W12, a watcher that never reads delays nobody, does not fail, and catches up',
    historySize: 16,
    async run(world) {
      await world.create('kept', 0);
      await world.create('doomed', 0);
      const slow = await world.watchKind({ bootstrapContents: true });
      const quick = await world.watchKind();
      const known = fold(new Map(), await slow.takeUntil((event) => event.type === 'bootstrapped'));
      let seen = 0;
      for (let index = 1; index <= lagWrites; index++) {
        await world.resize('kept', index);
        seen += (await quick.take(1)).length;
      }
      await world.core.destroy(world.pointer('doomed'));
      await world.create('fresh', 1);
      await world.create('brief', 1);
      await world.core.destroy(world.pointer('brief'));
      await world.create('z-last', 1);
      assert.equal(seen, lagWrites, 'the other watcher sees every write');
      const events = await slow.takeUntil((event) => brief([event])[0] === 'created z-last');
      if (mustHaveLagged(world, events)) {
        assert.deepEqual(brief(events.filter((event) => event.resync)), [
          'updated kept',
          'destroyed doomed',
          'created fresh',
          'created z-last',
        ]);
        assert.ok(events.length < lagWrites / 2, 'a lagging watcher gets the newest of each, not all');
      }
      await expectState(world, fold(known, events));
    },
  },
  {
    name: 'lag: in a coalesced stretch all events repeat the last safe bookmark, and only the last carries the new one',
    historySize: 16,
    async run(world) {
      const slow = await world.watchKind({ bootstrapBookmark: true });
      const start = await slow.next();
      for (let index = 0; index < lagWrites; index++) {
        const id = `n${index % 5}`;
        if (index < 5) await world.create(id, index);
        else await world.resize(id, index);
      }
      const events = await slow.takeUntil(
        (event) => brief([event])[0] === `updated n${(lagWrites - 1) % 5}` || event.revision === lagWrites,
      );
      await world.create('later', 1);
      const [later] = (await slow.takeUntil((event) => brief([event])[0] === 'created later')).slice(-1);
      const stretch = events.filter((event) => event.resync === true);
      if (!mustHaveLagged(world, events)) return;
      assert.deepEqual(brief(stretch), ['created n0', 'created n1', 'created n2', 'created n3', 'created n4']);
      assert.ok(start.bookmark !== undefined);
      for (const event of stretch.slice(0, -1))
        assert.ok(event.bookmark?.equals(start.bookmark), 'a bookmark inside the stretch must be the last safe one');
      const last = stretch.at(-1)?.bookmark;
      assert.ok(last !== undefined && !last.equals(start.bookmark), 'the end of the stretch carries a new bookmark');
      const inside = await world.watchKind({ startFromBookmark: last });
      assert.deepEqual(brief(await inside.take(1)), ['created later']);
      assert.ok(later?.resync !== true, 'after the stretch events are as always');
    },
  },
  {
    name: 'lag: another incarnation is destroyed, then created; what came and went is not told',
    historySize: 16,
    needs: ['incarnations'],
    async run(world) {
      const old = await world.create('a', 1);
      const slow = await world.watchKind({ bootstrapContents: true });
      const known = fold(new Map(), await slow.takeUntil((event) => event.type === 'bootstrapped'));
      await world.core.destroy(world.pointer('a'));
      await world.create('a', 2);
      for (let index = 0; index < lagWrites; index++)
        await (index % 2 === 0 ? world.create('brief') : world.core.destroy(world.pointer('brief')));
      await world.create('z-last');
      const events = await slow.takeUntil((event) => brief([event])[0] === 'created z-last');
      if (mustHaveLagged(world, events)) {
        assert.deepEqual(brief(events), ['destroyed a', 'created a', 'created z-last']);
        assert.deepEqual((events[0] as { resource: unknown }).resource, old, 'destroyed carries the value that was delivered last');
      }
      await expectState(world, fold(known, events));
    },
  },
  {
    name: 'lag: with a query the stretch tells what the query shows',
    historySize: 16,
    async run(world) {
      await world.create('was', 0, { labels: { app: 'web' } });
      await world.create('stays', 0, { labels: { app: 'web' } });
      await world.create('comes', 0, { labels: { app: 'db' } });
      const query = { labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'] } as const] }] };
      const slow = await world.watchKind({ bootstrapContents: true, ...query });
      await slow.take(3);
      for (let index = 1; index <= lagWrites; index++) await world.resize('stays', index);
      await world.relabel('was', { app: 'db' });
      await world.relabel('comes', { app: 'web' });
      await world.create('z-last', 1, { labels: { app: 'web' } });
      const events = await slow.takeUntil((event) => brief([event])[0] === 'created z-last');
      if (mustHaveLagged(world, events))
        assert.deepEqual(brief(events), ['updated stays', 'destroyed was', 'created comes', 'created z-last']);
    },
  },
  {
    name: 'lag: above the common cap a watcher gets a snapshot, and ends up with the state',
    historySize: 16,
    pendingLimit: 10,
    async run(world) {
      for (let index = 0; index < 30; index++) await world.create(`n${String(index).padStart(3, '0')}`, 0);
      const slow = await world.watchKind({ bootstrapContents: true });
      const known = fold(new Map(), await slow.takeUntil((event) => event.type === 'bootstrapped'));
      for (let index = 0; index < 30; index += 3) await world.core.destroy(world.pointer(`n${String(index).padStart(3, '0')}`));
      for (let index = 0; index < lagWrites; index++) await world.create(`m${String(index).padStart(3, '0')}`, index);
      await world.resize('n001', 7);
      const first = await slow.takeUntil(
        (event) =>
          event.type === 'noop' ||
          (event.resync !== true && event.revision !== undefined && 'resource' in event && event.resource.metadata.id === 'n001'),
      );
      fold(known, first);
      await world.create('z-last', 1);
      fold(known, await slow.takeUntil((event) => brief([event])[0] === 'created z-last'));
      mustHaveLagged(world, first);
      await expectState(world, known);
    },
  },
  {
    name: 'lag: a slow watch of one resource gets its newest value, and its end',
    historySize: 16,
    async run(world) {
      await world.create('a', 0);
      const slow = await world.watch('a');
      for (let size = 1; size <= lagWrites; size++) await world.resize('a', size);
      const last = await world.resize('a', 999);
      const events = await slow.takeUntil((event) => 'resource' in event && event.resource.metadata.version === last.metadata.version);
      assert.equal(events[0]?.type, 'created');
      fold(new Map(), events);
      mustHaveLagged(world, events);
      await world.core.destroy(world.pointer('a'));
      assert.deepEqual(brief(await slow.take(1)), ['destroyed a']);
    },
  },
  {
    name: 'lag: a strict watch gets every event, or one error as its last',
    historySize: 16,
    async run(world) {
      const kind = await world.watchKind({ strict: true });
      const pointer = await world.watch('a', { strict: true });
      await world.create('a', 0);
      for (let size = 1; size <= lagWrites; size++) await world.resize('a', size);
      for (const reader of [kind, pointer]) {
        const events: StateEvent[] = [];
        for (;;) {
          const event = await reader.next();
          events.push(event);
          assert.notEqual(event.resync, true, 'a strict watch is never coalesced');
          if (event.type === 'errored') break;
          if (event.type === 'updated' && (event.resource.spec as { size: number }).size === lagWrites) break;
        }
        if (events.at(-1)?.type === 'errored') await reader.expectEnd();
        else assert.ok(events.length > lagWrites, `expected every event or an error, found ${events.length} of ${lagWrites + 1}`);
        if (world.options.shortHistory === true)
          assert.equal(events.at(-1)?.type, 'errored', 'a short history must end a strict watch that lags');
      }
    },
  },
];
