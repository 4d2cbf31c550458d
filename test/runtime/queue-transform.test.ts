import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import type { QueueTransformSettings, Runtime } from '../../src/runtime/index.ts';
import {
  createRuntime,
  destroyOutputError,
  mapLabelValue,
  mapNone,
  mapSameId,
  mapTyped,
  queueTransform,
  skipError,
} from '../../src/runtime/index.ts';
import { apples, crumbs, pies, World } from './world.ts';

type Size = { size: number };
type Settings = QueueTransformSettings<Size, Size>;

let world: World;
let ran: string[];

beforeEach(() => {
  world = new World();
  ran = [];
});

afterEach(() => world.end());

/** One pie for each apple, twice its size. */
function baking(more: Partial<Settings> = {}): Settings {
  return {
    name: 'baker',
    input: apples.kind(),
    output: pies.kind(),
    map: ({ metadata }) => pies.create({ id: metadata.id, spec: {} }),
    unmap: ({ id }) => apples.pointer(id),
    transform: (_context, { spec }, draft) => {
      draft.spec.size = spec.size * 2;
    },
    ...more,
  };
}

async function start(more: Partial<Settings> = {}): Promise<void> {
  const controller = queueTransform(baking(more));
  world.runtime.register({
    ...controller,
    reconcile: (context, request) => {
      ran.push(request.pointer.id);
      return controller.reconcile(context, request);
    },
  });
  await world.start();
}

const pie = (id: string) => world.state.get(pies.pointer(id));
const apple = (id: string) => world.state.get(apples.pointer(id));
const pieIds = async (): Promise<readonly string[]> => (await world.state.list(pies.kind())).items.map(({ metadata }) => metadata.id);

async function resize(id: string, size: number): Promise<void> {
  await world.state.updateWithConflicts(apples.pointer(id), (draft) => {
    draft.spec.size = size;
  });
  await world.environment.settle();
}

async function teardown(id: string): Promise<void> {
  await world.state.teardown(apples.pointer(id));
  await world.environment.settle();
}

describe('an input', () => {
  test('has one output, owned by the controller, and is held by its finalizer', async () => {
    await start();
    await world.apple('a', 3);
    expect(await pie('a')).toMatchObject({ metadata: { owner: 'baker' }, spec: { size: 6 } });
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    await resize('a', 5);
    expect((await pie('a')).spec).toEqual({ size: 10 });
  });

  test('is held before its output is there', async () => {
    let finalizers: readonly string[] = [];
    await start({
      transform: async (context, input) => {
        finalizers = (await context.get(input.metadata)).metadata.finalizers;
      },
    });
    await world.apple('a');
    expect(finalizers).toEqual(['baker']);
  });

  test('without a change costs no write', async () => {
    await start();
    await world.apple('a', 3);
    const { version } = (await pie('a')).metadata;
    const before = (await world.state.list(apples.kind())).revision;
    await world.touch('a');
    expect((await pie('a')).metadata.version).toBe(version);
    expect((await world.state.list(apples.kind())).revision).toBe((before as number) + 1);
  });

  test('that is torn down takes its output with it, and is let go last', async () => {
    await start();
    await world.apple('a');
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await teardown('a');
    expect((await pie('a')).metadata.phase).toBe('tearingDown');
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect(await pieIds()).toEqual([]);
    expect((await apple('a')).metadata.finalizers).toEqual([]);
  });

  test('that is torn down already is not begun with', async () => {
    await world.apple('a');
    await world.state.addFinalizer(apples.pointer('a'), 'other');
    await teardown('a');
    await start();
    expect(await pieIds()).toEqual([]);
    expect((await apple('a')).metadata.finalizers).toEqual(['other']);
  });

  test('that went although it was held takes its output with it', async () => {
    await start();
    await world.apple('a');
    await world.state.removeFinalizer(apples.pointer('a'), 'baker');
    await world.state.destroy(apples.pointer('a'));
    await world.environment.settle();
    expect(await pieIds()).toEqual([]);
  });
});

test('outputs whose inputs went while nobody ran are taken down at the start; those of others stay', async () => {
  await world.state.create(pies.create({ id: 'stranded', spec: {} }), { owner: 'baker' });
  await world.state.create(pies.create({ id: 'held', spec: {} }), { owner: 'baker' });
  await world.state.addFinalizer(pies.pointer('held'), 'eater');
  await world.state.create(pies.create({ id: 'theirs', spec: {} }), { owner: 'another' });
  await world.apple('a');
  await start();
  expect(await pieIds()).toEqual(['a', 'held', 'theirs']);
  await world.state.removeFinalizer(pies.pointer('held'), 'eater');
  await world.environment.settle();
  expect(await pieIds()).toEqual(['a', 'theirs']);
});

