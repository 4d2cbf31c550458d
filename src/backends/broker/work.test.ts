import { afterEach, expect, test, vi } from 'vitest';
import { SteadystateError } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import { Folds } from './folds.ts';
import type { CommitRecord } from './index.ts';
import { Broker } from './index.ts';
import { KindWatcher } from './kind-watcher.ts';
import { Kinds } from './kinds.ts';
import { Pending } from './pending.ts';
import { PointerWatcher } from './pointer-watcher.ts';

// What delivery costs, counted instead of timed.

const environment = manualEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };
const thing = (id: string, app = 'web') => ({ metadata: { ...kind, id, labels: { app } }, spec: 1 });
const appIs = (app: string) => ({ labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: [app] } as const] }] });

afterEach(() => {
  vi.restoreAllMocks();
  expect(environment.open.counts()).toEqual({});
});

const makeStore = (historySize = 4096, pendingLimit = 1_000_000): Broker =>
  new Broker({ environment, storeId: environment.id(), capabilities, historySize, pendingLimit });

/** How often delivery looked for events, noted one for a lagging watcher, and called a reader. */
function counters() {
  const takes = vi.spyOn(KindWatcher.prototype, 'take');
  const wakes = vi.spyOn(KindWatcher.prototype, 'wakeReader');
  const notes = vi.spyOn(Pending.prototype, 'add');
  return () => ({ takes: takes.mock.calls.length, wakes: wakes.mock.calls.length, notes: notes.mock.calls.length });
}

async function workOf(options: { readonly watchers: number; readonly stalled: boolean }): Promise<ReturnType<ReturnType<typeof counters>>> {
  await using store = makeStore(8);
  let seen = 0;
  for (let index = 0; index < options.watchers; index++) {
    const watch = await store.watchKind(kind, appIs(`app-${index}`));
    void watch.drain((batch) => {
      seen += batch.length;
    });
  }
  await using stalled = options.stalled ? await store.watchKind(kind) : undefined;
  // Its history has run over before the counting begins.
  for (let index = 0; index < 20; index++) await store.create(thing(`before-${index}`, 'nobody'));
  const count = counters();
  for (let index = 0; index < 100; index++) await store.create(thing(`n${index}`, `app-${index}`));
  const work = count();
  vi.restoreAllMocks();
  expect(seen).toBe(100);
  await stalled?.[Symbol.asyncDispose]();
  return work;
}

test('one stalled watcher among 10,000 costs the others nothing, and the writer no more than a note for each write', async () => {
  const without = await workOf({ watchers: 10_000, stalled: false });
  const beside = await workOf({ watchers: 10_000, stalled: true });
  expect(without.notes).toBe(0);
  // All that was written since it stalled, once each; when they are noted is the store's affair.
  expect(beside.notes).toBeLessThanOrEqual(120);
  expect(beside).toEqual({ ...without, notes: beside.notes });
  // Each write wakes the one watcher that it matches, and no other.
  expect(without.wakes).toBe(100);
});

test('a thousand stalled watchers cost the writer no more than one: what they have not read is kept once for all', async () => {
  for (const stalled of [1, 1000]) {
    await using store = makeStore(8);
    const watches = await Promise.all(Array.from({ length: stalled }, () => store.watchKind(kind)));
    for (let index = 0; index < 40; index++) await store.create(thing(`n${index}`));
    const notes = vi.spyOn(Pending.prototype, 'add');
    const folds = vi.spyOn(Folds.prototype, 'append');
    for (let index = 40; index < 400; index++) await store.create(thing(`n${index}`));
    expect(notes).not.toHaveBeenCalled();
    expect((folds.mock.contexts.at(-1) as Folds).size).toBeLessThanOrEqual(400);
    vi.restoreAllMocks();
    for (const watch of watches.slice(0, 3)) {
      let created = 0;
      for await (const event of watch) if (event.type === 'created' && ++created === 400) break;
    }
    for (const watch of watches) await watch[Symbol.asyncDispose]();
  }
});

test('a write wakes those alone whose query it matches, before or after it; the others do not look', async () => {
  await using store = makeStore();
  await store.create(thing('a', 'web'));
  const takes = vi.spyOn(KindWatcher.prototype, 'take');
  const seen = new Map<string, string[]>();
  for (const app of ['web', 'db', 'cache']) {
    const watch = await store.watchKind(kind, appIs(app));
    const types: string[] = [];
    seen.set(app, types);
    void watch.drain((batch) => types.push(...batch.map(({ type }) => type)));
  }
  const before = takes.mock.calls.length;
  await store.update({ ...thing('a', 'db'), metadata: { ...thing('a', 'db').metadata, version: '1' } });
  expect(Object.fromEntries(seen)).toEqual({ web: ['destroyed'], db: ['created'], cache: [] });
  // Each of the two looks once for the event, and perhaps once more to find no other.
  expect(takes.mock.calls.length - before).toBeLessThanOrEqual(4);
});

test('a watch of one resource is not touched by writes of others', async () => {
  await using store = makeStore();
  const pushes = vi.spyOn(PointerWatcher.prototype, 'push');
  for (let index = 0; index < 1000; index++) void (await store.watch({ ...kind, id: `n${index}` })).drain(() => {});
  await store.create(thing('n7'));
  await store.create(thing('elsewhere'));
  expect(pushes.mock.calls).toHaveLength(1);
});

