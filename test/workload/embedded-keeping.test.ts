import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { anyNamespace } from '../../src/runtime/index.ts';
import { eventDefinition, parentAnnotation, pausedAnnotation, readParent, reconcileAtAnnotation } from '../../src/workload/index.ts';
import { apps, boxes, childrenOf, otherBoxes, World } from './embedded-world.ts';

let world: World;
const start = async (...given: ConstructorParameters<typeof World>): Promise<World> => {
  world = new World(...given);
  await world.start();
  return world;
};

beforeEach(() => void (world = undefined as never));
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.environment.open.counts()).toEqual({});
});

describe('what an author keeps in extra', () => {
  const keeps = (junk: () => unknown) => ({
    getResources: (request: Parameters<typeof childrenOf>[0] & { readonly extra: Record<string, unknown> }) => {
      request.extra.runs = 1;
      if (request.spec.children.length > 1) request.extra.junk = junk();
      return childrenOf(request);
    },
  });
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;

  test.each<readonly [string, () => unknown]>([
    ['a function', () => () => 1],
    ['a date', () => new Date(0)],
    ['what holds itself', () => cycle],
    ['no number', () => Number.NaN],
  ])('%s is told in the status, once; the rest goes on, and it heals', async (_what, junk) => {
    await start(keeps(junk) as never);
    await world.app([{ kind: 'otherBoxes', id: 'o' }]);
    expect(await world.condition('Ready')).toBe('True Ready');
    await world.app([
      { kind: 'otherBoxes', id: 'o' },
      { kind: 'otherBoxes', id: 'p' },
    ]);
    for (const type of ['Ready', 'Stalled'])
      expect(await world.condition(type)).toMatch(/InvalidStatus the status cannot be written: .*extra/);
    expect(await world.condition('Ready')).toMatch(/^False/);
    expect((await world.status()).extra).toEqual({ runs: 1 });
    expect(await world.present()).toEqual(['o', 'p']);
    const version = async (): Promise<unknown> =>
      (await world.find({ namespace: 'default', type: 'AppStatuses.example.dev', id: 'app' }))?.metadata.version;
    const before = await version();
    await world.environment.advance(120_000);
    expect(await version()).toBe(before);
    await world.app([{ kind: 'otherBoxes', id: 'o' }]);
    expect(await world.condition('Ready')).toBe('True Ready');
    expect(await world.condition('Stalled')).toBe('absent');
    await world.app([
      { kind: 'otherBoxes', id: 'o' },
      { kind: 'otherBoxes', id: 'p' },
    ]);
    const gone = world.state.teardownAndDestroy(apps.pointer('app'));
    await world.environment.advance(1_000);
    await gone;
    expect(await world.present()).toEqual([]);
  });
});

describe('what wakes a workload', () => {
  test('changes of children made by an operator before this one, of every kind, without any time', async () => {
    await start();
    await world.app([{ id: 'a' }, { kind: 'otherBoxes', id: 'o' }]);
    await world.ready('a');
    expect(await world.condition('Ready')).toBe('True Ready');
    await world.restart();
    await world.state.updateWithConflicts(otherBoxes.pointer('o'), (draft) => void (draft.spec = { size: 9 }), {
      owner: 'Apps-reconciler',
    });
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o')))?.spec).toEqual({ size: 1 });
    await world.ready('a', false);
    expect(await world.condition('Ready')).toContain('False ChildrenNotReady a: NotReady');
    await world.ready('a');
    expect(await world.condition('Ready')).toBe('True Ready');
  });

  test('every workload is woken by its own children', async () => {
    await start();
    await world.app([{ id: 'a' }], 'one');
    await world.app([{ id: 'b' }], 'two');
    await world.ready('a');
    await world.ready('b');
    await world.ready('b', false);
    expect(await world.condition('Ready', 'one')).toBe('True Ready');
    expect(await world.condition('Ready', 'two')).toContain('False');
    await world.ready('a', false);
    expect(await world.condition('Ready', 'one')).toContain('False');
  });

  test('a child that somebody removed is made again; its absence is no error', async () => {
    await start();
    await world.app([{ id: 'a' }]);
    await world.ready('a');
    await world.state.teardown(boxes.pointer('a'), { owner: 'Apps-reconciler' });
    await world.state.destroy(boxes.pointer('a'), { owner: 'Apps-reconciler' });
    await world.settle();
    expect(await world.present()).toEqual(['a']);
  });

  test('the annotation that asks for a run', async () => {
    let runs = 0;
    await start({
      getResources: (request) => {
        runs++;
        return childrenOf(request);
      },
    });
    await world.app([{ id: 'a' }]);
    const before = runs;
    await world.state.updateWithConflicts(apps.pointer('app'), (draft) => draft.annotations.set(reconcileAtAnnotation, 'now'));
    await world.settle();
    expect(runs).toBeGreaterThan(before);
  });
});

