import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isForbiddenError } from '../../src/resource/index.ts';
import type { ControllerContext, QueueController } from '../../src/runtime/index.ts';
import { apples, controllerOf, crumbs, pies, primaryApples, World } from './world.ts';

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(() => world.end());

/** Runs in a reconcile; answers what came of it. */
async function inside<Value>(more: Partial<QueueController>, work: (context: ControllerContext) => Promise<Value>): Promise<Value> {
  let outcome: Promise<Value> | undefined;
  await world.start(
    controllerOf({
      ...more,
      reconcile: async (context) => {
        outcome ??= work(context);
        await outcome.catch(() => {});
      },
    }),
  );
  await world.apple('a');
  if (outcome === undefined) throw new Error('it did not run');
  return outcome;
}

describe('a controller may not', () => {
  const named = [{ ...primaryApples, id: 'a' }];
  const denied: readonly (readonly [string, Partial<QueueController>, (context: ControllerContext) => Promise<unknown>, RegExp])[] = [
    ['read what is no input', {}, (context) => context.get(crumbs.pointer('x')), /baker may not read .*Crumbs.*input/],
    ['read another namespace', {}, (context) => context.get(apples.pointer('a', 'other')), /baker may not read .*other.*input/],
    ['read another id', { inputs: named }, (context) => context.get(apples.pointer('b')), /baker may not read .*b/],
    ['read it uncached', {}, (context) => context.uncached.get(crumbs.pointer('x')), /baker may not read/],
    ['list what is no input', {}, (context) => context.list(crumbs.kind()), /baker may not list .*Crumbs/],
    ['list an input with an id', { inputs: named }, (context) => context.list(apples.kind()), /baker may not list .*without an id/],
    ['list it uncached', {}, (context) => context.uncached.list(crumbs.kind()), /baker may not list/],
    [
      'create what is no output',
      {},
      (context) => context.create(crumbs.create({ id: 'x', spec: {} })),
      /baker may not write .*Crumbs.*output/,
    ],
    [
      'update an input',
      {},
      async (context) => context.update(await context.get(apples.pointer('a'))),
      /baker may not write .*Apples.*output/,
    ],
    ['modify what is no output', {}, (context) => context.modify(crumbs.create({ id: 'x', spec: {} }), () => {}), /baker may not write/],
    ['edit what is no output', {}, (context) => context.updateWithConflicts(apples.pointer('a'), () => {}), /baker may not write/],
    ['tear down an input', {}, (context) => context.teardown(apples.pointer('a')), /baker may not write/],
    ['destroy an input', {}, (context) => context.destroy(apples.pointer('a')), /baker may not write/],
    [
      'add a finalizer to an output',
      {},
      (context) => context.addFinalizer(pies.pointer('a'), 'f'),
      /baker may not change finalizers of .*primary or mapped/,
    ],
    ['remove one from an output', {}, (context) => context.removeFinalizer(pies.pointer('a'), 'f'), /baker may not change finalizers/],
    [
      'add a finalizer to a mappedDestroyReady input',
      { inputs: [primaryApples, { namespace: 'default', type: crumbs.type, kind: 'mappedDestroyReady' }], mapInput: () => [] },
      (context) => context.addFinalizer(crumbs.pointer('a'), 'f'),
      /baker may not change finalizers/,
    ],
    [
      'watch the teardown of what is no input',
      {},
      (context) => context.abortSignalOnTeardown(crumbs.pointer('x'), { signal: context.signal }),
      /baker may not read/,
    ],
  ];
  test.each(denied)('%s', async (_what, more, work, message) => {
    const outcome = await inside(more, work).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(Error);
    expect(isForbiddenError(outcome)).toBe(true);
    expect((outcome as Error).message).toMatch(message);
  });
});

describe('a controller may', () => {
  test('read and list outputs, in any namespace', async () => {
    const sizes = await inside({}, async (context) => {
      await context.create(pies.create({ id: 'p', namespace: 'other', spec: { size: 3 } }));
      const { spec } = await context.get(pies.pointer('p', 'other'));
      return [(spec as { size: number }).size, (await context.list(pies.kind('other'))).items.length];
    });
    expect(sizes).toEqual([3, 1]);
  });

  test('own what it creates, and leave it to nobody', async () => {
    await inside({}, async (context) => {
      await context.create(pies.create({ id: 'mine', spec: {} }));
      await context.modify(pies.create({ id: 'made', spec: {} }), (draft) => void (draft.spec = { size: 4 }));
      await context.create(pies.create({ id: 'free', spec: {} }), { noOwner: true });
      await context.modify(pies.create({ id: 'loose', spec: {} }), (draft) => void (draft.spec = { size: 4 }), { noOwner: true });
    });
    const owners = (await world.state.list(pies.kind())).items.map(({ metadata }) => [metadata.id, metadata.owner]);
    expect(owners).toEqual([
      ['free', ''],
      ['loose', ''],
      ['made', 'baker'],
      ['mine', 'baker'],
    ]);
  });

  test('not take what another owns', async () => {
    await world.state.create(pies.create({ id: 'theirs', spec: {} }), { owner: 'another' });
    await expect(inside({}, (context) => context.teardown(pies.pointer('theirs')))).rejects.toMatchObject({
      code: 'Conflict',
      reason: 'owner',
    });
  });

  test('put finalizers on its inputs; removing one from what is gone is no error', async () => {
    await inside({}, async (context) => {
      await context.addFinalizer(apples.pointer('a'), 'baker');
      await context.addFinalizer(apples.pointer('a'), 'baker');
      await context.removeFinalizer(apples.pointer('gone'), 'baker');
    });
    expect((await world.state.get(apples.pointer('a'))).metadata.finalizers).toEqual(['baker']);
  });
});

