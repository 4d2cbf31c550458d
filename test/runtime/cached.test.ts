import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isForbiddenError, isNotFoundError } from '../../src/resource/index.ts';
import type { ControllerContext, QueueController } from '../../src/runtime/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import { filter, forbidden } from '../../src/state/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, controllerOf, crumbs, pies, primaryApples, World } from './world.ts';

let world: World;
let gates: GatedWatches;
/** Reads that reached the store. */
let reads: number;
let deny: boolean;
let nativeTeardown: CoreState['teardown'];

function counting(core: CoreState): CoreState {
  return new Proxy(core, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key);
      if (key === 'teardown') return nativeTeardown;
      if (typeof member !== 'function') return member;
      return (...parameters: unknown[]) => {
        if (key === 'get' || key === 'list') reads++;
        return member.apply(target, parameters) as unknown;
      };
    },
  });
}

function open(cachedKinds = [apples.kind(), pies.kind()], denied?: string): void {
  reads = 0;
  nativeTeardown = undefined;
  deny = denied !== undefined;
  gates = new GatedWatches(() => world.environment);
  world = new World({
    cachedKinds,
    historySize: 64,
    wrap: (core) => {
      const rule = ({ type, verb }: { readonly type: string; readonly verb: string }): void => {
        if (deny && verb === 'watch' && type === denied) throw forbidden(`nobody may watch ${type}`);
      };
      return counting(filter(gates.wrap(core), rule, { environment: world?.environment ?? ({} as never) }));
    },
  });
}

beforeEach(() => open());

afterEach(() => world.end());

/** Starts a controller of crumbs that reads apples and pies, and gives its view of the state. */
async function startReading(more: Partial<QueueController> = {}): Promise<ControllerContext> {
  let context: ControllerContext | undefined;
  await world.start(
    controllerOf({
      inputs: [
        { namespace: 'default', type: crumbs.type, kind: 'primary' },
        { ...primaryApples, kind: 'mapped' },
      ],
      mapInput: () => [],
      reconcile: async () => {},
      run: async (given) => {
        context = given;
      },
      ...more,
    }),
  );
  return context as ControllerContext;
}

async function pie(id: string, size = 0): Promise<void> {
  await world.state.create(pies.create({ id, spec: { size } }));
}

const ids = async (context: ControllerContext): Promise<readonly string[]> =>
  (await context.list(apples.kind())).items.map(({ metadata }) => metadata.id);