describe('what is compared', () => {
  test.each([
    ['a label is gone', (draft: Draft) => void draft.labels.delete('tier')],
    ['a label is new', (draft: Draft) => draft.labels.set('extra', 'x')],
    ['an annotation is new', (draft: Draft) => draft.annotations.set('extra', 'x')],
    ['an annotation is another', (draft: Draft) => draft.annotations.set('note', 'x')],
    ['a field is new', (draft: Draft) => void (draft.spec = { size: 1, env: [{ name: 'A' }], extra: true })],
    ['a field is gone', (draft: Draft) => void (draft.spec = { size: 1 })],
    ['a list item is new', (draft: Draft) => void (draft.spec = { size: 1, env: [{ name: 'A' }, { name: 'B' }] })],
  ])('%s: put right, with one write and one event', async (_what, change) => {
    await start();
    const spec = { size: 1, env: [{ name: 'A' }] };
    await world.app([{ id: 'a', spec, labels: { tier: 'x' }, annotations: { note: 'n' } }]);
    await world.ready('a');
    world.takeWrites();
    await world.state.updateWithConflicts(boxes.pointer('a'), change as never, { owner: 'Apps-reconciler' });
    await world.settle();
    const { metadata, spec: found } = await world.state.get(boxes.pointer('a'));
    expect(found).toEqual(spec);
    expect(Object.keys(metadata.labels).sort()).toEqual(['steadystate.dev/parent-id', 'tier']);
    expect(metadata.annotations).toEqual({ note: 'n', [parentAnnotation]: expect.any(String) });
    expect(world.takeWrites().filter((line) => line.includes('Boxes/'))).toEqual(['update Boxes/a']);
    expect(await world.events()).toContain('Updated ×1');
  });

  test('a kind of the same name in another group is another kind', async () => {
    await start();
    await world.app([
      { id: 'a', spec: { size: 1 } },
      { kind: 'otherBoxes', id: 'a', spec: { size: 2 } },
    ]);
    await world.ready('a');
    expect((await world.find(boxes.pointer('a')))?.spec).toEqual({ size: 1 });
    expect((await world.find(otherBoxes.pointer('a')))?.spec).toEqual({ size: 2 });
    expect((await world.status()).children).toHaveLength(2);
    await world.app([{ id: 'a', spec: { size: 1 } }]);
    expect(await world.find(otherBoxes.pointer('a'))).toBeUndefined();
    expect(await world.find(boxes.pointer('a'))).toBeDefined();
  });

  test('a store that puts in defaults is written once, and once more by the next operator', async () => {
    await start();
    world.stores = (type, spec) => (type === otherBoxes.type ? { ...(spec as object), padding: true } : spec);
    await world.app([{ kind: 'otherBoxes', id: 'o' }]);
    expect((await world.find(otherBoxes.pointer('o')))?.spec).toEqual({ size: 1, padding: true });
    expect(await world.condition('Ready')).toBe('True Ready');
    expect(world.takeWrites().filter((line) => line.endsWith('Boxes/o'))).toEqual(['create Boxes/o']);
    await world.state.updateWithConflicts(apps.pointer('app'), (draft) => draft.labels.set('look', 'again'));
    await world.settle();
    expect(world.takeWrites().filter((line) => line.endsWith('Boxes/o'))).toEqual([]);
    await world.restart();
    await world.environment.advance(60_000);
    expect(world.takeWrites().filter((line) => line.endsWith('Boxes/o'))).toEqual(['update Boxes/o']);
  });
});

