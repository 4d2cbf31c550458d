import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Logger } from '../../src/environment/index.ts';
import { isNotFoundError } from '../../src/resource/index.ts';
import type { QueueController } from '../../src/runtime/index.ts';
import { destroyController, graphToDot, graphToMermaid } from '../../src/runtime/index.ts';
import { apples, controllerOf, crumbs, pies, primaryApples, World } from './world.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: unknown;
}

let world: World;
let lines: Line[];

beforeEach(() => {
  lines = [];
  const log: Logger = { log: (level, message, fields) => void lines.push({ level, message, fields }), with: () => log };
  world = new World({ graceMs: 1000, environment: { log } });
});

afterEach(() => world.end());

const never = (): Promise<never> => new Promise(() => {});

/** Whether a promise has settled by now. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  await world.environment.settle();
  return done;
}

describe('a stop', () => {
  test('does not wait longer than the grace period for a store whose watches do not end', async () => {
    const log: Logger = { log: (level, message, fields) => void lines.push({ level, message, fields }), with: () => log };
    world = new World({
      graceMs: 1000,
      environment: { log },
      wrap: (core) =>
        new Proxy(core, {
          get: (target, key) => {
            const member: unknown = Reflect.get(target, key);
            if (typeof member !== 'function') return member;
            return key === 'watchKindAggregated' ? never : member.bind(target);
          },
        }),
    });
    await world.start(controllerOf({}));
    const stopped = world.halt();
    expect(await settled(stopped)).toBe(false);
    await world.environment.advance(1000);
    await stopped;
    expect(lines).toMatchObject([{ level: 'error', message: expect.stringContaining('watches of the store did not end') }]);
  });

  test('waits for what runs, starts nothing new, then calls the shutdown hook', async () => {
    const order: string[] = [];
    await world.start(
      controllerOf({
        reconcile: async (_context, { pointer }) => {
          order.push(`start ${pointer.id}`);
          await world.environment.sleep(300);
          order.push(`end ${pointer.id}`);
        },
        shutdown: async () => void order.push('shutdown'),
      }),
    );
    await world.apple('a');
    await world.apple('b');
    const stopped = world.halt();
    expect(await settled(stopped)).toBe(false);
    await world.environment.advance(300);
    await stopped;
    expect(order).toEqual(['start a', 'end a', 'shutdown']);
  });

  test('tells what runs by its signal', async () => {
    let reason: unknown;
    await world.start(
      controllerOf({
        reconcile: async ({ signal }) => {
          await world.environment.sleep(10_000, signal).catch((error: unknown) => {
            reason = error;
            throw error;
          });
        },
      }),
    );
    await world.apple('a');
    await world.halt();
    expect(reason).toBeInstanceOf(Error);
    // Ended by the stop: that is no failure.
    expect(world.runtime.status()[0]?.keys).toEqual([]);
  });

  test('a reconcile that hangs is reported by name and abandoned after the grace period', async () => {
    let hooks = 0;
    await world.start(
      controllerOf({
        reconcile: never,
        shutdown: async () => {
          hooks++;
        },
      }),
    );
    await world.apple('a');
    const stopped = world.halt();
    await world.environment.advance(999);
    expect(await settled(stopped)).toBe(false);
    await world.environment.advance(1);
    await stopped;
    const told = lines.filter(({ level }) => level === 'error');
    // The hook is for after all workers, and one of them goes on.
    expect(hooks).toBe(0);
    expect(JSON.stringify(told)).toMatch(/baker/);
    expect(JSON.stringify(told)).toMatch(/Apples\.example\.dev\/default\/a/);
  });

  test('what was abandoned does not write any more', async () => {
    let outcome: Promise<unknown> | undefined;
    await world.start(
      controllerOf({
        reconcile: async (context) => {
          await world.environment.sleep(5000);
          outcome = context.create(pies.create({ id: 'late', spec: {} })).catch((error: unknown) => error);
          await outcome;
        },
      }),
    );
    await world.apple('a');
    const stopped = world.halt();
    await world.environment.advance(1000);
    await stopped;
    await world.environment.advance(5000);
    expect(await outcome).toBeInstanceOf(Error);
    expect((await world.state.list(pies.kind())).items).toEqual([]);
  });

  test('before it ran, and before it has seen anything, is one too', async () => {
    const stopped = world.halt();
    await stopped;
    await world.start(controllerOf({ reconcile: never }));
    expect(world.runtime.status()[0]).toMatchObject({ queued: 0, running: 0 });
  });

  test('a runtime runs once', async () => {
    await world.start();
    await expect(world.runtime.run(new AbortController().signal)).rejects.toThrow(/runs once/);
  });

  test('a shutdown hook that throws is told, and does not keep the others from theirs', async () => {
    const called: string[] = [];
    const hooked = (name: string): QueueController =>
      controllerOf({
        name,
        outputs: [],
        shutdown: async () => {
          called.push(name);
          throw new Error('no');
        },
      });
    await world.start(hooked('one'), hooked('two'));
    await world.halt();
    expect(called.sort()).toEqual(['one', 'two']);
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(2);
  });
});

describe('the run hook', () => {
  test('is started again with back-off when it fails, and wakes keys', async () => {
    const at: number[] = [];
    const ran: string[] = [];
    await world.apple('a');
    await world.start(
      controllerOf({
        reconcile: async (_context, { pointer }) => void ran.push(pointer.id),
        run: async ({ signal, wake }) => {
          at.push(world.environment.elapsed());
          wake(apples.pointer('a'));
          if (at.length < 4) throw new Error('broken');
          await world.environment.sleep(1_000_000, signal);
        },
      }),
    );
    await world.environment.advance(10_000);
    expect(at).toHaveLength(4);
    const waits = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    waits.forEach((wait, index) => {
      expect(wait).toBeGreaterThanOrEqual(250 * 1.5 ** index);
      expect(wait).toBeLessThanOrEqual(750 * 1.5 ** index);
    });
    expect(ran.length).toBeGreaterThanOrEqual(4);
  });

  test('an inner signal that was cancelled does not end it silently', async () => {
    let runs = 0;
    await world.start(
      controllerOf({
        run: async () => {
          runs++;
          const inner = AbortSignal.abort();
          inner.throwIfAborted();
        },
      }),
    );
    await world.environment.advance(5000);
    expect(runs).toBeGreaterThan(2);
  });

  test('ends with the stop, before the shutdown hook', async () => {
    const order: string[] = [];
    await world.start(
      controllerOf({
        run: async ({ signal }) => {
          await world.environment.sleep(1_000_000, signal).catch(() => {});
          order.push('run ended');
        },
        shutdown: async () => void order.push('shutdown'),
      }),
    );
    await world.halt();
    expect(order).toEqual(['run ended', 'shutdown']);
  });
});

test('a key that writes again and again without a change of its inputs is slowed down and told', async () => {
  let runs = 0;
  await world.start(
    controllerOf({
      outputs: [{ type: apples.type, kind: 'shared' }],
      reconcile: async (context, { pointer }) => {
        runs++;
        await context.updateWithConflicts(
          apples.pointer(pointer.id),
          (draft) => {
            draft.spec.size++;
          },
          { owner: '' },
        );
      },
    }),
  );
  await world.apple('a');
  for (let turn = 0; turn < 100; turn++) await world.environment.advance(10);
  const before = runs;
  expect(lines.filter(({ message }) => message.includes('slowed down'))).toHaveLength(1);
  await world.environment.advance(10_000);
  expect(runs - before).toBeLessThanOrEqual(12);
  expect(runs - before).toBeGreaterThanOrEqual(5);
  expect(runs).toBeLessThan(200);
});

test('synced once all that was there has been seen', async () => {
  await world.apple('a');
  const synced = world.runtime.synced();
  expect(await settled(synced)).toBe(false);
  await world.start(controllerOf({}));
  expect(await settled(synced)).toBe(true);
});

describe('the destroy controller', () => {
  test('destroys what nobody owns, tears down and is free of finalizers; nothing else', async () => {
    const create = (id: string, more: { readonly finalizers?: readonly string[] } = {}, owner = ''): Promise<unknown> =>
      world.state.create(apples.create({ id, spec: {}, ...more }), { owner });
    await create('running');
    await create('owned', {}, 'somebody');
    await create('held', { finalizers: ['f'] });
    await create('free');
    for (const [id, owner] of [
      ['owned', 'somebody'],
      ['held', ''],
      ['free', ''],
    ] as const)
      await world.state.teardown(apples.pointer(id), { owner });
    await world.start(destroyController([apples.kind()]));
    const left = async (): Promise<readonly string[]> => (await world.state.list(apples.kind())).items.map(({ metadata }) => metadata.id);
    expect(await left()).toEqual(['held', 'owned', 'running']);
    await world.state.removeFinalizer(apples.pointer('held'), 'f');
    await world.environment.settle();
    expect(await left()).toEqual(['owned', 'running']);
    await world.state.teardown(apples.pointer('running'));
    await world.environment.settle();
    expect(await world.state.get(apples.pointer('running')).catch(isNotFoundError)).toBe(true);
  });
});

test('the graph, as data, Graphviz and Mermaid', () => {
  world.runtime.register(
    controllerOf({ inputs: [primaryApples, { namespace: 'default', type: crumbs.type, kind: 'mapped' }], mapInput: () => [] }),
  );
  const graph = world.runtime.graph();
  expect(graph.controllers.map(({ name, inputs, outputs }) => [name, inputs.length, outputs])).toEqual([
    ['baker', 2, [{ type: pies.type, kind: 'exclusive' }]],
  ]);
  const dot = graphToDot(graph);
  expect(dot).toMatch(/^digraph/);
  for (const name of ['baker', apples.type, crumbs.type, pies.type]) expect(dot).toContain(JSON.stringify(name));
  expect(dot.match(/->/g)).toHaveLength(3);
  const mermaid = graphToMermaid(graph);
  expect(mermaid).toMatch(/^flowchart/);
  for (const name of ['baker', apples.type, crumbs.type, pies.type]) expect(mermaid).toContain(name);
  expect(mermaid.match(/-->/g)).toHaveLength(3);
});