describe('cached reads', () => {
  test('ask no store', async () => {
    await world.apple('a', 3);
    const context = await startReading();
    reads = 0;
    expect((await context.get(apples.pointer('a'))).spec).toEqual({ size: 3 });
    expect(await ids(context)).toEqual(['a']);
    expect(reads).toBe(0);
    await context.uncached.get(apples.pointer('a'));
    await context.uncached.list(apples.kind());
    await context.get(apples.pointer('a'), { raw: true });
    expect(reads).toBe(3);
    await expect(context.get(apples.pointer('none'))).rejects.toSatisfy(isNotFoundError);
    expect(reads).toBe(3);
  });

  test('wait until the cache is filled', async () => {
    await world.apple('a');
    await world.apple('b');
    gates.hold();
    const context = await startReading();
    let seen: readonly string[] | undefined;
    const reading = ids(context).then((found) => {
      seen = found;
    });
    gates.release(1);
    await world.environment.settle();
    expect(seen).toBeUndefined();
    gates.release();
    await reading;
    expect(seen).toEqual(['a', 'b']);
  });

  test('wait no longer than their signal, and their runtime', async () => {
    gates.hold();
    const context = await startReading();
    await expect(context.list(apples.kind(), { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
    const late = expect(context.list(apples.kind())).rejects.toMatchObject({ code: 'Closed' });
    await world.halt();
    await late;
  });

  test('are sorted by bytes, frozen, shared, and match queries', async () => {
    const context = await startReading();
    for (const id of ['b', '\u{10000}', 'a', '\uffee', 'c']) await world.apple(id);
    await world.state.updateWithConflicts(apples.pointer('b'), (draft) => draft.labels.set('ripe', 'yes'));
    await world.environment.settle();
    expect(await ids(context)).toEqual(['a', 'b', 'c', '\uffee', '\u{10000}']);
    const list = await context.list(apples.kind());
    expect(Object.isFrozen(list) && Object.isFrozen(list.items)).toBe(true);
    expect(list.items).toEqual((await world.state.list(apples.kind())).items);
    expect(list.revision).toBe((await world.state.list(apples.kind())).revision);
    expect((await context.list(apples.kind())).items).toBe(list.items);
    expect(await context.get(apples.pointer('b'))).toBe(list.items[1]);
    const labelQueries = [{ terms: [{ key: 'ripe', op: 'exists' as const }] }];
    expect((await context.list(apples.kind(), { labelQueries })).items.map(({ metadata }) => metadata.id)).toEqual(['b']);
    expect((await context.list(apples.kind(), { idQuery: '^[ab]$' })).items).toHaveLength(2);
    // What was given does not change afterwards.
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect(list.items).toHaveLength(5);
    expect(await ids(context)).toEqual(['b', 'c', '\uffee', '\u{10000}']);
  });

  test('are limited to what was declared, too', async () => {
    open([apples.kind(), pies.kind(), crumbs.kind()]);
    const context = await startReading({ inputs: [{ namespace: 'default', type: apples.type, kind: 'primary' }] });
    await expect(context.list(crumbs.kind())).rejects.toSatisfy(isForbiddenError);
    await expect(context.get(crumbs.pointer('x'))).rejects.toSatisfy(isForbiddenError);
  });

  test('of one watch, whatever the number of kinds and controllers', async () => {
    await startReading();
    // Crumbs are not cached.
    expect(gates.opened).toBe(2);
  });
});

describe('the view', () => {
  /** Apples and pies are written in turn, so a pie is never ahead of its apple, and never more than one behind. */
  async function write(rounds: number, from: number, pauseEvery: number): Promise<void> {
    for (let round = from; round < from + rounds; round++) {
      await world.state.update({ ...apples.create({ id: 'x', spec: { size: round } }) }, { currentVersion: await version('apples') });
      await world.state.update({ ...pies.create({ id: 'x', spec: { size: round } }) }, { currentVersion: await version('pies') });
      if (round % pauseEvery === 0) await world.environment.breathe();
    }
  }

  const version = async (what: 'apples' | 'pies'): Promise<string> =>
    (await world.state.get((what === 'apples' ? apples : pies).pointer('x'))).metadata.version;

  async function startLooking(): Promise<{
    readonly looks: [number, number][];
    readonly context: ControllerContext;
    look(): Promise<void>;
  }> {
    await world.apple('x');
    await pie('x');
    const context = await startReading();
    const looks: [number, number][] = [];
    return {
      looks,
      context,
      async look() {
        const [apple, made] = await Promise.all([context.get(apples.pointer('x')), context.get(pies.pointer('x'))]);
        looks.push([(apple.spec as { size: number }).size, (made.spec as { size: number }).size]);
      },
    };
  }

  test('shows all kinds at one revision, and never goes back', async () => {
    const { looks, look } = await startLooking();
    let ended = false;
    const looking = (async () => {
      while (!ended) {
        await look();
        await world.environment.breathe();
      }
    })();
    await write(300, 1, 3);
    await world.environment.settle();
    ended = true;
    await looking;
    await look();
    expect(looks.at(-1)).toEqual([300, 300]);
    expect(new Set(looks.map(([apple]) => apple)).size).toBeGreaterThan(20);
    let before = 0;
    for (const [apple, made] of looks) {
      expect(apple - made === 0 || apple - made === 1, `apple ${apple}, pie ${made}`).toBe(true);
      expect(apple).toBeGreaterThanOrEqual(before);
      before = apple;
    }
  });

  test('steps from one revision to another when it lagged: what was left out shows nothing in between', async () => {
    const { looks, look } = await startLooking();
    // Other apples make the stretch longer than one step.
    for (let count = 0; count < 20; count++) await world.state.create(apples.create({ id: `o${count}`, spec: {} }));
    await world.environment.settle();
    gates.hold();
    await write(250, 1, 1e9);
    for (let count = 0; count < 20; count++) {
      const current = await world.state.get(apples.pointer(`o${count}`));
      await world.state.update(current);
    }
    for (let step = 0; step < 60; step++) {
      gates.release(1);
      await world.environment.settle();
      await look();
    }
    gates.release();
    await world.environment.settle();
    await look();
    expect(looks.at(-1)).toEqual([250, 250]);
    expect([...new Set(looks.map(([apple, made]) => `${apple} ${made}`))]).toEqual(['0 0', '250 250']);
  });

  test('is swapped at once after a lost bookmark', async () => {
    const { looks, look, context } = await startLooking();
    await world.apple('gone');
    gates.bookmarksExpire = true;
    gates.hold();
    gates.breakAll();
    await write(10, 1, 1e9);
    await world.state.destroy(apples.pointer('gone'));
    await world.environment.advance(1000);
    for (let step = 0; step < 8; step++) {
      gates.release(1);
      await world.environment.settle();
      await look();
    }
    gates.release();
    await world.environment.settle();
    await look();
    expect([...new Set(looks.map(([apple, made]) => `${apple} ${made}`))]).toEqual(['0 0', '10 10']);
    expect(await ids(context)).toEqual(['x']);
  });

  test('goes on, from its bookmark, after a break', async () => {
    const { looks, look } = await startLooking();
    gates.breakAll();
    await write(3, 1, 1);
    await world.environment.advance(1000);
    await look();
    expect(looks.at(-1)).toEqual([3, 3]);
  });
});

describe('a controller', () => {
  /** Runs for each crumb, which is not cached, and tells which pies it saw. */
  async function startBaking(bake: (context: ControllerContext, id: string) => Promise<unknown>): Promise<string[]> {
    const seen: string[] = [];
    await world.start(
      controllerOf({
        inputs: [{ namespace: 'default', type: crumbs.type, kind: 'primary' }],
        reconcile: async (context, { pointer }) => {
          const pieIds = (await context.list(pies.kind())).items.map(({ metadata }) => metadata.id);
          seen.push(`${pointer.id}: ${pieIds.join(' ')}`);
          await bake(context, pointer.id);
        },
      }),
    );
    return seen;
  }

  async function crumb(id: string): Promise<void> {
    await world.state.create(crumbs.create({ id, spec: {} }));
    await world.environment.settle();
  }

  test('does not run on a view older than what it has written', async () => {
    const seen = await startBaking((context, id) => context.create(pies.create({ id, spec: {} })));
    gates.hold(pies.type);
    await crumb('c1');
    await crumb('c2');
    // An older change of another kind is not enough.
    await world.apple('a');
    gates.release(0);
    await world.environment.advance(60_000);
    expect(seen).toEqual(['c1: ']);
    gates.release();
    await world.environment.settle();
    expect(seen).toEqual(['c1: ', 'c2: c1']);
  });

  test('nor one that shows what it has destroyed', async () => {
    await pie('old');
    const seen = await startBaking(async (context, id) => (id === 'c1' ? context.destroy(pies.pointer('old'), { owner: '' }) : undefined));
    gates.hold(pies.type);
    await crumb('c1');
    await crumb('c2');
    await world.environment.advance(60_000);
    expect(seen).toEqual(['c1: old']);
    gates.release();
    await world.environment.settle();
    expect(seen).toEqual(['c1: old', 'c2: ']);
  });

  test('nor one that shows as running what it has torn down, where the store does that in one call', async () => {
    await world.end();
    open([pies.kind()]);
    const store = world.state;
    nativeTeardown = (pointer, options) => store.teardown(pointer, options);
    await pie('old');
    const phases: string[] = [];
    await world.start(
      controllerOf({
        inputs: [{ namespace: 'default', type: crumbs.type, kind: 'primary' }],
        reconcile: async (context) => {
          phases.push((await context.get(pies.pointer('old'))).metadata.phase);
          await context.teardown(pies.pointer('old'), { owner: '' });
        },
      }),
    );
    gates.hold(pies.type);
    await crumb('c1');
    await crumb('c2');
    await world.environment.advance(60_000);
    expect(phases).toEqual(['running']);
    gates.release();
    await world.environment.settle();
    expect(phases).toEqual(['running', 'tearingDown']);
  });

  test('does not wait for what others have written, nor over its stop', async () => {
    const seen = await startBaking(async (context, id) => (id === 'c2' ? context.create(pies.create({ id, spec: {} })) : undefined));
    gates.hold(pies.type);
    await pie('theirs');
    await crumb('c1');
    await crumb('c2');
    await crumb('c3');
    expect(seen).toEqual(['c1: ', 'c2: ']);
    await world.halt();
    expect(seen).toHaveLength(2);
  });
});

test('a kind that may not be watched holds only who needs it, and comes in later', async () => {
  open([apples.kind(), pies.kind()], pies.type);
  await world.apple('a');
  await pie('p');
  const context = await startReading();
  expect(await ids(context)).toEqual(['a']);
  let seen: number | undefined;
  const reading = context.list(pies.kind()).then(({ items }) => {
    seen = items.length;
  });
  await world.environment.advance(10_000);
  expect(seen).toBeUndefined();
  deny = false;
  await world.environment.advance(60_000);
  await reading;
  expect(seen).toBe(1);
});
