import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isForbiddenError, isInvalidError, SteadystateError } from '../../src/resource/index.ts';
import type { ClassicContext, ClassicController, Input } from '../../src/runtime/index.ts';
import { apples, crumbs, failingOn, pies, World } from './world.ts';

let world: World;
/** Calls of the store that are to fail, by what they do and to which id. */
let faults: Map<string, unknown>;

beforeEach(() => {
  faults = new Map();
  world = new World({ wrap: (core) => failingOn(core, (what, id) => faults.get(`${what} ${id}`)) });
});

afterEach(() => world.end());

const weakApples: Input = { namespace: 'default', type: apples.type, kind: 'weak' };

function classic(run: (context: ClassicContext) => Promise<void>, more: Partial<ClassicController> = {}): ClassicController {
  return { name: 'baker', inputs: [weakApples], outputs: [{ type: pies.type, kind: 'exclusive' }], run, ...more };
}

async function start(controller: ClassicController): Promise<void> {
  world.runtime.register(controller);
  await world.start();
}

/** Counts the cycles of a controller that does nothing else. */
async function startCounting(inputs: readonly Input[]): Promise<{ cycles: number }> {
  const seen = { cycles: 0 };
  await start(
    classic(
      async (context) => {
        while (await context.nextWakeUp()) seen.cycles++;
      },
      { inputs },
    ),
  );
  return seen;
}

describe('what was there at the start', () => {
  test('is awaited of a controller that has finished, or dropped an input, no longer', async () => {
    // The watch of one kind is never established.
    world = new World({
      wrap: (core) =>
        new Proxy(core, {
          get: (target, key) => {
            const member: unknown = Reflect.get(target, key);
            if (typeof member !== 'function') return member;
            if (key !== 'watchKindAggregated') return member.bind(target);
            return (kind: { type: string }, options: { signal: AbortSignal }) =>
              kind.type === apples.type
                ? new Promise((_, reject) => options.signal.addEventListener('abort', () => reject(options.signal.reason)))
                : (member.call(target, kind, options) as unknown);
          },
        }),
    });
    const weakCrumbs: Input = { namespace: 'default', type: crumbs.type, kind: 'weak' };
    world.runtime.register(classic(async () => {}, { name: 'finished', outputs: [] }));
    world.runtime.register(
      classic(
        async (context) => {
          context.updateInputs([weakCrumbs]);
          while (await context.nextWakeUp());
        },
        { name: 'dropping' },
      ),
    );
    await world.start();
    await world.runtime.synced();
  });
});

describe('wake-ups', () => {
  test('the first is there at the start, without any input', async () => {
    const seen = await startCounting([]);
    expect(seen.cycles).toBe(1);
    expect(world.runtime.graph().controllers[0]?.kind).toBe('classic');
  });

  test('coalesce into one', async () => {
    const seen = await startCounting([weakApples]);
    const before = seen.cycles;
    await Promise.all(['a', 'b', 'c'].map((id) => world.state.create(apples.create({ id, spec: {} }))));
    await world.environment.settle();
    expect(seen.cycles).toBeGreaterThan(before);
    expect(seen.cycles).toBeLessThan(before + 3);
  });

  test('one that comes while a cycle runs is a cycle more', async () => {
    let cycles = 0;
    await start(
      classic(async (context) => {
        while (await context.nextWakeUp()) {
          cycles++;
          await world.environment.sleep(100, context.signal).catch(() => {});
        }
      }),
    );
    await world.apple('a');
    await world.apple('b');
    expect(cycles).toBe(1);
    await world.environment.advance(100);
    expect(cycles).toBe(2);
    await world.environment.advance(1000);
    expect(cycles).toBe(2);
  });

  test('come from inputs only, of an input with an id from that one', async () => {
    const seen = await startCounting([{ ...weakApples, id: 'a' }]);
    const before = seen.cycles;
    await world.apple('b');
    await world.state.create(crumbs.create({ id: 'a', spec: {} }));
    await world.environment.settle();
    expect(seen.cycles).toBe(before);
    await world.apple('a');
    expect(seen.cycles).toBe(before + 1);
  });

  test('destroyReady wakes for what tears down without finalizers, whatever its owner, and for its end', async () => {
    await world.state.create(apples.create({ id: 'a', spec: {} }), { owner: 'somebody' });
    await world.state.addFinalizer(apples.pointer('a'), 'holder');
    const seen = await startCounting([{ ...weakApples, kind: 'destroyReady' }]);
    const step = async (work: () => Promise<unknown>): Promise<number> => {
      const before = seen.cycles;
      await work();
      await world.environment.settle();
      return seen.cycles - before;
    };
    expect(await step(() => world.state.teardown(apples.pointer('a'), { owner: 'somebody' }))).toBe(0);
    expect(await step(() => world.state.removeFinalizer(apples.pointer('a'), 'holder'))).toBe(1);
    expect(await step(() => world.state.destroy(apples.pointer('a'), { owner: 'somebody' }))).toBe(1);
  });

  test('a controller may wake itself', async () => {
    let cycles = 0;
    await start(
      classic(
        async (context) => {
          while (await context.nextWakeUp()) if (++cycles < 5) context.queueReconcile();
        },
        { inputs: [] },
      ),
    );
    expect(cycles).toBe(5);
  });
});