describe('a map that answers', () => {
  test('none has no output, and no finalizer', async () => {
    await start({ map: ({ metadata, spec }) => (spec.size > 0 ? pies.create({ id: metadata.id, spec: {} }) : undefined) });
    await world.apple('a', 0);
    expect((await apple('a')).metadata.finalizers).toEqual([]);
    await resize('a', 1);
    expect(await pieIds()).toEqual(['a']);
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
  });

  test('none later takes the output down, then lets the input go', async () => {
    await start({ map: ({ metadata, spec }) => (spec.size > 0 ? pies.create({ id: metadata.id, spec: {} }) : undefined) });
    await world.apple('a', 1);
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await resize('a', 0);
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect(await pieIds()).toEqual([]);
    expect((await apple('a')).metadata.finalizers).toEqual([]);
  });

  const bySize: Partial<Settings> = {
    map: ({ metadata, spec }) => pies.create({ id: `${metadata.id}-${spec.size}`, spec: {} }),
    unmap: ({ id }) => apples.pointer(id.slice(0, id.indexOf('-'))),
  };

  test('another output later takes the first one down: there is one for each input', async () => {
    await start(bySize);
    await world.apple('a', 1);
    await world.apple('b', 1);
    await resize('a', 2);
    expect(await pieIds()).toEqual(['a-2', 'b-1']);
  });

  test('another output while nobody ran finds the first one all the same', async () => {
    await start(bySize);
    await world.apple('a', 1);
    await world.apple('b', 1);
    await world.halt();
    await resize('a', 2);
    await world.state.teardown(apples.pointer('b'));
    await run(createRuntime({ state: world.memory, environment: world.environment }), bySize);
    expect(await pieIds()).toEqual(['a-2']);
    expect((await apple('b')).metadata.finalizers).toEqual([]);
  });

  async function run(runtime: Runtime, more: Partial<Settings>): Promise<void> {
    runtime.register(queueTransform(baking(more)));
    const stop = new AbortController();
    const ended = runtime.run(stop.signal);
    await world.environment.settle();
    stop.abort();
    await ended;
  }

  test('another kind than declared fails, and says so', async () => {
    await start({ map: ({ metadata }) => crumbs.create({ id: metadata.id, spec: {} }) });
    await world.apple('a');
    expect(world.runtime.status()[0]?.keys[0]?.lastError).toMatch(/baker\.map: answered Crumbs.*expected one of Pies/);
  });
});

describe('an output', () => {
  test('that is being torn down is waited for, and made anew', async () => {
    await start();
    await world.apple('a', 1);
    await world.state.addFinalizer(pies.pointer('a'), 'eater');
    await world.state.teardown(pies.pointer('a'), { owner: 'baker' });
    await resize('a', 2);
    expect(world.runtime.status()[0]?.keys).toMatchObject([
      { failures: 0, running: false, blockedBecause: 'waits for Pies.example.dev/default/a to go' },
    ]);
    await world.state.removeFinalizer(pies.pointer('a'), 'eater');
    await world.environment.settle();
    expect(await pie('a')).toMatchObject({ metadata: { phase: 'running' }, spec: { size: 4 } });
  });

  test('that another owns is an error, and never touched', async () => {
    await world.state.create(pies.create({ id: 'a', spec: { size: 1 } }), { owner: 'another' });
    await start();
    await world.apple('a', 3);
    expect(world.runtime.status()[0]?.keys[0]?.lastError).toMatch(/owned by another/);
    await teardown('a');
    expect((await pie('a')).spec).toEqual({ size: 1 });
    expect((await apple('a')).metadata.finalizers).toEqual([]);
  });

  test('a phase conflict of something else is an error', async () => {
    await world.state.create(crumbs.create({ id: 'c', spec: {} }), { owner: 'baker' });
    await world.state.addFinalizer(crumbs.pointer('c'), 'x');
    await world.state.teardown(crumbs.pointer('c'), { owner: 'baker' });
    await start({
      extraOutputs: [{ type: crumbs.type, kind: 'shared' }],
      transform: async (context) => {
        await context.modify(crumbs.create({ id: 'c', spec: {} }), (draft) => void draft.spec.size++);
      },
    });
    await world.apple('a', 3);
    expect(world.runtime.status()[0]?.keys[0]?.lastError).toMatch(/Crumbs.* is in phase tearingDown/);
  });
});

describe('a transform that throws', () => {
  test('skips the item', async () => {
    let skips = true;
    await start({
      transform: (_context, input, draft) => {
        if (skips) throw skipError();
        draft.spec.size = input.spec.size;
      },
    });
    await world.apple('a', 1);
    await world.environment.advance(60_000);
    expect([await pieIds(), ran.length]).toEqual([[], 2]);
    skips = false;
    await resize('a', 2);
    expect((await pie('a')).spec).toEqual({ size: 2 });
  });

  test('destroys the output, until it is wanted again', async () => {
    await start({
      transform: (_context, { spec }, draft) => {
        if (spec.size > 10) throw new Error('too large', { cause: destroyOutputError() });
        draft.spec.size = spec.size;
      },
    });
    await world.apple('a', 1);
    await resize('a', 11);
    expect(await pieIds()).toEqual([]);
    expect(ran.length).toBeLessThan(8);
    await resize('a', 2);
    expect(await pieIds()).toEqual(['a']);
    await resize('a', 11);
    await teardown('a');
    expect([await pieIds(), (await apple('a')).metadata.finalizers]).toEqual([[], []]);
  });

  test('anything else is tried again, with back-off', async () => {
    let left = 3;
    await start({
      transform: () => {
        if (left-- > 0) throw new SteadystateError('Unavailable', 'not now');
      },
    });
    await world.apple('a', 1);
    await world.environment.advance(100);
    expect(await pieIds()).toEqual(['a']);
  });
});

