import { expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import type { AggregatedWatch, CoreState, StateEvent } from '../../src/state/index.ts';
import { invalidBookmark } from '../../src/state/index.ts';
import { apples, controllerOf, crumbs, primaryApples, World } from './world.ts';

/** A store whose watches end when the test says so, and that may forget bookmarks. */
class FlakyWatches {
  /** Watches that are to end with Unavailable after their next batch. */
  readonly #open = new Set<{ cut: (() => void) | undefined }>();
  bookmarksExpire = false;
  refuse = 0;
  opened = 0;
  resumed = 0;

  wrap(core: CoreState): CoreState {
    const wrapWatch = async (open: () => Promise<AggregatedWatch>, options: { readonly startFromBookmark?: unknown } = {}) => {
      if (this.refuse > 0) {
        this.refuse--;
        throw new SteadystateError('Unavailable', 'no watches today');
      }
      if (options.startFromBookmark !== undefined) {
        if (this.bookmarksExpire) throw invalidBookmark('the bookmark has expired');
        this.resumed++;
      }
      this.opened++;
      return this.#flaky(await open());
    };
    return new Proxy(core, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function') return member;
        if (key !== 'watchKindAggregated' && key !== 'watchKinds') return member.bind(target);
        return (what: unknown, options?: { readonly startFromBookmark?: unknown }) =>
          wrapWatch(() => member.call(target, what, options) as Promise<AggregatedWatch>, options);
      },
    });
  }

  /** Every open watch ends with Unavailable. What was committed before and not yet told is lost with it. */
  cut(): void {
    for (const watch of [...this.#open]) watch.cut?.();
  }

  #flaky(inner: AggregatedWatch): AggregatedWatch {
    const entry: { cut: (() => void) | undefined } = { cut: undefined };
    let ended = false;
    return new Proxy(inner, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (key !== 'drain') return typeof member === 'function' ? member.bind(target) : member;
        return (take: (batch: readonly StateEvent[]) => unknown): Promise<void> =>
          new Promise((resolve, reject) => {
            this.#open.add(entry);
            const end = (): void => {
              this.#open.delete(entry);
              ended = true;
              resolve();
            };
            entry.cut = () => {
              if (ended) return;
              take([{ type: 'errored', error: new SteadystateError('Unavailable', 'the connection broke') }]);
              end();
              void target[Symbol.asyncDispose]();
            };
            target.drain((batch) => (ended ? undefined : take(batch as readonly StateEvent[])) as never).then(end, reject);
          });
      },
    });
  }
}

interface Flaky {
  readonly world: World;
  readonly watches: FlakyWatches;
  /** The newest size that a run saw, by apple. */
  readonly sizes: Map<string, number | 'gone'>;
  readonly ran: string[];
}

async function start(): Promise<Flaky> {
  const watches = new FlakyWatches();
  const world = new World({ wrap: (core) => watches.wrap(core) });
  const sizes = new Map<string, number | 'gone'>();
  const ran: string[] = [];
  await world.apple('a', 1);
  await world.apple('b', 1);
  await world.start(
    controllerOf({
      reconcile: async (context, { pointer }) => {
        ran.push(pointer.id);
        const apple = await context.get(apples.pointer(pointer.id)).catch(() => undefined);
        sizes.set(pointer.id, apple === undefined ? 'gone' : apple.spec.size);
      },
    }),
  );
  return { world, watches, sizes, ran };
}

async function resize(world: World, id: string, size: number): Promise<void> {
  await world.state.updateWithConflicts(apples.pointer(id), (draft) => {
    draft.spec.size = size;
  });
}