describe('a run', () => {
  test('that returns is finished', async () => {
    let runs = 0;
    await start(classic(async () => void runs++));
    await world.apple('a');
    await world.environment.advance(120_000);
    expect(runs).toBe(1);
    expect(world.runtime.status()[0]).toMatchObject({ name: 'baker', running: 0 });
  });

  test('that throws starts again: 500 ms, half more each time, ±50 %, at most 60 s; the first wake-up is there again', async () => {
    const starts: number[] = [];
    await start(
      classic(async (context) => {
        expect(await context.nextWakeUp()).toBe(true);
        starts.push(world.environment.elapsed());
        throw new Error('no flour');
      }),
    );
    await world.environment.advance(3_600_000);
    const waits = starts.slice(1).map((at, index) => at - (starts[index] as number));
    waits.forEach((wait, index) => {
      const middle = Math.min(500 * 1.5 ** index, 60_000);
      expect(wait).toBeGreaterThanOrEqual(middle * 0.5);
      expect(wait).toBeLessThanOrEqual(Math.min(middle * 1.5, 60_000) + 1e-6);
    });
    expect(waits.length).toBeGreaterThan(20);
    expect(new Set(waits.map((wait, index) => wait / 1.5 ** index)).size).toBeGreaterThan(15);
    expect(world.runtime.status()[0]).toMatchObject({ lastError: 'no flour', failures: starts.length });
  });

  test('of a minute starts the back-off anew; so does the controller, after a good cycle', async () => {
    let workMs = 0;
    let good = false;
    const waits: number[] = [];
    let failedAt: number | undefined;
    await start(
      classic(
        async (context) => {
          if (failedAt !== undefined) waits.push(world.environment.elapsed() - failedAt);
          await world.environment.sleep(workMs, context.signal);
          if (good) context.resetRestartBackoff();
          failedAt = world.environment.elapsed();
          throw new Error('no flour');
        },
        { inputs: [] },
      ),
    );
    await world.environment.advance(60_000);
    expect(waits.at(-1)).toBeGreaterThan(2000);
    workMs = 60_000;
    await world.environment.advance(300_000);
    expect(waits.at(-1)).toBeLessThanOrEqual(750);
    workMs = 1;
    await world.environment.advance(120_000);
    expect(waits.at(-1)).toBeGreaterThan(2000);
    good = true;
    await world.environment.advance(100_000);
    expect(waits.at(-1)).toBeLessThanOrEqual(750);
    expect(world.runtime.status()[0]?.failures).toBeLessThanOrEqual(1);
  });

  test('that ends by an inner signal is started again', async () => {
    let runs = 0;
    await start(
      classic(async () => {
        if (++runs > 1) return;
        AbortSignal.abort().throwIfAborted();
      }),
    );
    await world.environment.advance(1000);
    expect(runs).toBe(2);
  });

  test('ends with the runtime, then its shutdown hook runs', async () => {
    const steps: string[] = [];
    await start(
      classic(
        async (context) => {
          while (await context.nextWakeUp());
          await context.create(pies.create({ id: 'last', spec: {} }));
          steps.push('run ended');
        },
        { shutdown: async (context) => void steps.push(`hook: ${(await context.list(pies.kind())).items.length}`) },
      ),
    );
    await world.halt();
    expect(steps).toEqual(['run ended', 'hook: 1']);
  });
});

