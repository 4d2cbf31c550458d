import { expect, test } from 'vitest';
import { createRuntime } from '../../src/runtime/index.ts';
import type { AppOptions } from './embedded-world.ts';
import { apps, boxes, childrenOf, World } from './embedded-world.ts';

const pausedAnnotation = 'steadystate.dev/paused';

async function annotate(world: World, value: string | undefined): Promise<void> {
  await world.state.updateWithConflicts(apps.pointer('app'), ({ annotations }) => {
    if (value === undefined) annotations.delete(pausedAnnotation);
    else annotations.set(pausedAnnotation, value);
  });
  await world.settle();
}

const types = async (world: World): Promise<string> =>
  (await world.status()).conditions.map(({ type, status }) => `${type}=${status}`).join(' ');

/** How a workload gets to where it is paused, what happens meanwhile, and where it ends once it goes on. */
const places: readonly (readonly [
  string,
  {
    readonly options?: AppOptions;
    begin(world: World): Promise<void>;
    meanwhile?(world: World): Promise<void>;
    readonly ends: readonly string[];
  },
])[] = [
  [
    'while a child waits for the one before',
    {
      begin: (world) => world.app([{ id: 'a' }, { id: 'b' }]),
      meanwhile: (world) => world.ready('a'),
      ends: ['a', 'b'],
    },
  ],
  [
    'while it prunes',
    {
      async begin(world) {
        await world.app([{ id: 'a' }, { id: 'b' }]);
        await world.ready('a');
        await world.ready('b');
        await world.state.addFinalizer(boxes.pointer('b'), 'holder');
        await world.app([{ id: 'a' }]);
      },
      meanwhile: (world) => world.state.removeFinalizer(boxes.pointer('b'), 'holder'),
      ends: ['a'],
    },
  ],
  [
    'while it fails',
    {
      options: {
        getResources: (request) => {
          if (request.labels.broken !== undefined) throw new Error('broken');
          return childrenOf(request);
        },
      },
      async begin(world) {
        await world.state.create(apps.create({ id: 'app', spec: { children: [{ id: 'a' }] }, labels: { broken: '' } }));
        await world.settle();
      },
      meanwhile: async (world) => {
        await world.state.updateWithConflicts(apps.pointer('app'), ({ labels }) => void labels.delete('broken'));
      },
      ends: ['a'],
    },
  ],
  [
    'while it is Stalled',
    {
      begin: (world) => world.app([{ id: 'a', more: { dependsOn: ['nobody'] } }]),
      meanwhile: (world) => world.app([{ id: 'a' }]),
      ends: ['a'],
    },
  ],
  [
    'before anything was made',
    { options: { checkReady: () => true }, begin: (world) => world.app([]), meanwhile: (world) => world.app([{ id: 'a' }]), ends: ['a'] },
  ],
];

test.each(places)('a workload that is paused %s stays as it is, also over a restart, and then goes on', async (_where, place) => {
  const { options = {}, begin, meanwhile, ends } = place;
  await using world = new World(options);
  await world.start();
  await begin(world);
  await annotate(world, 'true');
  const before = await world.present();
  expect(await world.condition('Paused')).toMatch(/^True Paused/);
  expect(await world.condition('Reconciling')).toBe('absent');
  world.takeWrites();
  await meanwhile?.(world);
  await world.settle();
  await world.restart();
  await world.environment.advance(120_000);
  expect(await world.present()).toEqual(before);
  expect(world.takeWrites().filter((write) => !write.includes('AppStatuses'))).toEqual([]);
  await annotate(world, undefined);
  await world.environment.advance(60_000);
  for (const id of ends) await world.ready(id);
  await world.environment.advance(60_000);
  expect(await world.present()).toEqual(ends);
  expect([await world.condition('Paused'), await world.condition('Ready')]).toEqual(['absent', 'True Ready']);
});

test('a workload that is paused while it is deleted goes all the same', async () => {
  await using world = new World();
  await world.start();
  await world.app([{ id: 'a' }]);
  await world.state.addFinalizer(boxes.pointer('a'), 'holder');
  await world.state.teardown(apps.pointer('app'));
  await world.settle();
  const say = (draft: { readonly annotations: { set(name: string, value: string): void } }): void =>
    draft.annotations.set(pausedAnnotation, 'true');
  await world.state.updateWithConflicts(apps.pointer('app'), say, { expectedPhase: 'tearingDown' });
  await world.settle();
  expect(await world.condition('Delete-Resources')).toMatch(/WaitingForDeletion/);
  await world.state.removeFinalizer(boxes.pointer('a'), 'holder');
  await world.environment.advance(60_000);
  expect([await world.present(), await world.find(apps.pointer('app'))]).toEqual([[], undefined]);
});

test('only "true" pauses', async () => {
  await using world = new World();
  await world.start();
  await world.app([]);
  for (const value of ['TRUE', 'false', '1', '']) {
    await annotate(world, value);
    expect([value, await types(world)]).toEqual([value, expect.not.stringContaining('Paused')]);
  }
});

test('a circle that a change makes is Stalled, touches no child, and heals with the next change', async () => {
  await using world = new World();
  await world.start();
  const child = (id: string, ...dependsOn: string[]) => ({ id, kind: 'otherBoxes' as const, more: { name: id, dependsOn } as never });
  await world.app([child('a'), child('b', 'a')]);
  expect(await world.condition('Ready')).toBe('True Ready');
  for (const [circle, children] of [
    ['a → b → a', [child('a', 'b'), child('b', 'a')]],
    ['a → a', [child('a', 'a')]],
  ] as const) {
    world.takeWrites();
    await world.app(children);
    expect(await world.condition('Stalled')).toBe(`True DependencyCycle children depend on each other in a circle: ${circle}`);
    expect([await world.present(), world.takeWrites()]).toEqual([['a', 'b'], ['update AppStatuses/app']]);
  }
  await world.app([child('a', 'b'), child('b')]);
  expect(await world.condition('Ready')).toBe('True Ready');
  expect((await world.status()).children.map(({ name, order }) => [name, order])).toEqual([
    ['b', 0],
    ['a', 1],
  ]);
});

test('two operators over one store come to the same end, and then rest', async () => {
  await using world = new World();
  await world.start();
  const stop = new AbortController();
  const second = createRuntime({ state: world.store, environment: world.environment });
  second.register(world.controller());
  const ended = second.run(stop.signal);
  const rest = async (): Promise<void> => {
    await world.environment.advance(60_000);
    const versions = async (): Promise<unknown> =>
      (await Promise.all([boxes.type, apps.type].map((type) => world.state.list({ namespace: 'default', type })))).map(({ items }) =>
        items.map(({ metadata }) => [metadata.id, metadata.uid, metadata.version]),
      );
    const before = [await versions(), await world.status()];
    await world.environment.advance(600_000);
    expect([await versions(), await world.status()]).toEqual(before);
  };
  await world.app([{ id: 'a' }, { id: 'b' }]);
  await world.ready('a');
  await world.ready('b');
  await rest();
  expect(await world.condition('Ready')).toBe('True Ready');
  await world.app([{ id: 'a', spec: { size: 2 } }]);
  await world.ready('a');
  await rest();
  expect([await world.present(), await world.condition('Ready')]).toEqual([['a'], 'True Ready']);
  await world.state.teardown(apps.pointer('app'));
  await world.environment.advance(60_000);
  expect([await world.present(), await world.find(apps.pointer('app'))]).toEqual([[], undefined]);
  stop.abort();
  await ended;
});
