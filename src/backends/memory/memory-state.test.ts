import { afterEach, describe, expect, test } from 'vitest';
import type { Bookmark, CoreState, StateEvent } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import { memoryState } from './memory-state.ts';

const environment = manualEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const thing = (id: string, spec: unknown = { size: 1 }, labels: Record<string, string> = {}) => ({
  metadata: { ...kind, id, labels },
  spec,
});

afterEach(() => {
  expect(environment.open.counts()).toEqual({});
});

async function collect(state: CoreState, count: number, options = {}): Promise<StateEvent[]> {
  const events: StateEvent[] = [];
  for await (const event of await state.watchKind(kind, options)) {
    events.push(event);
    if (events.length >= count) break;
  }
  return events;
}

describe('delivery', () => {
  test('a watcher that lags is brought up to date by id, and marked so', async () => {
    await using core = memoryState({ environment, historySize: 4 });
    const state = wrapCore(core, { environment });
    await state.create(thing('kept'));
    await state.create(thing('doomed'));
    await using watch = await state.watchKind(kind, { bootstrapContents: true });
    const iterator = watch[Symbol.asyncIterator]();
    const take = async (): Promise<StateEvent> => (await iterator.next()).value as StateEvent;
    expect([(await take()).type, (await take()).type, (await take()).type]).toEqual(['created', 'created', 'bootstrapped']);
    for (let round = 0; round < 50; round++)
      await state.updateWithConflicts({ ...kind, id: 'kept' }, (draft) => void (draft.spec = { size: round + 2 }));
    await state.destroy({ ...kind, id: 'doomed' });
    await state.create(thing('fresh'));
    await state.create(thing('brief'));
    await state.destroy({ ...kind, id: 'brief' });
    const events = [await take(), await take(), await take()];
    expect(
      events.map((event) => [event.type, (event as { resource: { metadata: { id: string } } }).resource.metadata.id, event.resync]),
    ).toEqual([
      ['updated', 'kept', true],
      ['destroyed', 'doomed', true],
      ['created', 'fresh', true],
    ]);
    expect((events[0] as { old: { spec: unknown } }).old.spec).toEqual({ size: 1 });
    // The stretch repeats the last safe place; only its end can be resumed from anew.
    expect(events[0]?.bookmark?.equals(events[1]?.bookmark as Bookmark)).toBe(true);
    expect(events[2]?.bookmark?.equals(events[1]?.bookmark as Bookmark)).toBe(false);
  });

  test('above the common cap a watcher gets a snapshot, and what went is told first', async () => {
    await using core = memoryState({ environment, historySize: 4, pendingLimit: 3 });
    for (const id of ['a', 'b', 'c']) await core.create(thing(id));
    await using watch = await core.watchKind(kind, { bootstrapContents: true });
    const seen = new Map<string, unknown>();
    const iterator = watch[Symbol.asyncIterator]();
    for (let index = 0; index < 4; index++) {
      const { value } = await iterator.next();
      if (value?.type === 'created') seen.set(value.resource.metadata.id, value.resource.spec);
    }
    await core.destroy({ ...kind, id: 'b' });
    for (let index = 0; index < 40; index++) await core.create(thing(`new-${index}`));
    for (;;) {
      const { value } = await iterator.next();
      if (value?.type === 'created' || value?.type === 'updated') seen.set(value.resource.metadata.id, value.resource.spec);
      if (value?.type === 'destroyed') seen.delete(value.resource.metadata.id);
      if (value?.type === 'noop') break;
    }
    const { items } = await core.list(kind);
    expect([...seen.keys()].sort()).toEqual(items.map((item) => item.metadata.id));
  });

  test('a strict watch ends with an error instead', async () => {
    await using core = memoryState({ environment, historySize: 4 });
    const watch = await core.watchKind(kind, { strict: true });
    for (let index = 0; index < 20; index++) await core.create(thing(`n${index}`));
    const events: StateEvent[] = [];
    for await (const event of watch) events.push(event);
    expect(events.map((event) => event.type)).toEqual(['errored']);
  });

  test('resumes from a bookmark, and refuses foreign, future and expired ones', async () => {
    await using core = memoryState({ environment, historySize: 4 });
    await using other = memoryState({ environment });
    await core.create(thing('a'));
    const [noop] = await collect(core, 1, { bootstrapBookmark: true });
    await core.create(thing('b'));
    const [event] = await collect(core, 1, { startFromBookmark: noop?.bookmark });
    expect(event).toMatchObject({ type: 'created', resource: { metadata: { id: 'b' } } });
    await expect(other.watchKind(kind, { startFromBookmark: noop?.bookmark as Bookmark })).rejects.toMatchObject({
      code: 'InvalidBookmark',
    });
    for (let index = 0; index < 20; index++) await core.create(thing(`n${index}`));
    await expect(core.watchKind(kind, { startFromBookmark: noop?.bookmark as Bookmark })).rejects.toMatchObject({
      code: 'InvalidBookmark',
    });
  });

  test('an idle watch gets a fresh bookmark after others wrote', async () => {
    await using core = memoryState({ environment });
    const watch = await core.watchKind(kind);
    const types: string[] = [];
    const drained = watch.drain((batch) => types.push(...batch.map((event) => event.type)));
    await core.create({ metadata: { namespace: 'other', type: kind.type, id: 'x' }, spec: null });
    await environment.advance(25_000);
    expect(types).toEqual(['noop']);
    await watch[Symbol.asyncDispose]();
    await drained;
  });

  test('a reader that writes lets nobody see its write before what it stands on', async () => {
    await using core = memoryState({ environment });
    const order: string[] = [];
    const first = await core.watchKind(kind);
    const second = await core.watchKind(kind);
    const drained = [
      first.drain((batch) => {
        for (const event of batch) {
          order.push(`first ${event.revision}`);
          if (event.revision === 1) void core.create(thing('b'));
        }
      }),
      second.drain((batch) => {
        for (const event of batch) order.push(`second ${event.revision}`);
      }),
    ];
    await core.create(thing('a'));
    await environment.settle();
    for (const name of ['first', 'second']) expect(order.filter((line) => line.startsWith(name))).toEqual([`${name} 1`, `${name} 2`]);
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    await Promise.all(drained);
  });
});
