import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MappedInput, QueueController } from '../../src/runtime/index.ts';
import { requeueError, skipError } from '../../src/runtime/index.ts';
import { apples, controllerOf, crumbs, primaryApples, World } from './world.ts';

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(() => world.end());

const mappedCrumbs = { namespace: 'default', type: crumbs.type, kind: 'mapped' } as const;

/** A controller that notes what it runs. */
function noting(ran: string[], more: Partial<QueueController> = {}): QueueController {
  return controllerOf({ reconcile: async (_context, { pointer }) => void ran.push(pointer.id), ...more });
}

/** Crumbs say by a label which apple they belong to. */
function byLabel(seen: MappedInput[] = []): Partial<QueueController> {
  return {
    inputs: [primaryApples, mappedCrumbs],
    mapInput: (_context, input) => {
      seen.push(input);
      const parent = input.metadata.labels.apple;
      return parent === undefined ? [] : [apples.pointer(parent)];
    },
  };
}

async function crumb(id: string, apple: string): Promise<void> {
  await world.state.create(crumbs.create({ id, spec: {}, labels: { apple } }));
  await world.environment.settle();
}

describe('primaries', () => {
  test('all of them run at the start, changes before them', async () => {
    const ran: string[] = [];
    for (const id of ['a', 'b', 'c', 'd', 'e']) await world.apple(id);
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await world.start(
      noting(ran, {
        reconcile: async (_context, { pointer }) => {
          ran.push(pointer.id);
          if (ran.length === 1) await gate;
        },
      }),
    );
    await world.touch('d');
    await world.apple('new');
    release();
    await world.environment.settle();
    expect(ran).toEqual(['a', 'd', 'new', 'b', 'c', 'e']);
  });

  test('an input with an id is all there is', async () => {
    const ran: string[] = [];
    await world.apple('a');
    await world.apple('b');
    await world.start(noting(ran, { inputs: [{ ...primaryApples, id: 'b' }] }));
    await world.touch('a');
    await world.touch('b');
    expect(ran).toEqual(['b', 'b']);
  });

  test('one that goes runs once more', async () => {
    const ran: string[] = [];
    await world.start(noting(ran));
    await world.apple('a');
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect(ran).toEqual(['a', 'a']);
  });

  test('a change while it runs is one more run, never two at once', async () => {
    let running = 0;
    let most = 0;
    let runs = 0;
    await world.start(
      controllerOf({
        concurrency: 4,
        reconcile: async () => {
          runs++;
          most = Math.max(most, ++running);
          await world.environment.sleep(10);
          running--;
        },
      }),
    );
    await world.apple('a');
    for (let count = 0; count < 5; count++) await world.touch('a');
    await world.environment.advance(100);
    expect([runs, most]).toEqual([2, 1]);
  });

  test('as many at once as its concurrency, of different keys', async () => {
    let running = 0;
    let most = 0;
    for (const id of ['a', 'b', 'c', 'd']) await world.apple(id);
    await world.start(
      controllerOf({
        concurrency: 3,
        reconcile: async () => {
          most = Math.max(most, ++running);
          await world.environment.sleep(10);
          running--;
        },
      }),
    );
    await world.environment.advance(100);
    expect(most).toBe(3);
  });
});

describe('errors', () => {
  test('back off, 5 ms and doubling, and are told in the status until they are over', async () => {
    const at: number[] = [];
    let broken = true;
    await world.start(
      controllerOf({
        reconcile: async () => {
          at.push(world.environment.elapsed());
          if (broken) throw new Error('too hot');
        },
      }),
    );
    await world.apple('a');
    await world.environment.advance(40);
    expect(at.map((time) => time - (at[0] ?? 0))).toEqual([0, 5, 15, 35]);
    const [status] = world.runtime.status();
    expect(status?.keys).toEqual([
      {
        pointer: apples.pointer('a'),
        running: false,
        failures: 4,
        lastError: 'too hot',
        failingSince: '2026-01-01T00:00:00.000Z',
        nextRunInMs: 35,
      },
    ]);
    broken = false;
    await world.environment.advance(1000);
    expect(world.runtime.status()).toEqual([{ name: 'baker', queued: 0, running: 0, keys: [] }]);
  });

  test('a requeue error has its own interval and does not advance the back-off', async () => {
    const at: number[] = [];
    await world.start(
      controllerOf({
        reconcile: async () => {
          at.push(world.environment.elapsed());
          if (at.length <= 3) throw requeueError(100);
          if (at.length === 4) throw new Error('now really');
        },
      }),
    );
    await world.apple('a');
    await world.environment.advance(1000);
    expect(at.map((time) => time - (at[0] ?? 0))).toEqual([0, 100, 200, 300, 305]);
  });

  test('a skip error clears the back-off and does not run again', async () => {
    const at: number[] = [];
    await world.start(
      controllerOf({
        reconcile: async () => {
          at.push(world.environment.elapsed());
          if (at.length === 3) throw skipError(new Error('never mind'));
          throw new Error('again');
        },
      }),
    );
    await world.apple('a');
    await world.environment.advance(100);
    expect(at).toHaveLength(3);
    await world.touch('a');
    await world.environment.advance(6);
    expect(at.slice(3).map((time) => time - (at[3] ?? 0))).toEqual([0, 5]);
  });

  test('another incarnation starts without them', async () => {
    const at: number[] = [];
    await world.start(
      controllerOf({
        reconcile: async () => {
          at.push(world.environment.elapsed());
          throw new Error('again');
        },
      }),
    );
    await world.apple('a');
    await world.environment.advance(5000);
    at.length = 0;
    await world.state.destroy(apples.pointer('a'));
    await world.apple('a');
    await world.environment.advance(20);
    expect(at.map((time) => time - (at[0] ?? 0)).slice(0, 4)).toContain(5);
  });

  test('a requeue is replaced by the next run', async () => {
    let runs = 0;
    await world.start(controllerOf({ reconcile: async () => (++runs === 1 ? { requeueAfterMs: 500 } : undefined) }));
    await world.apple('a');
    await world.touch('a');
    await world.environment.advance(5000);
    expect(runs).toBe(2);
  });
});

