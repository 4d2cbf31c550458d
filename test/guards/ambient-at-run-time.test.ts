import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { mayBeAmbient } from '../../scripts/rooms.mjs';
import { memoryState } from '../../src/backends/memory/index.ts';
import { createRuntime, defineResource, destroyController, nodeEnvironment, wrapCore } from '../../src/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import { defineWorkload, desiredChild, embeddedWorkloadController } from '../../src/workload/index.ts';
import { root } from './sources.ts';

interface Touch {
  /** `Date.now`. */
  readonly what: string;
  /** The file of src/ that called it, and its line. */
  readonly path: string;
  readonly line: string;
}

/** What was touched, by files of src/, of the clock, of chance and of the outside world. */
let touched: Touch[] = [];
let undo: (() => void)[] = [];

afterEach(() => {
  for (const restore of undo) restore();
  undo = [];
});

/** Puts a function that reports its caller in the place of an ambient one; Node, vitest and the drivers go on undisturbed. */
function trap(owner: object, key: string, name: string): void {
  const original: unknown = Reflect.get(owner, key);
  if (typeof original !== 'function') throw new Error(`${name} is no function`);
  const report = (): void => {
    const caller = callerOf(new Error().stack ?? '');
    if (caller !== undefined) touched.push({ what: name, ...caller });
  };
  const trapped = new Proxy(original, {
    apply(target, self, given) {
      report();
      return Reflect.apply(target, self, given);
    },
    construct(target, given, newTarget) {
      // A date made of a given time is no look at the clock.
      if (name !== 'Date' || given.length === 0) report();
      return Reflect.construct(target, given, newTarget);
    },
  });
  Reflect.set(owner, key, trapped);
  undo.push(() => Reflect.set(owner, key, original));
}

/** The first frame above the trap, when it is in a file of src/. */
function callerOf(stack: string): Omit<Touch, 'what'> | undefined {
  const frame = stack.split('\n').find((line) => line.includes('    at ') && !line.includes('ambient-at-run-time')) ?? '';
  const [, path, line] = /[ (/](src\/[^\s:?)]+\.ts)[^:]*:(\d+)/.exec(frame.replace(root, '')) ?? [];
  return path === undefined || line === undefined ? undefined : { path, line };
}

function trapAll(): void {
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'fetch', 'WeakRef', 'Date']) trap(globalThis, name, name);
  trap(Date, 'now', 'Date.now');
  trap(performance, 'now', 'performance.now');
  trap(Math, 'random', 'Math.random');
  trap(process, 'nextTick', 'process.nextTick');
  trap(AbortSignal, 'timeout', 'AbortSignal.timeout');
  trap(AbortSignal, 'any', 'AbortSignal.any');
  trap(crypto, 'randomUUID', 'crypto.randomUUID');
}

const boxes = defineResource({
  type: 'Boxes.example.dev',
  spec: z.object({ size: z.number() }),
});
const shelves = defineResource({
  type: 'Shelves.example.dev',
  spec: z.object({ boxes: z.number() }),
  status: { type: 'ShelfStatuses.example.dev' },
});
const shelf = defineWorkload({
  definition: shelves,
  children: [boxes],
  getResources: ({ spec }) =>
    Array.from({ length: spec.boxes }, (_, index) =>
      desiredChild(boxes.create({ id: `box-${index}`, spec: { size: 1 } }), { name: `${index}` }),
    ),
});

test('a small world asks its Environment only', async () => {
  const environment = manualEnvironment();
  trapAll();
  touched = [];
  await using core = memoryState({ environment });
  const state = wrapCore(core, { environment });
  const runtime = createRuntime({ state: core, environment });
  runtime.register(embeddedWorkloadController(shelf, { environment }));
  runtime.register(destroyController([shelves.kind()]));
  const stop = new AbortController();
  const running = runtime.run(stop.signal);

  await state.create(shelves.create({ id: 'shelf', spec: { boxes: 3 } }));
  await environment.advance(60_000);
  expect((await state.list(boxes.kind())).items).toHaveLength(3);
  const gone = state.teardownAndDestroy(shelves.pointer('shelf'));
  await environment.advance(60_000);
  await gone;
  expect((await state.list(boxes.kind())).items).toHaveLength(0);
  stop.abort();
  await running;

  expect(touched.filter(({ path }) => !mayBeAmbient(path))).toEqual([]);
});

test('the traps know who touched them', async () => {
  trapAll();
  touched = [];
  const environment = nodeEnvironment();
  environment.now();
  environment.random();
  await environment.sleep(1);
  const found = new Set(touched.map(({ what, path }) => `${what} ${path}`));
  for (const what of ['Date.now', 'performance.now', 'setTimeout']) expect(found).toContain(`${what} src/environment/node-clock.ts`);
  expect(found).toContain('Math.random src/environment/node-environment.ts');
});