describe('inputs', () => {
  test('may change while it runs: it wakes, reads what it declared last, and nothing else', async () => {
    const inputs: Input[][] = [[weakApples], [{ ...weakApples, type: crumbs.type }]];
    let context: ClassicContext | undefined;
    let cycles = 0;
    await start(
      classic(async (given) => {
        context = given;
        while (await given.nextWakeUp()) cycles++;
      }),
    );
    const update = async (next: readonly Input[]): Promise<number> => {
      const before = cycles;
      context?.updateInputs(next);
      await world.environment.settle();
      return cycles - before;
    };
    expect(await update(inputs[0] as Input[])).toBe(0);
    expect(await update(inputs[1] as Input[])).toBe(1);
    await expect(context?.list(apples.kind())).rejects.toSatisfy(isForbiddenError);
    await context?.list(crumbs.kind());
    const before = cycles;
    await world.apple('a');
    expect(cycles).toBe(before);
    await world.state.create(crumbs.create({ id: 'c', spec: {} }));
    await world.environment.settle();
    expect(cycles).toBe(before + 1);
    // Nobody wants apples any more.
    expect(world.environment.open.counts().watch).toBe(1);
  });

  test('of the wrong family, or twice, are refused, and change nothing', async () => {
    let context: ClassicContext | undefined;
    await start(
      classic(async (given) => {
        context = given;
        while (await given.nextWakeUp());
      }),
    );
    for (const bad of [[{ ...weakApples, kind: 'primary' as const }], [weakApples, { ...weakApples, kind: 'strong' as const }]]) {
      expect(() => context?.updateInputs(bad)).toThrow(SteadystateError);
      await context?.list(apples.kind());
    }
  });

  test('are those of the registration again after a restart', async () => {
    let runs = 0;
    let seen = 0;
    await start(
      classic(async (context) => {
        if (++runs === 1) {
          context.updateInputs([]);
          throw new Error('no flour');
        }
        while (await context.nextWakeUp()) seen = (await context.list(apples.kind())).items.length;
      }),
    );
    await world.environment.advance(1000);
    await world.apple('a');
    expect([runs, seen]).toEqual([2, 1]);
  });

  test('strong ones take finalizers, weak ones do not', async () => {
    await world.apple('a');
    const outcomes: unknown[] = [];
    const add = async (context: ClassicContext): Promise<void> =>
      void outcomes.push(await context.addFinalizer(apples.pointer('a'), 'baker').catch((error: unknown) => isForbiddenError(error)));
    await start(
      classic(async (context) => {
        await add(context);
        context.updateInputs([{ ...weakApples, kind: 'strong' }]);
        await add(context);
      }),
    );
    expect(outcomes).toEqual([true, undefined]);
  });
});