interface Draft {
  readonly labels: { delete(key: string): boolean; set(key: string, value: string): void };
  readonly annotations: { set(key: string, value: string): void };
  spec: unknown;
}

describe('whose child it is', () => {
  test('owned by somebody else: a failure that names the holder, and the child is left alone', async () => {
    await start();
    await world.state.create(boxes.create({ id: 'a', spec: { size: 5 } }), { owner: 'rival' });
    await world.app([{ id: 'a' }]);
    expect(await world.condition('Ready')).toBe('False Failed Boxes default/a is owned by rival; it is not taken over');
    expect((await world.status()).children[0]).toMatchObject({ ready: false, message: expect.stringContaining('owned by rival') });
    expect((await world.find(boxes.pointer('a')))?.spec).toEqual({ size: 5 });
  });

  test('claimed by another workload that wants it: both are told apart, and it heals when the other gives it up', async () => {
    await start();
    await world.app([{ id: 'shared', spec: { size: 1 } }], 'first');
    await world.app([{ id: 'shared', spec: { size: 2 } }], 'second');
    expect(await world.condition('Ready', 'second')).toContain('Boxes default/shared is a child of Apps default/first');
    expect((await world.find(boxes.pointer('shared')))?.spec).toEqual({ size: 1 });
    await world.app([{ id: 'own' }], 'first');
    await world.environment.advance(60_000);
    expect((await world.find(boxes.pointer('shared')))?.spec).toEqual({ size: 2 });
    expect(readParent((await world.state.get(boxes.pointer('shared'))).metadata)?.name).toBe('second');
  });

  test('nobody’s: adopted unless the child says never; deleted with its parent either way only when adopted', async () => {
    await start();
    await world.state.create(boxes.create({ id: 'free', spec: { size: 5 } }));
    await world.state.create(boxes.create({ id: 'kept', spec: { size: 5 } }));
    await world.app([{ id: 'free' }, { id: 'kept', more: { dependsOn: [], options: { adopt: 'never' } } }]);
    expect((await world.find(boxes.pointer('free')))?.spec).toEqual({ size: 1 });
    expect((await world.find(boxes.pointer('kept')))?.spec).toEqual({ size: 5 });
    expect(await world.condition('Ready')).toContain('exists already and was not made by this workload');
    expect(await world.events()).toContain('Adopted ×1');
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect(await world.present()).toEqual(['kept']);
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
  });
});

