import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import type { ClassicTransformSettings } from '../../src/runtime/index.ts';
import { destroyOutputError, skipError, transform } from '../../src/runtime/index.ts';
import { apples, crumbs, pies, World } from './world.ts';

type Size = { size: number };
type Settings = ClassicTransformSettings<Size, Size>;

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(() => world.end());

async function start(more: Partial<Settings> = {}): Promise<void> {
  world.runtime.register(
    transform<Size, Size>({
      name: 'baker',
      input: apples.kind(),
      output: pies.kind(),
      map: ({ metadata, spec }) => (spec.size < 0 ? undefined : pies.create({ id: metadata.id, spec: {} })),
      unmap: ({ id }) => apples.pointer(id),
      transform: (_context, { spec }, draft) => {
        draft.spec.size = spec.size * 2;
      },
      ...more,
    }),
  );
  await world.start();
}

const pie = (id: string) => world.state.get(pies.pointer(id));
const apple = (id: string) => world.state.get(apples.pointer(id));
const pieIds = async (): Promise<readonly string[]> => (await world.state.list(pies.kind())).items.map(({ metadata }) => metadata.id);

async function resize(id: string, size: number): Promise<void> {
  await world.state.updateWithConflicts(apples.pointer(id), (draft) => {
    draft.spec.size = size;
  });
  await world.environment.settle();
}

async function gone(id: string): Promise<void> {
  await world.state.destroy(apples.pointer(id));
  await world.environment.settle();
}

test('every input has its output, and no other is left', async () => {
  await world.state.create(pies.create({ id: 'theirs', spec: {} }), { owner: 'another' });
  await start();
  await world.apple('a', 1);
  await world.apple('b', 2);
  await resize('a', 5);
  expect((await pie('a')).spec).toEqual({ size: 10 });
  expect((await apple('a')).metadata.finalizers).toEqual([]);
  await resize('b', -1);
  expect(await pieIds()).toEqual(['a', 'theirs']);
  await gone('a');
  expect(await pieIds()).toEqual(['theirs']);
});

test('outputs that are held go once they are let go', async () => {
  await start();
  await world.apple('a');
  await world.state.addFinalizer(pies.pointer('a'), 'eater');
  await gone('a');
  expect((await pie('a')).metadata.phase).toBe('tearingDown');
  await world.state.removeFinalizer(pies.pointer('a'), 'eater');
  await world.environment.settle();
  expect(await pieIds()).toEqual([]);
});

test('an output that is torn down while it is wanted is made anew', async () => {
  await start();
  await world.apple('a', 1);
  await world.state.addFinalizer(pies.pointer('a'), 'eater');
  await world.state.teardown(pies.pointer('a'), { owner: 'baker' });
  await resize('a', 2);
  await world.state.removeFinalizer(pies.pointer('a'), 'eater');
  await world.environment.settle();
  expect(await pie('a')).toMatchObject({ metadata: { phase: 'running' }, spec: { size: 4 } });
});

test('an item that fails does not keep the others from theirs, and is tried again', async () => {
  let broken = true;
  await start({
    transform: (_context, { metadata, spec }, draft) => {
      if (broken && metadata.id === 'a') throw new SteadystateError('Unavailable', 'the oven is cold');
      draft.spec.size = spec.size;
    },
  });
  for (const id of ['a', 'b', 'c']) await world.apple(id, 1);
  await world.environment.advance(60_000);
  await gone('c');
  expect(world.runtime.status()[0]?.lastError).toMatch(/the oven is cold/);
  await world.environment.advance(60_000);
  expect(await pieIds()).toEqual(['b']);
  broken = false;
  await world.environment.advance(60_000);
  expect(await pieIds()).toEqual(['a', 'b']);
  expect(world.runtime.status()[0]?.lastError).toBeUndefined();
});

test('a live output stays while its item fails or is skipped', async () => {
  let error: Error | undefined;
  await start({
    transform: (_context, { metadata, spec }, draft) => {
      if (error !== undefined && metadata.id === 'a') throw error;
      draft.spec.size = spec.size;
    },
  });
  await world.apple('a', 1);
  await world.apple('b', 1);
  for (const each of [skipError(), new Error('the oven is cold')]) {
    error = each;
    await resize('b', (await apple('b')).spec.size + 1);
    await resize('b', (await apple('b')).spec.size + 1);
    await world.environment.advance(10_000);
    expect([await pieIds(), (await pie('b')).spec]).toEqual([['a', 'b'], (await apple('b')).spec]);
  }
});

test('an owner conflict is an error', async () => {
  await world.state.create(pies.create({ id: 'a', spec: {} }), { owner: 'another' });
  await start();
  await world.apple('a', 3);
  expect(world.runtime.status()[0]?.lastError).toMatch(/owned by another/);
});