describe('output tracking', () => {
  /** Keeps a pie for every apple; what it tells is the last error of a cycle. */
  async function startBaking(): Promise<{ error: unknown; cycles: number }> {
    const seen = { error: undefined as unknown, cycles: 0 };
    await start(
      classic(async (context) => {
        while (await context.nextWakeUp()) {
          seen.cycles++;
          context.startTrackingOutputs();
          for (const apple of (await context.list(apples.kind())).items) {
            await context
              .modify(
                pies.create({ id: apple.metadata.id, spec: {} }),
                (draft) => void (draft.spec = { size: (apple.spec as { size: number }).size }),
              )
              .catch(() => {});
          }
          seen.error = await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error);
        }
      }),
    );
    return seen;
  }

  const pieIds = async (): Promise<readonly string[]> => (await world.state.list(pies.kind())).items.map(({ metadata }) => metadata.id);

  test('what is not written any more is taken down, what others own stays', async () => {
    await startBaking();
    await world.state.create(pies.create({ id: 'free', spec: {} }));
    await world.state.create(pies.create({ id: 'theirs', spec: {} }), { owner: 'another' });
    await world.apple('a');
    await world.apple('b');
    expect(await pieIds()).toEqual(['a', 'b', 'free', 'theirs']);
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect(await pieIds()).toEqual(['b', 'free', 'theirs']);
  });

  test('what cannot be taken down is told, and does not keep others', async () => {
    const seen = await startBaking();
    for (const id of ['a', 'b', 'c']) await world.apple(id);
    for (const id of ['a', 'b']) faults.set(`destroy ${id}`, new SteadystateError('Forbidden', `${id} stays`));
    for (const id of ['a', 'b', 'c']) await world.state.destroy(apples.pointer(id));
    await world.environment.settle();
    expect(await pieIds()).toEqual(['a', 'b']);
    expect(seen.error).toMatchObject({ errors: [{ message: 'a stays' }, { message: 'b stays' }] });
    faults.clear();
    await world.apple('d');
    expect(await pieIds()).toEqual(['d']);
  });

  test('writing without a change touches too', async () => {
    await startBaking();
    await world.apple('a');
    await world.apple('b');
    await world.touch('b');
    expect(await pieIds()).toEqual(['a', 'b']);
  });

  test('finalizers are honoured: what is held is destroyed once it is let go', async () => {
    await startBaking();
    await world.apple('a');
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect((await world.state.get(pies.pointer('a'))).metadata.phase).toBe('tearingDown');
    // No apple changes: only the pie itself wakes the baker.
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect(await pieIds()).toEqual([]);
  });

  test('an output that is torn down while it is wanted is destroyed, and then made anew', async () => {
    const seen = await startBaking();
    await world.apple('a', 3);
    const { uid } = (await world.state.get(pies.pointer('a'))).metadata;
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await world.state.teardown(pies.pointer('a'), { owner: 'baker' });
    await world.touch('a');
    // The phase conflict of its write is no reason not to clean up.
    expect(seen.error).toBeUndefined();
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    const pie = await world.state.get(pies.pointer('a'));
    expect(pie.metadata.phase).toBe('running');
    expect(pie.metadata.uid).not.toBe(uid);
  });

  test('an attempt counts: nothing is taken down in a cycle in which a write failed, and it throws', async () => {
    const seen = await startBaking();
    await world.apple('a');
    await world.apple('b');
    const cause = new SteadystateError('Unavailable', 'the oven is cold');
    faults.set('update b', cause);
    await world.state.updateWithConflicts(apples.pointer('b'), (draft) => {
      draft.spec.size = 7;
    });
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect((seen.error as Error).cause).toBe(cause);
    expect(await pieIds()).toEqual(['a', 'b']);
    faults.clear();
    await world.touch('b');
    expect(seen.error).toBeUndefined();
    expect(await pieIds()).toEqual(['b']);
  });

  test('a write that failed and then went well is no failure', async () => {
    let outcome: unknown = 'none';
    faults.set('create a', new SteadystateError('Unavailable', 'the oven is cold'));
    await start(
      classic(async (context) => {
        context.startTrackingOutputs();
        await context.create(pies.create({ id: 'a', spec: {} })).catch(() => {});
        faults.clear();
        await context.create(pies.create({ id: 'a', spec: {} }));
        outcome = await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error);
      }),
    );
    expect(outcome).toBeUndefined();
    expect(await pieIds()).toEqual(['a']);
  });

  test('waits for writes that nobody waited for', async () => {
    await start(
      classic(async (context) => {
        context.startTrackingOutputs();
        void context.create(pies.create({ id: 'a', spec: {} }));
        await context.cleanupOutputs(pies.kind());
      }),
    );
    expect(await pieIds()).toEqual(['a']);
  });

  test('needs its start, and outputs', async () => {
    const outcomes: unknown[] = [];
    await start(
      classic(async (context) => {
        outcomes.push(await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error));
        context.startTrackingOutputs();
        outcomes.push(await context.cleanupOutputs(crumbs.kind()).catch((error: unknown) => error));
        outcomes.push(await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error));
        // One cycle, one clean-up.
        outcomes.push(await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error));
      }),
    );
    expect(outcomes.map((outcome) => (outcome === undefined ? 'done' : isInvalidError(outcome)))).toEqual([true, true, 'done', true]);
  });

  test('does not go on over a restart', async () => {
    let runs = 0;
    let outcome: unknown;
    await start(
      classic(async (context) => {
        if (++runs === 1) {
          context.startTrackingOutputs();
          throw new Error('no flour');
        }
        outcome = await context.cleanupOutputs(pies.kind()).catch((error: unknown) => error);
      }),
    );
    await world.environment.advance(1000);
    expect(isInvalidError(outcome)).toBe(true);
  });
});
