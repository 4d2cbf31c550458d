import { afterEach, describe, expect, test } from 'vitest';
import type { SteadystateError } from '../../resource/index.ts';
import { SteadystateError as StoreError } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import type { CommitRecord, Committer } from './index.ts';
import { Broker } from './index.ts';

const environment = manualEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const other = { namespace: 'default', type: 'Others.example.dev' };
const thing = (id: string, spec: unknown = 1, of = kind) => ({ metadata: { ...of, id }, spec });
const at = (id: string) => ({ ...kind, id });
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };

afterEach(() => {
  expect(environment.open.counts()).toEqual({});
});

/** A disk whose every sync waits for the test. */
class SlowDisk implements Committer {
  readonly batches: { readonly ids: readonly string[]; readonly done: () => void; readonly fail: (error: SteadystateError) => void }[] = [];
  historyFloor = 0;

  commit(records: readonly CommitRecord[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.batches.push({ ids: records.map((record) => record.id), done: resolve, fail: reject });
    });
  }

  history(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  async next() {
    await environment.settle();
    const batch = this.batches.shift();
    if (batch === undefined) throw new Error('no batch is waiting');
    return batch;
  }
}

function slowStore() {
  const disk = new SlowDisk();
  return { disk, store: new Broker({ environment, storeId: environment.id(), capabilities, committer: disk }) };
}

/** The outcome of a call, once it has one. */
function fate(call: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'open' };
  call.then(
    () => {
      seen.outcome = 'done';
    },
    (error: SteadystateError) => {
      seen.outcome = error.reason ?? error.code;
    },
  );
  return seen;
}

const noSpace = () => new StoreError('NoSpace', 'no space left');
const ambiguous = () => new StoreError('Ambiguous', 'the sync failed');

describe('group commit', () => {
  test('while one batch syncs the next is staged, and callers of one turn share a batch', async () => {
    const { disk, store } = slowStore();
    const writes = [store.create(thing('a')), store.create(thing('b'))];
    const first = await disk.next();
    expect(first.ids).toEqual(['a', 'b']);
    writes.push(store.create(thing('c')), store.create(thing('d')));
    await environment.settle();
    expect(disk.batches).toEqual([]);
    first.done();
    const second = await disk.next();
    expect(second.ids).toEqual(['c', 'd']);
    second.done();
    expect((await Promise.all(writes)).map((value) => value.metadata.version)).toEqual(['1', '2', '3', '4']);
    await store[Symbol.asyncDispose]();
  });

  test('the order is: durable, readers, watchers, the writer', async () => {
    const { disk, store } = slowStore();
    const order: string[] = [];
    const watch = await store.watchKind(kind);
    const drained = watch.drain(() => {
      order.push(`watcher, revision ${store.revision}`);
    });
    const write = store.create(thing('a')).then(() => order.push('writer'));
    const batch = await disk.next();
    expect(order).toEqual([]);
    await expect(store.get(at('a'))).rejects.toMatchObject({ code: 'NotFound' });
    expect((await store.list(kind)).items).toEqual([]);
    batch.done();
    await write;
    expect(order).toEqual(['watcher, revision 1', 'writer']);
    await store[Symbol.asyncDispose]();
    await drained;
  });

  test('a loser waits for the fate of what it lost against', async () => {
    const { disk, store } = slowStore();
    const winner = fate(store.create(thing('a')));
    const loser = fate(store.create(thing('a')));
    const missing = fate(store.update(thing('b')));
    const batch = await disk.next();
    // What loses against nothing staged learns of it at once.
    expect([winner.outcome, loser.outcome, missing.outcome]).toEqual(['open', 'open', 'NotFound']);
    batch.done();
    await environment.settle();
    expect([winner.outcome, loser.outcome]).toEqual(['done', 'alreadyExists']);
    await store[Symbol.asyncDispose]();
  });

  test('writes stand on what is staged: update, destroy and create again before the first sync', async () => {
    const { disk, store } = slowStore();
    const created = store.create(thing('a', 1));
    const first = await disk.next();
    const updated = store.update({ ...thing('a', 2), metadata: { ...at('a'), version: '1' } });
    const stale = fate(store.update({ ...thing('a', 3), metadata: { ...at('a'), version: '1' } }));
    const destroyed = store.destroy(at('a'));
    const gone = fate(store.destroy(at('a')));
    const again = store.create(thing('a', 4));
    first.done();
    expect((await created).metadata.version).toBe('1');
    const second = await disk.next();
    expect([stale.outcome, gone.outcome]).toEqual(['open', 'open']);
    second.done();
    expect((await updated).metadata).toMatchObject({ version: '2', uid: '1' });
    await destroyed;
    expect((await again).metadata).toMatchObject({ version: '4', uid: '4' });
    await environment.settle();
    expect([stale.outcome, gone.outcome]).toEqual(['version', 'NotFound']);
    expect((await store.list(kind)).items.map((item) => item.spec)).toEqual([4]);
    await store[Symbol.asyncDispose]();
  });
});

