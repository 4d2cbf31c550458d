import { expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import { pausedAnnotation } from '../../src/workload/index.ts';
import type { AppOptions } from './embedded-world.ts';
import { apps, childrenOf, otherBoxes, World } from './embedded-world.ts';
import { app, boxes, Harness, rooms } from './harness.ts';

const companion = { namespace: 'default', type: 'AppStatuses.example.dev', id: 'app' };

/** What keeps the children from being computed at first; answers how to take it away. */
const obstacles: readonly (readonly [
  string,
  () => { readonly options: AppOptions; readonly clear: (world: World) => unknown; readonly paused?: true },
])[] = [
  [
    'a workload that is paused',
    () => ({
      options: {},
      paused: true,
      clear: (world) => world.state.updateWithConflicts(apps.pointer('app'), (draft) => void draft.annotations.delete(pausedAnnotation)),
    }),
  ],
  [
    'a dependency that is not there',
    () => ({
      options: {
        dependencyKinds: [otherBoxes],
        dependencies: ({ spec }) => (spec.children.length > 1 ? [] : [{ group: 'other.dev', kind: 'Boxes', name: 'needed' }]),
      },
      clear: (world) => world.state.create(otherBoxes.create({ id: 'needed', spec: { size: 1 } })),
    }),
  ],
  [
    'a failure',
    () => {
      let fails = false;
      return {
        options: {
          getResources: (request) => {
            if (fails && request.spec.children.length === 1) throw new Error('not now');
            fails = true;
            return childrenOf(request);
          },
        },
        clear: async (world) => {
          fails = false;
          await world.environment.advance(60_000);
        },
      };
    },
  ],
];

test.each(obstacles)('children are found by their label although the status is written anew before: %s', async (_what, of) => {
  const { options, clear, paused } = of();
  await using world = new World(options);
  await world.start();
  await world.app([
    { kind: 'otherBoxes', id: 'o' },
    { kind: 'otherBoxes', id: 'p' },
  ]);
  expect(await world.present()).toEqual(['o', 'p']);
  await world.halt();
  await world.state.destroy(companion, { owner: 'Apps-reconciler' });
  await world.state.updateWithConflicts(apps.pointer('app'), (draft) => {
    draft.spec = { children: [{ kind: 'otherBoxes', id: 'o' }] } as never;
    if (paused) draft.annotations.set(pausedAnnotation, 'true');
  });
  await world.start();
  expect(await world.present()).toEqual(['o', 'p']);
  expect((await world.status()).children.map(({ name }) => name)).toEqual(['o', 'p']);
  await clear(world);
  await world.environment.advance(60_000);
  expect((await world.present()).filter((id) => id !== 'needed')).toEqual(['o']);
});

test('a kind that is not served keeps no other from being found; what cannot be asked for is asked for again, before any status is written', async () => {
  const harness = new Harness({ children: [rooms, boxes] });
  harness.ask({ a: 1, b: 1 });
  await harness.settle();
  harness.port.user(app, { status: undefined });
  harness.ask({ a: 1 });
  harness.restart();
  harness.takeWrites();
  let away = true;
  harness.port.reading = (read) => {
    if (read === 'list Rooms') throw new SteadystateError('Unsupported', 'Rooms are not served');
    if (read === 'list Boxes' && away) throw new SteadystateError('Unavailable', 'the store is away');
  };
  expect([(await harness.reconcile()).kind, harness.takeWrites()]).toEqual(['failure', []]);
  away = false;
  await harness.settle();
  expect(harness.present).toEqual(['a']);
});