test('a watch that breaks goes on from its bookmark: only what changed meanwhile runs', async () => {
  const { world, watches, sizes, ran } = await start();
  await resize(world, 'a', 2);
  await world.environment.settle();
  ran.length = 0;
  watches.cut();
  await resize(world, 'b', 3);
  await world.state.create(apples.create({ id: 'c', spec: { size: 4 } }));
  await world.environment.advance(1000);
  expect([...sizes]).toEqual([
    ['a', 2],
    ['b', 3],
    ['c', 4],
  ]);
  expect(ran.sort()).toEqual(['b', 'c']);
  expect(watches.resumed).toBeGreaterThan(0);
  await world.end();
});

test('one that cannot be opened is tried again, with back-off', async () => {
  const { world, watches, sizes } = await start();
  watches.refuse = 6;
  watches.cut();
  await resize(world, 'a', 9);
  await world.environment.advance(500);
  expect(watches.refuse).toBeGreaterThan(2);
  expect(sizes.get('a')).toBe(1);
  await world.environment.advance(60_000);
  expect(sizes.get('a')).toBe(9);
  await world.end();
});

test('after an expired bookmark every primary is queued, and what was destroyed meanwhile too', async () => {
  const { world, watches, sizes, ran } = await start();
  ran.length = 0;
  watches.bookmarksExpire = true;
  watches.cut();
  await world.state.destroy(apples.pointer('a'));
  await world.apple('c', 5);
  await world.environment.advance(5000);
  expect([...new Set(ran)].sort()).toEqual(['a', 'b', 'c']);
  expect([sizes.get('a'), sizes.get('b'), sizes.get('c')]).toEqual(['gone', 1, 5]);
  await world.end();
});

test('a mapped input whose bookmark expired wakes every primary too', async () => {
  const watches = new FlakyWatches();
  const world = new World({ wrap: (core) => watches.wrap(core) });
  const ran: string[] = [];
  await world.apple('a', 1);
  await world.start(
    controllerOf({
      inputs: [primaryApples, { namespace: 'default', type: crumbs.type, kind: 'mapped' }],
      mapInput: () => [],
      reconcile: async (_context, { pointer }) => void ran.push(pointer.id),
    }),
  );
  await world.environment.advance(10_000);
  ran.length = 0;
  watches.bookmarksExpire = true;
  watches.cut();
  await world.environment.advance(5000);
  expect(ran).toContain('a');
  await world.end();
});

test('watches that break again and again lose nothing', async () => {
  for (const expiring of [false, true]) {
    const { world, watches, sizes } = await start();
    const wanted = new Map<string, number | 'gone'>([
      ['a', 1],
      ['b', 1],
    ]);
    for (let round = 0; round < 60; round++) {
      const id = `n${Math.floor(world.environment.random() * 8)}`;
      watches.bookmarksExpire = expiring && world.environment.random() < 0.3;
      const what = world.environment.random();
      if (what < 0.3) watches.cut();
      else if (what < 0.4) watches.refuse = 2;
      else if (typeof wanted.get(id) !== 'number') {
        await world.state.create(apples.create({ id, spec: { size: round } }));
        wanted.set(id, round);
      } else if (what < 0.6) {
        await world.state.destroy(apples.pointer(id));
        wanted.set(id, 'gone');
      } else {
        await resize(world, id, round);
        wanted.set(id, round);
      }
      if (world.environment.random() < 0.5) await world.environment.advance(world.environment.random() * 300);
    }
    watches.bookmarksExpire = false;
    watches.refuse = 0;
    await world.environment.advance(120_000);
    const seen = new Map([...sizes].filter(([id]) => wanted.has(id)));
    // What came and went while nobody looked need not have been seen.
    for (const [id, size] of wanted) if (size !== 'gone' || seen.has(id)) expect([id, seen.get(id)]).toEqual([id, size]);
    await world.end();
  }
});

test('a store that closes ends nothing but the waking', async () => {
  const { world } = await start();
  await world.memory[Symbol.asyncDispose]();
  await world.environment.advance(120_000);
  expect(world.runtime.status().map(({ name }) => name)).toEqual(['baker']);
  await world.end();
});