describe('mapped inputs', () => {
  test('wake what they map to, the old and the new', async () => {
    const ran: string[] = [];
    for (const id of ['a', 'b', 'c']) await world.apple(id);
    await world.start(noting(ran, byLabel()));
    await crumb('x', 'a');
    ran.length = 0;
    await world.state.updateWithConflicts(crumbs.pointer('x'), (draft) => {
      draft.labels.set('apple', 'b');
    });
    await world.environment.settle();
    expect(ran.sort()).toEqual(['a', 'b']);
  });

  test('tell the mapper of what was destroyed, with its last metadata', async () => {
    const seen: MappedInput[] = [];
    const ran: string[] = [];
    await world.apple('a');
    await world.start(noting(ran, byLabel(seen)));
    await crumb('x', 'a');
    ran.length = 0;
    await world.state.destroy(crumbs.pointer('x'));
    await world.environment.settle();
    expect(ran).toEqual(['a']);
    expect(seen.at(-1)).toMatchObject({ destroyed: true, metadata: { id: 'x', labels: { apple: 'a' } } });
  });

  test('a mapper that throws is tried again, and nothing is lost', async () => {
    const ran: string[] = [];
    let failures = 3;
    await world.apple('a');
    await world.start(
      noting(ran, {
        inputs: [primaryApples, mappedCrumbs],
        mapInput: async (_context, { metadata }) => {
          if (failures-- > 0) throw new Error('not now');
          return [apples.pointer(metadata.labels.apple ?? '?')];
        },
      }),
    );
    ran.length = 0;
    await crumb('x', 'a');
    expect(ran).toEqual([]);
    await world.environment.advance(1000);
    expect(ran).toEqual(['a']);
  });

  test('a mapper that answers something else than a primary is told, and stops nothing', async () => {
    const ran: string[] = [];
    await world.apple('a');
    await world.start(noting(ran, { inputs: [primaryApples, mappedCrumbs], mapInput: () => [crumbs.pointer('x'), apples.pointer('a')] }));
    ran.length = 0;
    await crumb('x', 'a');
    expect(ran).toEqual(['a']);
  });

  test('mappedDestroyReady wakes for what tears down without finalizers, and for its end', async () => {
    const ran: string[] = [];
    await world.apple('a');
    await world.state.create(crumbs.create({ id: 'x', spec: {}, finalizers: ['f'] }), { owner: 'somebody' });
    await world.start(
      noting(ran, { inputs: [primaryApples, { ...mappedCrumbs, kind: 'mappedDestroyReady' }], mapInput: () => [apples.pointer('a')] }),
    );
    expect(ran).toEqual(['a']);
    await world.state.teardown(crumbs.pointer('x'), { owner: 'somebody' });
    await world.environment.settle();
    expect(ran).toHaveLength(1);
    await world.state.removeFinalizer(crumbs.pointer('x'), 'f');
    await world.environment.settle();
    expect(ran).toHaveLength(2);
    await world.state.destroy(crumbs.pointer('x'), { owner: 'somebody' });
    await world.environment.settle();
    expect(ran).toHaveLength(3);
  });

  test('held for a while, several become one run; what is due earlier stays', async () => {
    const ran: string[] = [];
    await world.apple('a');
    await world.start(noting(ran, { ...byLabel(), mappedDelayMs: () => 50 }));
    ran.length = 0;
    for (const id of ['x', 'y', 'z']) await crumb(id, 'a');
    expect(ran).toEqual([]);
    await world.environment.advance(50);
    expect(ran).toEqual(['a']);
    await crumb('w', 'a');
    await world.touch('a');
    expect(ran).toEqual(['a', 'a']);
  });
});
