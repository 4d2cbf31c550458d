import { expect, test } from 'vitest';
import type { Metrics } from '../../src/environment/index.ts';
import { createRuntime, requeueError, skipError } from '../../src/runtime/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, controllerOf, pies, World } from './world.ts';

const notes = 'Notes.example.dev';

test('a controller is measured', async () => {
  const world = new World();
  const outcomes = [
    async () => ({ requeueAfterMs: 10 }),
    async () => Promise.reject(new Error('no flour')),
    async () => Promise.reject(requeueError(10)),
    async () => Promise.reject(skipError()),
  ];
  let runs = 0;
  await world.start(
    controllerOf({
      reconcile: async (context) => {
        await context.get(apples.pointer('a'));
        await context.list(apples.kind());
        await context.modify(pies.create({ id: 'a', spec: {} }), (draft) => void draft.spec.size++);
        await world.environment.sleep(100);
        return outcomes[runs++]?.();
      },
    }),
  );
  await world.apple('a');
  await world.apple('b');
  await world.environment.advance(10_000);
  const value = (name: string): number => world.environment.metrics.value(`steadystate_controller_${name}`, { controller: 'baker' });
  expect(runs).toBeGreaterThanOrEqual(5);
  expect(value('reads_total')).toBe(runs * 2);
  expect(value('writes_total')).toBe(runs);
  expect(value('wakeups_total')).toBe(2);
  expect([value('failures_total'), value('requeues_total'), value('skips_total')]).toEqual([1, 2, 1]);
  expect(value('reconcile_seconds_count')).toBe(runs);
  expect(value('reconcile_seconds_sum')).toBeCloseTo(runs * 0.1);
  // The second waited while the first ran.
  expect(value('queue_seconds_sum')).toBeGreaterThanOrEqual(0.1);
  expect(value('queue_length')).toBe(0);
  const kind = { namespace: 'default', type: apples.type };
  expect(world.environment.metrics.value('steadystate_watched_resources', { ...kind, cached: 'no' })).toBe(2);
  await world.end();
  // What is not watched any more is not known of either.
  expect(world.environment.metrics.value('steadystate_watched_resources', { ...kind, cached: 'no' })).toBe(0);
});

test('the length of a queue is how many keys are ready and find no worker, also while nothing begins or ends', async () => {
  const world = new World();
  const ends: (() => void)[] = [];
  await world.start(controllerOf({ reconcile: () => new Promise((resolve) => ends.push(() => resolve({ requeueAfterMs: 60_000 }))) }));
  const length = (): number => world.environment.metrics.value('steadystate_controller_queue_length', { controller: 'baker' });
  for (const id of ['a', 'b', 'c', 'd']) await world.apple(id);
  expect(length()).toBe(3);
  while (ends.length > 0) {
    ends.shift()?.();
    await world.environment.settle();
  }
  // All of them run again after a while: that is no backlog.
  expect(length()).toBe(0);
  await world.end();
});

test.each([
  ['read', []],
  ['cached', [apples.kind(), pies.kind()]],
])('what was there before a watch of a %s kind is no lag', async (_how, cachedKinds) => {
  const world = new World({ cachedKinds });
  // More than one batch.
  for (let count = 0; count < 1_500; count++) await world.state.create(apples.create({ id: `a${count}`, spec: {} }));
  await world.environment.advance(3_600_000);
  await world.start(controllerOf({}));
  await world.environment.advance(10_000);
  const kind = { namespace: 'default', type: apples.type };
  expect(world.environment.metrics.value('steadystate_watch_lag_seconds', kind)).toBe(0);
  await world.end();
});

test('the lag of a watch is the time from the write', async () => {
  const gates = new GatedWatches(() => world.environment);
  const world: World = new World({ wrap: (core) => gates.wrap(core) });
  await world.start(controllerOf({}));
  gates.hold();
  await world.state.create(apples.create({ id: 'a', spec: {} }));
  await world.environment.advance(2500);
  gates.release();
  await world.environment.settle();
  const kind = { namespace: 'default', type: apples.type };
  expect(world.environment.metrics.value('steadystate_watch_lag_seconds', kind)).toBeCloseTo(2.5);
  await world.end();
});