test('a cached kind that can be none is refused', () => {
  expect(() => new World({ cachedKinds: [{ namespace: '', type: apples.type }] })).toThrow(/metadata.namespace: expected 1 to 1024 bytes/);
});

describe('a registration', () => {
  const problems: readonly (readonly [string, Partial<QueueController>, RegExp])[] = [
    ['without a name', { name: '' }, /needs a name/],
    ['with a name that can be no finalizer', { name: 'a\nb' }, /controller a\\nb: the name of a controller: must not hold control/],
    ['without inputs', { inputs: undefined as unknown as [] }, /needs a list of inputs/],
    ['with an input that is none', { inputs: [null] as unknown as [] }, /needs a list of inputs/],
    [
      'in no namespace',
      { inputs: [{ ...primaryApples, namespace: null as unknown as string }] },
      /namespace of an input: expected text, found null/,
    ],
    ['with an output that is none', { outputs: [null] as unknown as [] }, /needs a list of outputs/],
    ['without a function', { reconcile: 5 as never }, /needs a function .* its reconcile is number/],
    ['without a primary input', { inputs: [] }, /needs a primary input/],
    ['with an input of the other family', { inputs: [primaryApples, { ...primaryApples, type: crumbs.type, kind: 'weak' }] }, /kind weak/],
    ['with an input twice', { inputs: [primaryApples, primaryApples] }, /declared twice/],
    [
      'with a mapped input and no mapper',
      { inputs: [primaryApples, { ...primaryApples, type: crumbs.type, kind: 'mapped' }] },
      /mapped, so .*mapInput/,
    ],
    ['with no workers', { concurrency: 0 }, /whole number from 1, found 0/],
    ['with half a worker', { concurrency: 1.5 }, /found 1.5/],
    [
      'with an output twice',
      {
        outputs: [
          { type: pies.type, kind: 'shared' },
          { type: pies.type, kind: 'shared' },
        ],
      },
      /Pies.*declared twice/,
    ],
    ['of a name that is taken', { name: 'first', outputs: [] }, /first is registered already/],
    [
      'with a second exclusive output',
      { outputs: [{ type: crumbs.type, kind: 'exclusive' }] },
      /Crumbs.*exclusive here and exclusive in first/,
    ],
    [
      'with a shared output beside an exclusive one',
      { outputs: [{ type: crumbs.type, kind: 'shared' }] },
      /shared here and exclusive in first/,
    ],
  ];
  test.each(problems)('%s is refused, and leaves nothing behind', async (_what, more, message) => {
    world.runtime.register(controllerOf({ name: 'first', outputs: [{ type: crumbs.type, kind: 'exclusive' }] }));
    const graph = world.runtime.graph();
    for (const running of [false, true]) {
      if (running) await world.start();
      expect(() => world.runtime.register(controllerOf(more))).toThrow(message);
      expect(world.runtime.graph()).toEqual(graph);
      expect(world.runtime.status().map(({ name }) => name)).toEqual(['first']);
    }
    // What was wrong put right, it is taken.
    world.runtime.register(controllerOf({ name: 'second' }));
    expect(world.runtime.status().map(({ name }) => name)).toEqual(['first', 'second']);
  });

  test('while it runs takes effect at once', async () => {
    await world.start();
    await world.apple('a');
    const seen: string[] = [];
    world.runtime.register(controllerOf({ reconcile: async (_context, { pointer }) => void seen.push(pointer.id) }));
    await world.environment.settle();
    await world.apple('b');
    expect(seen).toEqual(['a', 'b']);
  });

  test('two shared outputs fit', () => {
    const outputs = [{ type: pies.type, kind: 'shared' }] as const;
    world.runtime.register(controllerOf({ name: 'one', outputs }));
    expect(() => world.runtime.register(controllerOf({ name: 'two', outputs }))).not.toThrow();
  });
});