describe('namespaces', () => {
  test('a child goes where it says, is watched there, and goes with its parent', async () => {
    await start({}, { childNamespaces: ['far'] });
    await world.app([{ kind: 'otherBoxes', id: 'o', namespace: 'far' }]);
    expect(await world.condition('Ready')).toBe('True Ready');
    await world.state.updateWithConflicts(otherBoxes.pointer('o', 'far'), (draft) => void (draft.spec = { size: 9 }), {
      owner: 'Apps-reconciler',
    });
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o', 'far')))?.spec).toEqual({ size: 1 });
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect(await world.present('far')).toEqual([]);
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
  });

  test('workloads of several namespaces, each with its own status', async () => {
    await start({}, { namespaces: ['default', 'second'] });
    await world.app([{ kind: 'otherBoxes', id: 'o' }], 'app', 'second');
    expect((await world.status('app', 'second')).created).toBe(true);
    expect(await world.present('default')).toEqual(['o']);
  });

  test('workloads of any namespace: of one name, in namespaces that come later, apart to their end', async () => {
    await start({}, { namespaces: anyNamespace });
    const places = ['default', 'second', 'third'];
    for (const namespace of places) await world.app([{ kind: 'otherBoxes', id: 'o', namespace }], 'app', namespace);
    for (const namespace of places) {
      expect((await world.status('app', namespace)).created).toBe(true);
      expect(await world.present(namespace)).toEqual(['o']);
    }
    const owner = { owner: 'Apps-reconciler' };
    await world.state.updateWithConflicts(otherBoxes.pointer('o', 'third'), (draft) => void (draft.spec = { size: 9 }), owner);
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o', 'third')))?.spec).toEqual({ size: 1 });
    await world.state.teardown(apps.pointer('app', 'second'));
    await world.settle();
    expect(await world.find(apps.pointer('app', 'second'))).toBeUndefined();
    expect(await Promise.all(places.map((namespace) => world.present(namespace)))).toEqual([['o'], [], ['o']]);
    // Past its finalizer, and while nobody looks: what is left is found in its namespace.
    await world.halt();
    await world.state.removeFinalizer(apps.pointer('app', 'third'), 'Apps.example.dev/finalizer');
    await world.state.destroy(apps.pointer('app', 'third'));
    await world.start();
    expect(await Promise.all(places.map((namespace) => world.present(namespace)))).toEqual([['o'], [], []]);
    expect(world.environment.open.counts().watch).toBeLessThan(20);
  });
});

