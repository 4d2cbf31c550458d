import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import type { CleanupHandler } from '../../src/runtime/index.ts';
import { cleanup, hasNoOutputs, removeOutputs } from '../../src/runtime/index.ts';
import { apples, crumbs, failingOn, pies, World } from './world.ts';

type Size = { size: number };

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(() => world.end());

/** What belongs to an apple bears its id as a label. */
const ofApple = ({ metadata }: { readonly metadata: { readonly id: string } }) => ({
  labelQueries: [{ terms: [{ key: 'apple', op: 'equal' as const, values: [metadata.id] }] }],
});

async function start(...handlers: readonly CleanupHandler<Size>[]): Promise<void> {
  world.runtime.register(cleanup<Size>({ name: 'sweeper', input: apples.kind(), handlers }));
  await world.start();
}

async function dependent(definition: typeof pies, id: string, apple: string, owner = ''): Promise<void> {
  await world.state.create(definition.create({ id, labels: { apple }, spec: {} }), { owner });
}

async function teardown(id: string): Promise<readonly string[]> {
  await world.state.teardown(apples.pointer(id));
  await world.environment.settle();
  return finalizers(id);
}

const finalizers = async (id: string): Promise<readonly string[]> => (await world.state.get(apples.pointer(id))).metadata.finalizers;
const idsOf = async (definition: typeof pies): Promise<readonly string[]> =>
  (await world.state.list(definition.kind())).items.map(({ metadata }) => metadata.id);

test('inputs are held, and let go at once where there is nothing to do', async () => {
  await start(removeOutputs(pies.kind(), ofApple));
  await world.apple('a');
  expect(await finalizers('a')).toEqual(['sweeper']);
  expect(await teardown('a')).toEqual([]);
});

test('an input that is torn down already is not held', async () => {
  await world.apple('a');
  await world.state.addFinalizer(apples.pointer('a'), 'other');
  await world.state.teardown(apples.pointer('a'));
  await start(removeOutputs(pies.kind(), ofApple));
  expect(await finalizers('a')).toEqual(['other']);
});

describe('dependents', () => {
  test('are removed, those of others stay', async () => {
    await start(removeOutputs(pies.kind(), ofApple));
    await world.apple('a');
    await dependent(pies, 'mine', 'a');
    await dependent(pies, 'owned', 'a', 'baker');
    await dependent(pies, 'other', 'b');
    expect(await teardown('a')).toEqual([]);
    expect(await idsOf(pies)).toEqual(['other', 'owned']);
  });

  test('of extra owners count too', async () => {
    await start(removeOutputs(pies.kind(), ofApple, { extraOwners: ['baker'] }));
    await world.apple('a');
    await dependent(pies, 'mine', 'a');
    await dependent(pies, 'owned', 'a', 'baker');
    await dependent(pies, 'strange', 'a', 'another');
    expect(await teardown('a')).toEqual([]);
    expect(await idsOf(pies)).toEqual(['strange']);
  });

  test('one that cannot be removed keeps the input, and no other dependent', async () => {
    const refused = new SteadystateError('Forbidden', 'p1 stays');
    await world.end();
    world = new World({ wrap: (core) => failingOn(core, (what, id) => (what !== 'create' && id === 'p1' ? refused : undefined)) });
    await start(removeOutputs(pies.kind(), ofApple));
    await world.apple('a');
    for (const id of ['p0', 'p1', 'p2']) await dependent(pies, id, 'a');
    expect(await teardown('a')).toEqual(['sweeper']);
    expect(await idsOf(pies)).toEqual(['p1']);
    expect(world.runtime.status()[0]?.keys[0]?.lastError).toBe('p1 stays');
  });

  test('that are held keep the input', async () => {
    await start(removeOutputs(pies.kind(), ofApple));
    await world.apple('a');
    await dependent(pies, 'p', 'a');
    await world.state.addFinalizer(pies.pointer('p'), 'eater');
    expect(await teardown('a')).toEqual(['sweeper']);
    expect((await world.state.get(pies.pointer('p'))).metadata.phase).toBe('tearingDown');
    await world.state.removeFinalizer(pies.pointer('p'), 'eater');
    await world.environment.settle();
    expect([await finalizers('a'), await idsOf(pies)]).toEqual([[], []]);
  });

  test('are waited for, whoever owns them', async () => {
    await start(hasNoOutputs(pies.kind(), ofApple));
    await world.apple('a');
    await dependent(pies, 'p', 'a', 'baker');
    await dependent(pies, 'other', 'b');
    expect(await teardown('a')).toEqual(['sweeper']);
    expect(await idsOf(pies)).toEqual(['other', 'p']);
    await world.state.destroy(pies.pointer('p'), { owner: 'baker' });
    await world.environment.settle();
    expect(await finalizers('a')).toEqual([]);
  });

  test('that were there before the controller count', async () => {
    await world.apple('a');
    await world.state.addFinalizer(apples.pointer('a'), 'sweeper');
    await world.state.teardown(apples.pointer('a'));
    await dependent(pies, 'p', 'a');
    await start(removeOutputs(pies.kind(), ofApple));
    expect([await finalizers('a'), await idsOf(pies)]).toEqual([[], []]);
  });
});

test('handlers combine: each comes after those before it', async () => {
  await start(hasNoOutputs(crumbs.kind(), ofApple), removeOutputs(pies.kind(), ofApple));
  await world.apple('a');
  await dependent(pies, 'p', 'a');
  await dependent(crumbs, 'c', 'a');
  expect(await teardown('a')).toEqual(['sweeper']);
  expect(await idsOf(pies)).toEqual(['p']);
  await world.state.destroy(crumbs.pointer('c'));
  await world.environment.settle();
  expect([await finalizers('a'), await idsOf(pies)]).toEqual([[], []]);
});

test('a dependent that changes during the look wakes again', async () => {
  let looks = 0;
  const handler: CleanupHandler<Size> = {
    inputs: [{ namespace: 'default', type: pies.type, kind: 'mapped' }],
    outputs: [],
    cleanUp: async (context) => {
      const found = (await context.list(pies.kind())).items.length;
      // It goes right after the look.
      if (++looks === 1) await world.state.destroy(pies.pointer('p'));
      return found === 0;
    },
  };
  await start(handler);
  await world.apple('a');
  await dependent(pies, 'p', 'a');
  expect(await teardown('a')).toEqual([]);
  expect(looks).toBe(2);
});
