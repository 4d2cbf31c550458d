import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerContext, QueueController } from '../../src/runtime/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, controllerOf, crumbs, primaryApples, World } from './world.ts';

let world: World;
let gates: GatedWatches;

beforeEach(() => {
  gates = new GatedWatches(() => world.environment);
  world = new World({ wrap: (core) => gates.wrap(core), concurrency: 3 });
});

afterEach(() => world.end());

test('a kind has one watch, whoever is woken by it', async () => {
  const mapped: Partial<QueueController> = {
    inputs: [
      { ...primaryApples, type: crumbs.type },
      { ...primaryApples, kind: 'mapped' },
    ],
    mapInput: () => [],
    outputs: [],
  };
  await world.start(
    controllerOf({}),
    controllerOf({ ...mapped, name: 'sweeper' }),
    controllerOf({ ...mapped, name: 'eater', inputs: [{ ...primaryApples, id: 'a' }] }),
  );
  expect(gates.opened).toBe(2);
});

test('a reconcile that ends by an inner signal has failed, and runs again', async () => {
  let runs = 0;
  await world.start(
    controllerOf({
      reconcile: async () => {
        if (++runs === 1) AbortSignal.abort().throwIfAborted();
      },
    }),
  );
  await world.apple('a');
  await world.environment.advance(10);
  expect(runs).toBe(2);
});

test('the number of workers is the runtime’s, unless the controller says otherwise', async () => {
  const most = { baker: 0, slow: 0 };
  const counting = (name: 'baker' | 'slow'): Partial<QueueController> => {
    let now = 0;
    return {
      name,
      outputs: [],
      reconcile: async () => {
        most[name] = Math.max(most[name], ++now);
        await world.environment.sleep(10);
        now--;
      },
    };
  };
  for (const id of ['a', 'b', 'c', 'd', 'e']) await world.apple(id);
  await world.start(controllerOf(counting('baker')), controllerOf({ ...counting('slow'), concurrency: 1 }));
  await world.environment.advance(1000);
  expect(most).toEqual({ baker: 3, slow: 1 });
});

test('a signal tells that an input is torn down, or gone', async () => {
  const signals: AbortSignal[] = [];
  const ends = new AbortController();
  await world.apple('a');
  await world.apple('b');
  await world.start(
    controllerOf({
      run: async (context: ControllerContext) => {
        for (const id of ['a', 'b', 'none']) signals.push(await context.abortSignalOnTeardown(apples.pointer(id), { signal: ends.signal }));
      },
    }),
  );
  const aborted = (): readonly boolean[] => signals.map((signal) => signal.aborted);
  expect(aborted()).toEqual([false, false, true]);
  await world.state.teardown(apples.pointer('a'));
  await world.environment.settle();
  expect(aborted()).toEqual([true, false, true]);
  ends.abort();
  await world.environment.settle();
});

test('a call that was made before the end of the grace period is cut off by it', async () => {
  await world.end();
  world = new World({ graceMs: 100 });
  let context: ControllerContext | undefined;
  await world.start(
    controllerOf({
      reconcile: async (given) => {
        context = given;
        await new Promise(() => {});
      },
    }),
  );
  await world.apple('a');
  const halted = world.halt();
  await context?.get(apples.pointer('a'));
  await world.environment.advance(100);
  await halted;
  const outcome = await context?.get(apples.pointer('a')).catch((error: unknown) => error);
  expect(outcome).toMatchObject({ code: 'Closed' });
});