describe('the companion', () => {
  test('counts generations by spec, not by labels; names the version it was computed from', async () => {
    await start();
    await world.app([{ kind: 'otherBoxes', id: 'o' }]);
    expect(await world.status()).toMatchObject({ generation: 1, observedGeneration: 1, created: true });
    await world.state.updateWithConflicts(apps.pointer('app'), (draft) => draft.labels.set('x', 'y'));
    await world.settle();
    const version = async (): Promise<string> => (await world.state.get(apps.pointer('app'))).metadata.version;
    expect(await world.status()).toMatchObject({ generation: 1, observedGeneration: 1, observedVersion: await version() });
    await world.app([{ kind: 'otherBoxes', id: 'o', spec: { size: 2 } }]);
    expect(await world.status()).toMatchObject({ generation: 2, observedGeneration: 2, observedVersion: await version() });
    for (const condition of (await world.status()).conditions) {
      expect(condition.observedGeneration).toBe(2);
      expect(condition.lastTransitionTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    }
  });

  test('of an earlier incarnation: nothing was brought up yet, but the children are known', async () => {
    await start();
    await world.app([
      { kind: 'otherBoxes', id: 'o' },
      { kind: 'otherBoxes', id: 'p' },
    ]);
    await world.halt();
    // As an import does: the same resources under other uids.
    const { spec, metadata } = await world.state.get(apps.pointer('app'));
    await world.state.removeFinalizer(apps.pointer('app'), ...metadata.finalizers);
    await world.state.destroy(apps.pointer('app'));
    await world.state.create(apps.create({ id: 'app', spec: { children: [(spec as { children: [never] }).children[0]] } }));
    world.takeWrites();
    await world.start();
    expect(await world.present()).toEqual(['o']);
    expect(await world.status()).toMatchObject({ generation: 1, created: true });
    const child = await world.state.get(otherBoxes.pointer('o'));
    expect(readParent(child.metadata)?.uid).toBe((await world.state.get(apps.pointer('app'))).metadata.uid);
    expect(world.takeWrites()).not.toContain('create Boxes/o');
  });

  test('one that somebody broke or removed is made anew, and no child is lost', async () => {
    await start();
    await world.app([{ kind: 'otherBoxes', id: 'o' }]);
    const pointer = { namespace: 'default', type: 'AppStatuses.example.dev', id: 'app' };
    for (const breaking of [
      () => world.state.updateWithConflicts(pointer, (draft) => void (draft.spec = { junk: true }), { owner: 'Apps-reconciler' }),
      () => world.state.destroy(pointer, { owner: 'Apps-reconciler' }),
    ]) {
      await breaking();
      await world.settle();
      expect(await world.status()).toMatchObject({ created: true, children: [{ name: 'o', state: 'applied' }] });
      expect(await world.condition('Ready')).toBe('True Ready');
    }
    // With the inventory gone, what is no longer desired is found by its label.
    await world.halt();
    await world.state.destroy(pointer, { owner: 'Apps-reconciler' });
    await world.state.updateWithConflicts(apps.pointer('app'), (draft) => {
      draft.spec = { children: [{ kind: 'otherBoxes', id: 'new' }] } as never;
    });
    await world.start();
    expect(await world.present()).toEqual(['new']);
  });
});

test('paused: nothing is computed and an old Ready is not taken for a new one; deletion goes on', async () => {
  await start();
  await world.app([{ kind: 'otherBoxes', id: 'o' }]);
  const observed = (await world.status()).observedVersion;
  await world.state.updateWithConflicts(apps.pointer('app'), (draft) => {
    draft.annotations.set(pausedAnnotation, 'true');
    draft.spec = { children: [{ kind: 'otherBoxes', id: 'p' }] } as never;
  });
  await world.settle();
  expect(await world.present()).toEqual(['o']);
  expect(await world.condition('Paused')).toContain('True Paused');
  expect(await world.status()).toMatchObject({ observedVersion: observed, observedGeneration: 1 });
  await world.state.updateWithConflicts(apps.pointer('app'), (draft) => void draft.annotations.delete(pausedAnnotation));
  await world.settle();
  expect(await world.present()).toEqual(['p']);
  expect(await world.condition('Paused')).toBe('absent');
  await world.state.updateWithConflicts(apps.pointer('app'), (draft) => draft.annotations.set(pausedAnnotation, 'true'));
  await world.state.teardown(apps.pointer('app'));
  await world.settle();
  expect(await world.present()).toEqual([]);
  expect(await world.find(apps.pointer('app'))).toBeUndefined();
});

describe('events', () => {
  test('with a note of any length and any text', async () => {
    const problem = `half \ud83c and ${'x'.repeat(1_005)}🌍🌍🌍`;
    await start({
      getResources: () => {
        throw new Error(problem);
      },
    });
    await world.app([]);
    const { items } = await world.state.list(eventDefinition.kind('default'));
    expect(items.map(({ spec }) => spec.reason)).toEqual(['PhaseFailed']);
    expect(items[0]?.spec.note).toMatch(/^Create-Resources: half \ufffd and x+…$/u);
    expect(await world.condition('Ready')).toBe(`False Failed half \ufffd and ${'x'.repeat(1_005)}🌍🌍🌍`);
  });

  test('only on a change, the same again raises the count, and a restart goes on counting', async () => {
    await start();
    await world.app([{ id: 'a' }]);
    await world.ready('a');
    expect(await world.events()).toEqual(['Created ×1', 'Ready ×1']);
    await world.environment.advance(120_000);
    await world.restart();
    expect(await world.events()).toEqual(['Created ×1', 'Ready ×1']);
    await world.ready('a', false);
    await world.ready('a');
    expect(await world.events()).toEqual(['Created ×1', 'NotReady ×1', 'Ready ×2']);
  });

  test('no more than the cap; those seen longest ago go first', async () => {
    await start({}, { eventLimit: 5 });
    for (let round = 0; round < 4; round++) {
      await world.app([
        { kind: 'otherBoxes', id: `round${round}` },
        { kind: 'otherBoxes', id: `also${round}` },
      ]);
      if (round === 1) await world.restart();
    }
    const { items } = await world.state.list(eventDefinition.kind('default'));
    expect(items).toHaveLength(5);
    expect(items.some(({ spec }) => spec.related?.id === 'round0')).toBe(false);
    expect(items.some(({ spec }) => spec.related?.id === 'also3')).toBe(true);
  });

  test('0: none are written', async () => {
    await start({}, { eventLimit: 0 });
    await world.app([{ id: 'a' }]);
    expect(await world.events()).toEqual([]);
  });
});