test('a logger and metrics that throw stop nothing', async () => {
  const broken = (): never => {
    throw new Error('out of ink');
  };
  const world = new World();
  const metrics = { counter: broken, gauge: () => ({ set: broken }), histogram: () => ({ observe: broken }) } as unknown as Metrics;
  const environment = { ...world.environment, metrics, log: { log: broken, with: broken } };
  const runtime = createRuntime({ state: world.memory, environment });
  let runs = 0;
  runtime.register(
    controllerOf({
      reconcile: async () => {
        if (++runs < 3) throw new Error('no flour');
      },
    }),
  );
  const stop = new AbortController();
  const ended = runtime.run(stop.signal);
  await world.apple('a');
  await world.environment.advance(100);
  expect(runs).toBe(3);
  stop.abort();
  await ended;
  await world.end();
});

test('writes over the limit wait', async () => {
  const world = new World({ writeLimit: { perSecond: 10, burst: 2 } });
  const times: number[] = [];
  await world.start(
    controllerOf({
      reconcile: async (context) => {
        for (let count = 0; count < 5; count++) {
          await context.create(pies.create({ id: `p${count}`, spec: {} }));
          times.push(world.environment.elapsed());
        }
      },
    }),
  );
  await world.apple('a');
  await world.environment.advance(1000);
  expect(times).toEqual([0, 0, 100, 200, 300]);
  await world.end();
});

test('bytes over the limit wait', async () => {
  const world = new World({ writeLimit: { bytesPerSecond: 1000 } });
  const times: number[] = [];
  await world.start(
    controllerOf({
      outputs: [{ type: notes, kind: 'exclusive' }],
      reconcile: async (context) => {
        for (let count = 0; count < 4; count++) {
          await context.create({ metadata: { namespace: 'default', type: notes, id: `n${count}` }, spec: { text: 'x'.repeat(989) } });
          times.push(world.environment.elapsed());
        }
      },
    }),
  );
  await world.apple('a');
  await world.environment.advance(10_000);
  expect(times).toEqual([0, 0, 1000, 2000]);
  await world.end();
});

test('bad options are refused', () => {
  const world = new World();
  for (const [options, message] of [
    [{ graceMs: -1 }, /graceMs/],
    [{ maxBackoffMs: Number.NaN }, /maxBackoffMs/],
    [{ writeLimit: { perSecond: 0 } }, /writeLimit.perSecond/],
    [{ concurrency: 0 }, /concurrency/],
  ] as const) {
    expect(() => createRuntime({ state: world.memory, environment: world.environment, ...options })).toThrow(message);
  }
});

test('what a run says that it waits for stands in the status of its key, until a run says otherwise', async () => {
  const world = new World();
  const outcomes: (() => Promise<{ readonly blockedBecause: string } | undefined>)[] = [
    async () => ({ blockedBecause: 'no flour' }),
    async () => ({ blockedBecause: 'no water' }),
    async () => undefined,
    async () => ({ blockedBecause: 'no flour' }),
    async () => Promise.reject(new Error('the oven is broken')),
  ];
  await world.start(controllerOf({ reconcile: async () => outcomes.shift()?.() }));
  const key = () => world.runtime.status()[0]?.keys[0];
  await world.apple('a');
  const since = world.environment.timestamp();
  expect(key()).toMatchObject({ failures: 0, running: false, blockedBecause: 'no flour', blockedSince: since });
  await world.environment.advance(1000);
  await world.touch('a');
  // In other words, but blocked all the while.
  expect(key()).toMatchObject({ blockedBecause: 'no water', blockedSince: since });
  await world.touch('a');
  expect(key()).toBeUndefined();
  await world.touch('a');
  expect(key()).toMatchObject({ blockedBecause: 'no flour', blockedSince: world.environment.timestamp() });
  await world.touch('a');
  expect(key()).toMatchObject({ failures: 1, lastError: 'the oven is broken' });
  expect(key()?.blockedBecause).toBeUndefined();
  await world.end();
});

test('a key that waits is forgotten with its resource', async () => {
  const world = new World();
  await world.start(controllerOf({ reconcile: async () => ({ blockedBecause: 'no flour' }) }));
  await world.apple('a');
  expect(world.runtime.status()[0]?.keys).toHaveLength(1);
  await world.state.destroy(apples.pointer('a'));
  await world.environment.settle();
  await world.environment.advance(1000);
  // The run that was told of the end says the same, but of nothing that is there.
  expect(world.runtime.status()[0]?.keys).toEqual([]);
  await world.apple('a');
  expect(world.runtime.status()[0]?.keys).toHaveLength(1);
  await world.end();
});
