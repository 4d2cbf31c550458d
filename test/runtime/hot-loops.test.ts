import { expect, test } from 'vitest';
import type { QueueController } from '../../src/runtime/index.ts';
import { apples, controllerOf, pies, primaryApples, World } from './world.ts';

async function runsInTenSeconds(more: Partial<QueueController>, outside: (world: World) => Promise<void> = async () => {}) {
  const world = new World();
  let runs = 0;
  await world.start(
    controllerOf({
      ...more,
      reconcile: async (context, request) => {
        runs++;
        // A macrotask, as a store at a distance takes.
        await world.environment.sleep(1);
        return more.reconcile?.(context, request);
      },
    }),
  );
  await world.apple('a', 1);
  await outside(world);
  const end = world.environment.elapsed() + 10_000;
  while (world.environment.elapsed() < end) await world.environment.advance(10);
  const slowedDown = world.runtime.status()[0]?.keys.some((key) => key.slowedDown) ?? false;
  const reported = world.environment.metrics.value('steadystate_controller_hot_loops_total', { controller: 'baker' });
  await world.end();
  return { runs, slowedDown, reported };
}

test('a controller that answers its own writes is slowed down and reported', async () => {
  const seen = await runsInTenSeconds({
    inputs: [primaryApples, { namespace: 'default', type: pies.type, kind: 'mapped' }],
    mapInput: (_context, { metadata }) => [apples.pointer(metadata.id)],
    reconcile: async (context, { pointer }) => {
      await context.modify(pies.create({ id: pointer.id, spec: {} }), (draft) => {
        draft.spec.size++;
      });
    },
  });
  expect(seen.runs).toBeGreaterThan(100);
  expect(seen.runs).toBeLessThan(130);
  expect(seen).toMatchObject({ slowedDown: true, reported: 1 });
}, 30_000);

test('one that writes its own resource on each look, too', async () => {
  const seen = await runsInTenSeconds({
    outputs: [{ type: apples.type, kind: 'shared' }],
    reconcile: async (context, { pointer }) => {
      await context.updateWithConflicts(apples.pointer(pointer.id), (draft) => void draft.spec.size++, { owner: '' });
    },
  });
  expect(seen.runs).toBeLessThan(130);
  expect(seen).toMatchObject({ slowedDown: true, reported: 1 });
}, 30_000);

test('one that asks to run at once, and writes, too', async () => {
  const seen = await runsInTenSeconds({
    reconcile: async (context, { pointer }) => {
      await context.modify(pies.create({ id: pointer.id, spec: {} }), (draft) => void draft.spec.size++);
      return { requeueAfterMs: 0 };
    },
  });
  expect(seen.runs).toBeLessThan(130);
  expect(seen).toMatchObject({ slowedDown: true, reported: 1 });
}, 30_000);

test('one that answers changes from outside is left alone, however many', async () => {
  const seen = await runsInTenSeconds(
    {
      reconcile: async (context, { pointer }) => {
        const { spec } = await context.get(apples.pointer(pointer.id));
        await context.modify(pies.create({ id: pointer.id, spec: {} }), (draft) => void (draft.spec.size = spec.size));
      },
    },
    async (world) => {
      for (let size = 2; size < 400; size++) {
        await world.state.updateWithConflicts(apples.pointer('a'), (draft) => void (draft.spec.size = size));
        await world.environment.advance(2);
      }
    },
  );
  expect(seen.runs).toBeGreaterThan(350);
  expect(seen).toMatchObject({ slowedDown: false, reported: 0 });
}, 30_000);

test('one that writes nothing is left alone', async () => {
  let left = 500;
  const seen = await runsInTenSeconds({ reconcile: async () => (left-- > 0 ? { requeueAfterMs: 1 } : undefined) });
  expect(seen.runs).toBe(501);
  expect(seen.reported).toBe(0);
}, 30_000);