test('an output that is not wanted is destroyed on request', async () => {
  let calls = 0;
  await start({
    inputFinalizers: true,
    transform: (_context, { spec }, draft) => {
      calls++;
      if (spec.size > 10) throw destroyOutputError();
      draft.spec.size = spec.size;
    },
  });
  await world.apple('a', 1);
  await resize('a', 11);
  expect(await pieIds()).toEqual([]);
  expect(calls).toBeLessThan(8);
  await resize('a', 2);
  expect([await pieIds(), (await apple('a')).metadata.finalizers]).toEqual([['a'], ['baker']]);
  await resize('a', 11);
  await world.state.teardown(apples.pointer('a'));
  await world.environment.settle();
  expect([await pieIds(), (await apple('a')).metadata.finalizers]).toEqual([[], []]);
});

describe('with input finalizers', () => {
  test('an input is let go last', async () => {
    const steps: string[] = [];
    await start({
      inputFinalizers: true,
      finalizerRemoval: async (context, { metadata }) =>
        void steps.push(`${metadata.id}: ${(await context.list(pies.kind())).items.length} pies`),
    });
    await world.apple('a');
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await world.state.teardown(apples.pointer('a'));
    await world.environment.settle();
    expect([(await apple('a')).metadata.finalizers, steps]).toEqual([['baker'], []]);
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect([(await apple('a')).metadata.finalizers, await pieIds(), steps]).toEqual([[], [], ['a: 0 pies']]);
  });

  test('also when the map answers none later', async () => {
    await start({ inputFinalizers: true });
    await world.apple('a');
    await resize('a', -1);
    expect([(await apple('a')).metadata.finalizers, await pieIds()]).toEqual([[], []]);
  });

  test('and when it is not among the wanted inputs any more', async () => {
    const labelQueries = [{ terms: [{ key: 'ripe', op: 'exists' as const }] }];
    await start({ inputFinalizers: true, inputQuery: { labelQueries } });
    await world.apple('a');
    expect([(await apple('a')).metadata.finalizers, await pieIds()]).toEqual([[], []]);
    const label = async (
      edit: (labels: { set(key: string, value: string): void; delete(key: string): boolean }) => void,
    ): Promise<void> => {
      await world.state.updateWithConflicts(apples.pointer('a'), (draft) => edit(draft.labels));
      await world.environment.settle();
    };
    await label((labels) => labels.set('ripe', 'yes'));
    expect([(await apple('a')).metadata.finalizers, await pieIds()]).toEqual([['baker'], ['a']]);
    await label((labels) => void labels.delete('ripe'));
    expect([(await apple('a')).metadata.finalizers, await pieIds()]).toEqual([[], []]);
  });

  test('an input stays held while its output could not be taken down', async () => {
    await start({ inputFinalizers: true, unmap: ({ id }) => apples.pointer(id) });
    await world.apple('a');
    // Its owner has changed: it cannot be taken down, but it is nobody's business of ours any more either.
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await world.state.teardown(apples.pointer('a'));
    await world.environment.advance(60_000);
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect((await apple('a')).metadata.finalizers).toEqual([]);
  });
});

test('inputs in teardown are as any other, or ignored', async () => {
  for (const ignoreTearingDownInputs of [false, true]) {
    await world.end();
    world = new World();
    await start({ ignoreTearingDownInputs });
    await world.apple('a');
    await world.state.addFinalizer(apples.pointer('a'), 'other');
    await world.state.teardown(apples.pointer('a'));
    await world.environment.settle();
    expect(await pieIds()).toEqual(ignoreTearingDownInputs ? [] : ['a']);
  }
});

test('extra inputs and other events wake it; hooks run around each write', async () => {
  const steps: string[] = [];
  let wakeUp = (): void => {};
  let signal: AbortSignal | undefined;
  await start({
    extraInputs: [{ namespace: 'default', type: crumbs.type, kind: 'weak' }],
    wakeOn: (wake, ends) => {
      wakeUp = wake;
      signal = ends;
    },
    before: async (context) => void steps.push(`${(await context.list(crumbs.kind())).items.length} crumbs`),
    after: (_context, _input, { metadata }) => void steps.push(`baked ${metadata.id}`),
    shutdown: async () => void steps.push('shutdown'),
  });
  await world.apple('a');
  steps.length = 0;
  await world.state.create(crumbs.create({ id: 'c', spec: {} }));
  await world.environment.settle();
  expect(steps).toEqual(['1 crumbs', 'baked a']);
  wakeUp();
  await world.environment.settle();
  expect(steps).toHaveLength(4);
  await world.halt();
  expect(steps.at(-1)).toBe('shutdown');
  expect(signal?.aborted).toBe(true);
});
