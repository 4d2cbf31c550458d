import { afterEach, expect, test } from 'vitest';
import type { QueueController } from '../../src/runtime/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, controllerOf, crumbs, primaryApples, World } from './world.ts';

let world: World;

afterEach(() => world.end());

/** Crumbs say by a label which apple they are of. */
async function start(more: Partial<QueueController> = {}): Promise<{ readonly ran: string[]; readonly gates: GatedWatches }> {
  const ran: string[] = [];
  const gates = new GatedWatches(() => world.environment);
  world = new World({ historySize: 4, wrap: (core) => gates.wrap(core) });
  for (const id of ['a', 'b', 'c']) await world.apple(id);
  await world.state.create(crumbs.create({ id: 'x', labels: { apple: 'a' }, spec: {} }));
  await world.start(
    controllerOf({
      inputs: [primaryApples, { namespace: 'default', type: crumbs.type, kind: 'mapped' }],
      mapInput: (_context, { metadata }) => (metadata.labels.apple === undefined ? [] : [apples.pointer(metadata.labels.apple)]),
      reconcile: async (_context, { pointer }) => void ran.push(pointer.id),
      ...more,
    }),
  );
  ran.length = 0;
  return { ran, gates };
}

async function label(apple: string): Promise<void> {
  await world.state.updateWithConflicts(crumbs.pointer('x'), (draft) => draft.labels.set('apple', apple));
}

test('each former parent wakes, also one that was parent for a moment only', async () => {
  const { ran } = await start();
  await label('b');
  await label('c');
  await world.environment.settle();
  expect([...new Set(ran)].toSorted()).toEqual(['a', 'b', 'c']);
});

test('one that was parent while the watch lagged wakes too, though nobody told of it', async () => {
  const { ran, gates } = await start();
  gates.hold(crumbs.type);
  await label('b');
  await label('c');
  // More than the store keeps: the steps between are left out.
  for (let count = 0; count < 10; count++) await world.state.create(crumbs.create({ id: `o${count}`, spec: {} }));
  expect(ran).toEqual([]);
  gates.release();
  await world.environment.settle();
  expect([...new Set(ran)].toSorted()).toEqual(['a', 'b', 'c']);
});

test('a watch that lags over its primaries only runs just those', async () => {
  const { ran, gates } = await start();
  gates.hold(apples.type);
  for (let count = 0; count < 10; count++) await world.touch('b');
  gates.release();
  await world.environment.settle();
  expect(ran).toEqual(['b']);
});

test('a mapper that fails for long costs bounded memory, and loses nobody', async () => {
  let broken = true;
  const mapped: string[] = [];
  const { ran } = await start({
    mapInput: (_context, { metadata }) => {
      if (broken) throw new Error('lost the map');
      mapped.push(metadata.labels.apple as string);
      return [apples.pointer(metadata.labels.apple as string)];
    },
  });
  for (let count = 0; count < 300; count++) {
    await label(count === 100 ? 'b' : `none${count}`);
    await world.environment.settle();
  }
  // Too many states to keep: all are looked at at once, without a map.
  expect(new Set(ran)).toEqual(new Set(['a', 'b', 'c']));
  broken = false;
  await label('c');
  await world.environment.advance(120_000);
  expect(mapped.length).toBeLessThan(70);
  expect(mapped.at(-1)).toBe('c');
  expect(ran.at(-1)).toBe('c');
});

test('a mapper that answers nothing at all, or no delay that is one, is a failure as any other', async () => {
  let answer: unknown;
  const { ran } = await start({
    mapInput: () => answer as never,
    mappedDelayMs: ({ id }) => (id === 'b' ? Number.NaN : 0),
  });
  await label('b');
  await world.environment.settle();
  expect(ran).toEqual([]);
  answer = [apples.pointer('b')];
  await label('c');
  await world.environment.settle();
  expect(ran).toEqual([]);
  answer = [apples.pointer('c')];
  await world.environment.advance(60_000);
  expect([...new Set(ran)]).toEqual(['c']);
});

test('a change of owner, phase or finalizers shows the mapper both states too', async () => {
  const seen: string[] = [];
  await start({
    mapInput: (_context, { metadata: { phase, finalizers }, destroyed }) => {
      seen.push(`${phase} ${finalizers.join()}${destroyed ? ' gone' : ''}`);
      return [];
    },
  });
  const step = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
    seen.length = 0;
    await work();
    await world.environment.settle();
    return [...seen];
  };
  expect(await step(() => world.state.addFinalizer(crumbs.pointer('x'), 'f'))).toEqual(['running ', 'running f']);
  expect(await step(() => world.state.teardown(crumbs.pointer('x')))).toEqual(['running f', 'tearingDown f']);
  expect(await step(() => world.state.removeFinalizer(crumbs.pointer('x'), 'f'))).toEqual(['tearingDown f', 'tearingDown ']);
  expect(await step(() => world.state.destroy(crumbs.pointer('x')))).toEqual(['tearingDown  gone']);
});

test.each([
  ['replaced', true, ['a gone', 'b']],
  ['destroyed', false, ['a gone']],
])('a resource that was %s while nobody looked is mapped as gone', async (_what, again, expected) => {
  const seen: string[] = [];
  const { gates } = await start({
    mapInput: (_context, { metadata, destroyed }) => {
      seen.push(`${metadata.labels.apple}${destroyed ? ' gone' : ''}`);
      return [];
    },
  });
  gates.bookmarksExpire = true;
  gates.breakAll();
  await world.state.destroy(crumbs.pointer('x'));
  if (again) await world.state.create(crumbs.create({ id: 'x', labels: { apple: 'b' }, spec: {} }));
  seen.length = 0;
  await world.environment.advance(1000);
  expect(seen).toEqual(expected);
});