test('reading and looking make nothing: no collection is there for a kind that was only read', async () => {
  await using store = makeStore();
  const claims = vi.spyOn(Kinds.prototype, 'claim');
  for (let index = 0; index < 100; index++) {
    const unknown = { namespace: `n${index}`, type: kind.type };
    expect((await store.list(unknown)).items).toEqual([]);
    await store.get({ ...unknown, id: 'a' }).catch(() => {});
    await store.destroy({ ...unknown, id: 'a' }).catch(() => {});
    await store.update({ metadata: { ...unknown, id: 'a' }, spec: 1 }).catch(() => {});
  }
  expect(claims).not.toHaveBeenCalled();
});

test('all lagging watchers together hold no more live entries than the cap, however many there are', async () => {
  await using store = makeStore(4, 50);
  const readers: AsyncIterator<StateEvent, undefined>[] = [];
  const pendings = vi.spyOn(Pending.prototype, 'add');
  const folds = vi.spyOn(Folds.prototype, 'append');
  for (let index = 0; index < 40; index++) readers.push((await store.watchKind(kind))[Symbol.asyncIterator]());
  for (let index = 0; index < 200; index++) await store.create(thing(`n${index}`));
  const held = new Set([...(pendings.mock.contexts as Pending[]), ...(folds.mock.contexts as Folds[])]);
  expect(held.size).toBeGreaterThan(0);
  expect([...held].reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(50);
  // Whoever comes back ends up with all that is there.
  for (const reader of readers) {
    const known = new Set<string>();
    while (known.size < 200) {
      const { value } = await reader.next();
      if (value?.type === 'created') known.add(value.resource.metadata.id);
      expect(value?.type).not.toBe('errored');
    }
    await reader.return?.();
  }
});

test('a strict watch that lags ends with one error; the cap is not touched by it, nor are those beside it', async () => {
  await using store = makeStore(4, 50);
  const notes = vi.spyOn(Pending.prototype, 'add');
  const strict = (await store.watchKind(kind, { strict: true }))[Symbol.asyncIterator]();
  let seen = 0;
  void (await store.watchKind(kind)).drain((batch) => {
    seen += batch.length;
  });
  for (let index = 0; index < 30; index++) await store.create(thing(`n${index}`));
  expect(seen).toBe(30);
  expect(notes).not.toHaveBeenCalled();
  const types: (string | undefined)[] = [];
  for (let result = await strict.next(); !result.done; result = await strict.next()) types.push(result.value.type);
  expect(types).toEqual(['errored']);
});

test('an idle watch of a kind gets a bookmark after 10 seconds and not before; a watch of one resource never does', async () => {
  await using store = makeStore();
  const events: StateEvent[] = [];
  const one: StateEvent[] = [];
  void (await store.watchKind(kind, appIs('none'))).drain((batch) => events.push(...batch));
  void (await store.watch({ ...kind, id: 'a' })).drain((batch) => one.push(...batch));
  await store.create(thing('b'));
  await environment.advance(9_999);
  expect(events).toEqual([]);
  await environment.advance(15_000);
  expect(events).toMatchObject([{ type: 'noop', revision: 1 }]);
  // Nothing was written since: its bookmark is as good as a new one.
  await environment.advance(60_000);
  expect(events).toHaveLength(1);
  await store.create(thing('c'));
  await environment.advance(25_000);
  expect(events).toMatchObject([{ revision: 1 }, { type: 'noop', revision: 2 }]);
  expect(one.map(({ type }) => type)).toEqual(['destroyed']);
  // It resumes where all that matches was told.
  await using resumed = await store.watchKind(kind, { ...appIs('web'), startFromBookmark: events[1]?.bookmark as never });
  await store.create(thing('d'));
  expect((await resumed[Symbol.asyncIterator]().next()).value).toMatchObject({ type: 'created', revision: 3 });
});

test('what a watch calls back may throw: the others are told all the same, and it is logged', async () => {
  const lines: string[] = [];
  const log = { log: (_level: string, message: string) => lines.push(message), with: () => log };
  const loud = { ...environment, log: log as never };
  await using store = new Broker({ environment: loud, storeId: environment.id(), capabilities });
  const { sourceOf } = await import('../../state/index.ts');
  const source = sourceOf(await store.watchKind(kind));
  let called = 0;
  source.whenReady(() => {
    if (called++ === 0) throw new Error('out of ink');
  });
  let seen = 0;
  void (await store.watchKind(kind)).drain((batch) => {
    seen += batch.length;
  });
  await store.create(thing('a'));
  await store.create(thing('b'));
  expect(seen).toBe(2);
  expect(lines).toEqual(['what was called back by a watch failed']);
  source.close();
});

test('who waits for a revision learns that the store failed, or was closed', async () => {
  const commits: ((error: SteadystateError) => void)[] = [];
  const committer = {
    historyFloor: 0,
    commit: (_records: readonly CommitRecord[]) => new Promise<void>((_resolve, reject) => commits.push(reject)),
    history: async () => [],
  };
  const failing = new Broker({ environment, storeId: environment.id(), capabilities, committer });
  const waits = failing.waitForRevision(1);
  waits.catch(() => {});
  failing.create(thing('a')).catch(() => {});
  await environment.settle();
  commits[0]?.(new SteadystateError('Ambiguous', 'the sync failed'));
  await expect(waits).rejects.toMatchObject({ code: 'Unavailable' });
  await expect(failing.waitForRevision(1)).rejects.toMatchObject({ code: 'Unavailable' });
  await failing.waitForRevision(0);
  await failing[Symbol.asyncDispose]();
  const closing = makeStore();
  const never = closing.waitForRevision(9);
  never.catch(() => {});
  await closing[Symbol.asyncDispose]();
  await expect(never).rejects.toMatchObject({ code: 'Closed' });
  await expect(makeStore().waitForRevision(-1)).rejects.toMatchObject({ code: 'Invalid' });
});