describe('the finalizer', () => {
  test('is removed after what is to be done before', async () => {
    const steps: string[] = [];
    let ready = false;
    await start({
      finalizerRemoval: async (context, { metadata }) => {
        steps.push(`pies: ${(await context.list(pies.kind())).items.length}, finalizers: ${metadata.finalizers.length}`);
        if (!ready) throw skipError();
      },
    });
    await world.apple('a');
    await teardown('a');
    // The end of the pie wakes it once more.
    expect(new Set(steps)).toEqual(new Set(['pies: 0, finalizers: 1']));
    expect((await apple('a')).metadata.finalizers).toEqual(['baker']);
    ready = true;
    await world.state.addFinalizer(apples.pointer('a'), 'nudge');
    await world.environment.settle();
    expect((await apple('a')).metadata.finalizers).toEqual(['nudge']);
  });

  test.each([
    ['until only those named are left', { ignoreTeardownUntil: ['last'] }, ['early', 'last'], 'early'],
    ['until none but ours is left', { ignoreTeardownUntil: [] }, ['early'], 'early'],
    ['while one of those named is there', { ignoreTeardownWhile: ['early'] }, ['early', 'last'], 'early'],
  ] as const)('ignores the teardown %s', async (_what, more, finalizers, released) => {
    await start(more);
    await world.apple('a', 1);
    await world.state.addFinalizer(apples.pointer('a'), ...finalizers);
    await teardown('a');
    await world.state.updateWithConflicts(apples.pointer('a'), (draft) => void (draft.spec.size = 4), { expectedPhase: 'any' });
    await world.environment.settle();
    // It is as any other until then.
    expect((await pie('a')).spec).toEqual({ size: 8 });
    await world.state.removeFinalizer(apples.pointer('a'), released);
    await world.environment.settle();
    expect(await pieIds()).toEqual([]);
    expect((await apple('a')).metadata.finalizers).not.toContain('baker');
  });

  test('is not put on what is ignored in teardown', async () => {
    await world.apple('a');
    await world.state.addFinalizer(apples.pointer('a'), 'early');
    await teardown('a');
    await start({ ignoreTeardownWhile: ['early'] });
    expect([await pieIds(), (await apple('a')).metadata.finalizers]).toEqual([[], ['early']]);
  });
});

describe('extra inputs', () => {
  async function crumb(id: string, labels: Record<string, string> = {}): Promise<readonly string[]> {
    ran.length = 0;
    await world.state.create(crumbs.create({ id, labels, spec: { size: 1 } }));
    await world.environment.settle();
    return [...ran];
  }

  async function startWith(map: ReturnType<typeof mapSameId>): Promise<void> {
    await start({ extraInputs: [{ namespace: 'default', type: crumbs.type, map }] });
    await world.apple('a');
    await world.apple('b');
  }

  test('wake the input of the same id', async () => {
    await startWith(mapSameId(apples.kind()));
    expect(await crumb('a')).toEqual(['a']);
  });

  test('wake the input that a label names', async () => {
    await startWith(mapLabelValue('apple', apples.kind()));
    expect([await crumb('x', { apple: 'b' }), await crumb('y')]).toEqual([['b'], []]);
  });

  test('wake nobody', async () => {
    await startWith(mapNone);
    expect(await crumb('a')).toEqual([]);
  });

  test('are mapped by their spec', async () => {
    await startWith(mapTyped(crumbs, ({ spec }) => (spec.size === 1 ? [apples.pointer('b')] : [])));
    expect(await crumb('x')).toEqual(['b']);
    ran.length = 0;
    await world.state.destroy(crumbs.pointer('x'));
    await world.environment.settle();
    expect(ran).toEqual([]);
  });
});

test('hooks run around the write of the output', async () => {
  const steps: string[] = [];
  await start({
    before: async (context) => void steps.push(`before: ${(await context.list(pies.kind())).items.length}`),
    after: (_context, _input, output) => void steps.push(`after: ${output.metadata.id} ${output.spec.size}`),
    shutdown: async () => void steps.push('shutdown'),
  });
  await world.apple('a', 2);
  await world.halt();
  // Its own finalizer wakes it once more.
  expect(steps).toEqual(['before: 0', 'after: a 4', 'before: 1', 'after: a 4', 'shutdown']);
});

test('the output may be shared, and several may run at once', () => {
  expect(
    queueTransform(baking({ outputKind: 'shared', concurrency: 4, extraOutputs: [{ type: crumbs.type, kind: 'shared' }] })),
  ).toMatchObject({
    concurrency: 4,
    outputs: [
      { type: pies.type, kind: 'shared' },
      { type: crumbs.type, kind: 'shared' },
    ],
  });
});
