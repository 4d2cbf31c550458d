import { afterEach, beforeEach, expect, test } from 'vitest';
import { readParent } from '../../src/workload/index.ts';
import type { AppChild } from './embedded-world.ts';
import { apps, otherBoxes, World } from './embedded-world.ts';

let world: World;

beforeEach(async () => {
  world = new World({}, { concurrency: 2 });
  await world.start();
});

afterEach(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.environment.open.counts()).toEqual({});
});

const box = (id: string): AppChild => ({ kind: 'otherBoxes', id });

/** Asks without waiting for what comes of it. */
async function ask(app: string, ...ids: readonly string[]): Promise<void> {
  await world.state.updateWithConflicts(apps.pointer(app), (draft) => void (draft.spec = { children: ids.map(box) } as never));
}

/** The workload that a box belongs to. */
async function parentOf(id: string): Promise<string | undefined> {
  return readParent((await world.state.get(otherBoxes.pointer(id))).metadata)?.name;
}

test('two workloads that exchange their children get them, as they are', async () => {
  await world.app([box('x')], 'one');
  await world.app([box('y')], 'two');
  const uid = (await world.state.get(otherBoxes.pointer('x'))).metadata.uid;
  await ask('one', 'y');
  await ask('two', 'x');
  await world.environment.advance(120_000);
  expect([await parentOf('x'), await parentOf('y')]).toEqual(['two', 'one']);
  expect((await world.state.get(otherBoxes.pointer('x'))).metadata.uid).toBe(uid);
  for (const app of ['one', 'two']) {
    expect(await world.condition('Ready', app)).toBe('True Ready');
    expect((await world.status(app)).children).toHaveLength(1);
  }
  expect(await world.events()).not.toContain(expect.stringContaining('PruneBlocked'));
});

test('a child that is to go, and stays because another fails, may be another workload’s at once', async () => {
  await world.app([box('x'), box('z')], 'one');
  world.before = (write) => {
    if (write === 'update Boxes/z') throw new Error('z is stuck');
  };
  await world.state.updateWithConflicts(
    apps.pointer('one'),
    (draft) => void (draft.spec = { children: [{ ...box('z'), spec: { size: 2 } }] } as never),
  );
  await world.settle();
  expect(await world.present()).toEqual(['x', 'z']);
  await world.app([box('x')], 'two');
  await world.environment.advance(120_000);
  expect([await parentOf('x'), await world.condition('Ready', 'two')]).toEqual(['two', 'True Ready']);
  expect(await world.condition('Ready', 'one')).toBe('False Failed z is stuck');
  world.before = () => {};
  await world.environment.advance(120_000);
  expect([await parentOf('x'), await world.condition('Ready', 'one')]).toEqual(['two', 'True Ready']);
  expect((await world.status('one')).children.map(({ name }) => name)).toEqual(['z']);
});

test('one that is wanted again is no longer to be had', async () => {
  await world.app([box('x'), box('z')], 'one');
  world.before = (write) => {
    if (write.startsWith('update Boxes/')) throw new Error('stuck');
  };
  await world.state.updateWithConflicts(
    apps.pointer('one'),
    (draft) => void (draft.spec = { children: [{ ...box('z'), spec: { size: 2 } }] } as never),
  );
  await world.settle();
  expect((await world.status('one')).children.map(({ name, unwanted }) => [name, unwanted])).toEqual([
    ['x', true],
    ['z', undefined],
  ]);
  world.before = () => {};
  await ask('one', 'x', 'z');
  await world.settle();
  await world.app([box('x')], 'two');
  expect(await world.condition('Ready', 'two')).toContain('is a child of Apps default/one');
  expect(await parentOf('x')).toBe('one');
});