describe('failures', () => {
  test('without room a batch and all that builds on it fail, nothing is kept, and the next write uses the revision', async () => {
    const { disk, store } = slowStore();
    const before = store.create(thing('kept'));
    (await disk.next()).done();
    await before;
    const create = store.create(thing('a'));
    const batch = await disk.next();
    const onTop = store.update({ ...thing('a', 2), metadata: { ...at('a'), version: '2' } });
    const loser = store.create(thing('a'));
    batch.fail(noSpace());
    for (const call of [create, onTop, loser]) await expect(call).rejects.toMatchObject({ code: 'NoSpace', pointer: at('a') });
    expect((await store.list(kind)).items).toHaveLength(1);
    const again = store.create(thing('a'));
    (await disk.next()).done();
    expect((await again).metadata.version).toBe('2');
    await store[Symbol.asyncDispose]();
  });

  test('a create staged on a destroy that is durable can fail, and the id is free again', async () => {
    const { disk, store } = slowStore();
    const created = store.create(thing('a'));
    (await disk.next()).done();
    await created;
    const destroyed = store.destroy(at('a'));
    const batch = await disk.next();
    const again = store.create(thing('a', 2));
    batch.done();
    await destroyed;
    (await disk.next()).fail(noSpace());
    await expect(again).rejects.toMatchObject({ code: 'NoSpace' });
    const third = store.create(thing('a', 3));
    (await disk.next()).done();
    expect((await third).spec).toBe(3);
    await store[Symbol.asyncDispose]();
  });

  test('without room a destroy does not fall with the creates beside it, and later creates wait for their turn', async () => {
    const { disk, store } = slowStore();
    const made = store.create(thing('a'));
    (await disk.next()).done();
    await made;
    const creating = store.create(thing('b'));
    const destroying = store.destroy(at('a'));
    (await disk.next()).fail(noSpace());
    await expect(creating).rejects.toMatchObject({ code: 'NoSpace' });
    const again = await disk.next();
    const waiting = store.create(thing('c'));
    const stale = store.update({ ...thing('a', 2), metadata: { ...at('a'), version: '1' } });
    expect(again.ids).toEqual(['a']);
    again.done();
    await destroying;
    await expect(stale).rejects.toMatchObject({ code: 'NotFound' });
    const last = await disk.next();
    expect(last.ids).toEqual(['c']);
    last.done();
    expect((await waiting).metadata.version).toBe('3');
    await store[Symbol.asyncDispose]();
  });

  test('a failed sync leaves its own writes ambiguous, later ones unavailable, and the store stopped but for reading', async () => {
    const { disk, store } = slowStore();
    const before = store.create(thing('before'));
    (await disk.next()).done();
    await before;
    const watch = await store.watchKind(kind);
    const write = store.create(thing('a'));
    const batch = await disk.next();
    const later = store.create(thing('b'));
    batch.fail(ambiguous());
    await expect(write).rejects.toMatchObject({ code: 'Ambiguous', pointer: at('a') });
    await expect(later).rejects.toMatchObject({ code: 'Unavailable', pointer: at('b') });
    for (const call of [store.create(thing('c')), store.destroy(at('before')), store.watch(at('before')), store.watchKind(kind)])
      await expect(call).rejects.toMatchObject({ code: 'Unavailable' });
    expect((await store.get(at('before'))).metadata.version).toBe('1');
    await expect(store.get(at('a'))).rejects.toMatchObject({ code: 'NotFound' });
    expect((await store.list(kind)).items).toHaveLength(1);
    const events: StateEvent[] = [];
    for await (const event of watch) events.push(event);
    expect(events).toMatchObject([{ type: 'errored', error: { code: 'Unavailable' } }]);
    expect(disk.batches).toEqual([]);
    await store[Symbol.asyncDispose]();
    await expect(store.get(at('before'))).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test('a file that is not the one that was opened is not read from either', async () => {
    const { disk, store } = slowStore();
    const write = store.create(thing('a'));
    (await disk.next()).fail(new StoreError('Corrupt', 'the file was replaced'));
    await expect(write).rejects.toMatchObject({ code: 'Corrupt' });
    for (const call of [store.create(thing('b')), store.get(at('a')), store.list(kind), store.watchKind(kind)])
      await expect(call).rejects.toMatchObject({ code: 'Corrupt' });
    await store[Symbol.asyncDispose]();
  });

  test('an abort ends the waiting, not the write', async () => {
    const { disk, store } = slowStore();
    const abort = new AbortController();
    const write = store.create(thing('a'), { signal: abort.signal });
    const batch = await disk.next();
    abort.abort(new Error('enough'));
    await expect(write).rejects.toMatchObject({ code: 'Ambiguous', pointer: at('a') });
    batch.done();
    await environment.settle();
    expect((await store.get(at('a'))).metadata.version).toBe('1');
    await expect(store.create(thing('b'), { signal: abort.signal })).rejects.toThrow('enough');
    await store[Symbol.asyncDispose]();
  });
});

describe('places to resume from', () => {
  const memory = (historySize?: number) =>
    new Broker({ environment, storeId: environment.id(), capabilities, ...(historySize !== undefined && { historySize }) });

  async function take(store: Broker, count: number, of = kind, options = {}): Promise<StateEvent[]> {
    const events: StateEvent[] = [];
    for await (const event of await store.watchKind(of, options)) {
      events.push(event);
      if (events.length >= count) break;
    }
    return events;
  }

  test('a bookmark resumes a watch of a kind that nobody has written or watched before', async () => {
    await using store = memory();
    await store.create(thing('a'));
    const [{ bookmark }] = (await take(store, 1, kind, { bootstrapBookmark: true })) as [StateEvent];
    await store.create(thing('b'));
    await store.create(thing('x', 1, other));
    expect(await take(store, 1, other, { startFromBookmark: bookmark })).toMatchObject([{ type: 'created', revision: 3 }]);
    const unknown = await store.watchKind({ ...kind, type: 'Never.example.dev' }, { startFromBookmark: bookmark as Bookmark });
    await unknown[Symbol.asyncDispose]();
  });

  test('a tail with a bookmark begins before its first event', async () => {
    await using store = memory();
    for (const id of ['a', 'b', 'c']) await store.create(thing(id));
    const events = await take(store, 3, kind, { tailEvents: 2, bootstrapBookmark: true });
    expect(events.map((event) => [event.type, event.revision])).toEqual([
      ['noop', 1],
      ['created', 2],
      ['created', 3],
    ]);
    const resumed = await take(store, 2, kind, { startFromBookmark: events[0]?.bookmark });
    expect(resumed.map((event) => event.revision)).toEqual([2, 3]);
    expect(await take(store, 1, kind, { tailEvents: 0, bootstrapBookmark: true })).toMatchObject([{ type: 'noop', revision: 3 }]);
  });

  test('a tail that is coalesced before it was read can be resumed without a loss', async () => {
    await using store = memory(4);
    for (const id of ['a', 'b', 'c', 'd']) await store.create(thing(id));
    const watch = await store.watchKind(kind, { tailEvents: 3 });
    for (let index = 0; index < 20; index++) await store.create(thing(`later-${index}`));
    const iterator = watch[Symbol.asyncIterator]();
    const { value: first } = await iterator.next();
    expect(first).toMatchObject({ type: 'created', resync: true, resource: { metadata: { id: 'b' } } });
    await watch[Symbol.asyncDispose]();
    // The place that it repeats lies before everything that it still owed; here that history is gone, and it says so.
    await expect(store.watchKind(kind, { startFromBookmark: first?.bookmark as Bookmark })).rejects.toMatchObject({
      code: 'InvalidBookmark',
      message: expect.stringContaining('revision 1,'),
    });
  });
});

describe('the common cap', () => {
  test('what comes and goes while a watcher is stalled costs nothing', async () => {
    await using store = new Broker({ environment, storeId: environment.id(), capabilities, historySize: 4, pendingLimit: 1 });
    for (const id of ['a', 'b', 'c']) await store.create(thing(id));
    const watch = await store.watchKind(kind, { bootstrapContents: true });
    const iterator = watch[Symbol.asyncIterator]();
    for (let index = 0; index < 4; index++) await iterator.next();
    await store.destroy(at('b'));
    for (let index = 0; index < 500; index++) {
      await store.create(thing(`brief-${index}`));
      await store.destroy(at(`brief-${index}`));
    }
    await store.create(thing('b', 2));
    await store.destroy(at('c'));
    const events: StateEvent[] = [];
    while (events.at(-1)?.type !== 'noop') events.push((await iterator.next()).value as StateEvent);
    const told = events.map(
      (event) => `${event.type} ${(event as { resource?: { metadata: { id: string } } }).resource?.metadata.id ?? ''}`,
    );
    expect(told).toEqual(['destroyed b', 'destroyed c', 'created a', 'created b', 'noop ']);
    expect(events.every((event) => event.resync)).toBe(true);
    await watch[Symbol.asyncDispose]();
  });

  test('what was made anew before the cap was reached, and then went, is told as gone', async () => {
    await using store = new Broker({ environment, storeId: environment.id(), capabilities, historySize: 8, pendingLimit: 3 });
    const put = async (id: string, app: string): Promise<void> => {
      const { version } = (await store.get(at(id)).catch(() => undefined))?.metadata ?? {};
      const input = { metadata: { ...at(id), labels: { app } }, spec: 1 };
      await (version === undefined ? store.create(input) : store.update(input, { currentVersion: version }));
    };
    await put('a', 'web');
    await using all = await store.watchKind(kind);
    await store.destroy(at('a'));
    for (const id of ['a', 'b', 'c']) await put(id, 'web');
    // It fills the rest of what all may hold together.
    const web = { labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'] } as const] }] };
    await using others = await store.watchKind(kind, web);
    for (const app of ['db', 'web', 'db', 'web']) await put('a', app);
    await store.destroy(at('a'));
    for (let index = 0; index < 6; index++) await put('b', 'web');
    const known = new Set(['a']);
    for await (const event of all) {
      if (event.type === 'noop') break;
      if (event.type === 'created' || event.type === 'updated') known.add(event.resource.metadata.id);
      if (event.type === 'destroyed') known.delete(event.resource.metadata.id);
    }
    expect([...known].sort()).toEqual(['b', 'c']);
    await others[Symbol.asyncDispose]();
  });

  test('a watch of one id is not touched by it', async () => {
    await using store = new Broker({ environment, storeId: environment.id(), capabilities, historySize: 4, pendingLimit: 0 });
    await store.create(thing('a', 0));
    const watch = await store.watch(at('a'));
    for (let index = 1; index <= 300; index++)
      await store.update({ ...thing('a', index), metadata: { ...at('a'), version: String(index) } });
    const iterator = watch[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ type: 'created', resource: { spec: 0 } });
    let last: StateEvent | undefined;
    while (last?.revision !== 301) last = (await iterator.next()).value as StateEvent;
    expect(last).toMatchObject({ type: 'updated', resync: true, resource: { spec: 300 } });
    await watch[Symbol.asyncDispose]();
  });
});
