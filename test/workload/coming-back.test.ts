import { expect, test } from 'vitest';
import { boxes, World } from './embedded-world.ts';

async function upTo(world: World): Promise<void> {
  await world.start();
  await world.app([{ id: 'a' }, { id: 'b' }]);
  await world.ready('a');
  await world.ready('b');
  expect(await world.condition('Ready')).toBe('True Ready');
}

test('a child that somebody tore down, and nobody holds, is ended and made anew', async () => {
  await using world = new World();
  await upTo(world);
  const { metadata } = await world.state.get(boxes.pointer('a'));
  await world.state.teardown(boxes.pointer('a'), { owner: metadata.owner });
  await world.settle();
  const now = await world.state.get(boxes.pointer('a'));
  expect([now.metadata.phase, now.metadata.uid === metadata.uid]).toEqual(['running', false]);
  expect(await world.events()).toEqual(expect.arrayContaining(['Deleted ×1']));
  await world.ready('a');
  expect(await world.condition('Ready')).toBe('True Ready');
});

test('a child that is wanted again while it goes is made anew once nobody holds it, also by the next operator', async () => {
  for (const restart of [false, true]) {
    await using world = new World();
    await upTo(world);
    await world.state.addFinalizer(boxes.pointer('b'), 'holder');
    await world.settle();
    await world.app([{ id: 'a' }]);
    expect(await world.condition('Create-Resources')).toBe('False Pruning waiting for Boxes/b (finalizers: holder)');
    await world.app([{ id: 'a' }, { id: 'b' }]);
    expect(await world.condition('Create-Resources')).toBe('False Pending b: is being deleted; finalizers: holder');
    if (restart) await world.halt();
    await world.state.removeFinalizer(boxes.pointer('b'), 'holder');
    if (restart) await world.start();
    await world.settle();
    expect((await world.state.get(boxes.pointer('b'))).metadata.phase).toBe('running');
    await world.ready('b');
    expect(await world.condition('Ready')).toBe('True Ready');
    expect((await world.status()).children.map(({ name, state }) => `${name} ${state}`)).toEqual(['a applied', 'b applied']);
  }
});

test('an operator that dies between the two steps of a prune leaves nothing that cannot come back', async () => {
  await using world = new World();
  await upTo(world);
  world.before = (write) => {
    if (write === 'destroy Boxes/b') throw new Error('cut');
  };
  await world.app([{ id: 'a' }]);
  expect((await world.state.get(boxes.pointer('b'))).metadata.phase).toBe('tearingDown');
  await world.halt();
  world.before = () => {};
  await world.app([{ id: 'a' }, { id: 'b' }]);
  await world.start();
  expect((await world.state.get(boxes.pointer('b'))).metadata.phase).toBe('running');
});

test('one that is torn down and bears no mark of this workload is nobody’s to end', async () => {
  await using world = new World();
  await world.state.create(boxes.create({ id: 'a', spec: { size: 1 } }), { owner: 'stranger' });
  await world.state.teardown(boxes.pointer('a'), { owner: 'stranger' });
  await world.start();
  await world.app([{ id: 'a' }]);
  expect(await world.condition('Create-Resources')).toBe('False Pending a: is being deleted');
  await world.state.destroy(boxes.pointer('a'), { owner: 'stranger' });
  await world.environment.advance(60_000);
  expect((await world.state.get(boxes.pointer('a'))).metadata.phase).toBe('running');
});
