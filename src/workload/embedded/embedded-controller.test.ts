import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memoryState } from '../../backends/memory/index.ts';
import type { Resource } from '../../resource/index.ts';
import { defineResource, isNotFoundError } from '../../resource/index.ts';
import { createRuntime, destroyController } from '../../runtime/index.ts';
import type { CoreState, State } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import { defineWorkload, desiredChild } from '../define-workload.ts';
import { allowEmptyAnnotation, parentAnnotation } from '../identity.ts';
import type { CompanionSpec } from './companion.ts';
import { embeddedWorkloadController } from './embedded-controller.ts';
import { eventDefinition } from './event-log.ts';

const boxes = defineResource({
  type: 'Boxes.example.dev',
  spec: z.object({ size: z.number(), full: z.boolean().default(false) }),
  status: { type: 'BoxStatuses.example.dev' },
});
const apps = defineResource({
  type: 'Apps.example.dev',
  spec: z.object({ boxes: z.record(z.string(), z.object({ size: z.number(), after: z.array(z.string()).optional() })) }),
  status: { type: 'AppStatuses.example.dev' },
});
const workload = defineWorkload({
  definition: apps,
  children: [boxes],
  getResources: ({ spec }) =>
    Object.entries(spec.boxes).map(([id, { size, after }]) =>
      desiredChild(boxes.create({ id, spec: { size } }), { name: id, ...(after && { dependsOn: after }) }),
    ),
});

/** Counts writes below the controllers, without those of events. */
function counted(core: CoreState): { readonly core: CoreState; readonly writes: string[] } {
  const writes: string[] = [];
  const wrap =
    (verb: 'create' | 'update' | 'destroy') =>
    (first: { metadata?: { type: string; id: string }; type?: string; id?: string }, options: unknown) => {
      const { type, id } = first.metadata ?? first;
      if (type !== eventDefinition.type) writes.push(`${verb} ${type?.split('.')[0]}/${id}`);
      return (core[verb] as (first: unknown, options: unknown) => Promise<never>).call(core, first, options);
    };
  const proxy = new Proxy(core, {
    get: (target, key) =>
      key === 'create' || key === 'update' || key === 'destroy'
        ? wrap(key)
        : typeof Reflect.get(target, key) === 'function'
          ? (Reflect.get(target, key) as () => void).bind(target)
          : Reflect.get(target, key),
  });
  return { core: proxy, writes };
}

describe('a workload on the embedded store', () => {
  const environment = manualEnvironment();
  let memory: CoreState & AsyncDisposable;
  let state: State;
  let writes: string[];
  let stop: AbortController;
  let running: Promise<void>;

  const start = (): void => {
    const watched = counted(memory);
    writes = watched.writes;
    stop = new AbortController();
    const runtime = createRuntime({ state: watched.core, environment });
    runtime.register(embeddedWorkloadController(workload, { environment }));
    runtime.register(destroyController([apps.kind()]));
    running = runtime.run(stop.signal);
  };
  const halt = async (): Promise<void> => {
    stop.abort();
    await running;
  };

  beforeEach(() => {
    memory = memoryState({ environment });
    state = wrapCore(memory, { environment });
    start();
  });

  afterEach(async () => {
    await halt();
    await memory[Symbol.asyncDispose]();
    expect(environment.open.counts()).toEqual({});
  });

  const status = async (id = 'app'): Promise<CompanionSpec> =>
    (await state.get({ namespace: 'default', type: 'AppStatuses.example.dev', id })).spec as CompanionSpec;
  const condition = async (type: string): Promise<string> => {
    const found = (await status()).conditions.find((candidate) => candidate.type === type);
    return found === undefined ? 'absent' : `${found.status} ${found.reason} ${found.message}`.trim();
  };
  const present = async (id: string): Promise<Resource | undefined> =>
    state.get(boxes.pointer(id)).catch((error: unknown) => (isNotFoundError(error) ? undefined : Promise.reject(error)));
  const makeReady = async (id: string, ready = true): Promise<void> => {
    const { metadata } = await state.get(boxes.pointer(id));
    await state.modify(
      { metadata: { namespace: 'default', type: 'BoxStatuses.example.dev', id }, spec: {} },
      (draft) => void (draft.spec = { ready, observedVersion: metadata.version }),
    );
    await environment.settle();
  };

  test('children come up in order, each waiting for the one before', async () => {
    await state.create(apps.create({ id: 'app', spec: { boxes: { a: { size: 1 }, b: { size: 2, after: ['a'] } } } }));
    await environment.settle();
    expect(await present('a')).toBeDefined();
    expect(await present('b')).toBeUndefined();
    expect(await condition('Ready')).toContain('False WaitingForChild b wait for a: NoStatus');
    await makeReady('a');
    expect(await present('b')).toBeDefined();
    await makeReady('b');
    expect(await condition('Ready')).toBe('True Ready');
    expect((await status()).created).toBe(true);
    expect((await status()).observedVersion).toBe((await state.get(apps.pointer('app'))).metadata.version);
    expect(writes).toEqual([
      'update Apps/app',
      'create AppStatuses/app',
      'create Boxes/a',
      'update AppStatuses/app',
      'create Boxes/b',
      'update AppStatuses/app',
      'update AppStatuses/app',
    ]);
  });

  test('a steady workload is not written, not even by a new operator', async () => {
    await state.create(apps.create({ id: 'app', spec: { boxes: { a: { size: 1 } } } }));
    await environment.settle();
    await makeReady('a');
    await halt();
    start();
    await environment.advance(120_000);
    expect(writes).toEqual([]);
  });

  test('what drifts is put right, what is no longer wanted is pruned in reverse order', async () => {
    await state.create(
      apps.create({ id: 'app', spec: { boxes: { a: { size: 1 }, b: { size: 1, after: ['a'] }, c: { size: 1, after: ['b'] } } } }),
    );
    await environment.settle();
    for (const id of ['a', 'b', 'c']) await makeReady(id);
    await state.updateWithConflicts(boxes.pointer('a'), (draft) => void (draft.spec = { size: 99, full: false }), {
      owner: 'Apps-reconciler',
    });
    await environment.settle();
    expect((await present('a'))?.spec).toEqual({ size: 1, full: false });
    await makeReady('a');
    writes.length = 0;
    await state.updateWithConflicts(apps.pointer('app'), (draft) => void (draft.spec = { boxes: { a: { size: 1 } } }));
    await environment.settle();
    expect(writes.filter((line) => line.startsWith('destroy'))).toEqual(['destroy Boxes/c', 'destroy Boxes/b']);
    expect((await status()).children.map((entry) => entry.name)).toEqual(['a']);
  });

  test('losing all children is held back until it is meant', async () => {
    await state.create(apps.create({ id: 'app', spec: { boxes: { a: { size: 1 } } } }));
    await environment.settle();
    await makeReady('a');
    await state.updateWithConflicts(apps.pointer('app'), (draft) => void (draft.spec = { boxes: {} }));
    await environment.settle();
    expect(await present('a')).toBeDefined();
    expect(await condition('Ready')).toContain('PruneBlocked');
    await state.updateWithConflicts(apps.pointer('app'), (draft) => draft.annotations.set(allowEmptyAnnotation, 'true'));
    await environment.settle();
    expect(await present('a')).toBeUndefined();
  });

  test('deletion goes in reverse, waits for finalizers, and our finalizer goes last', async () => {
    await state.create(apps.create({ id: 'app', spec: { boxes: { a: { size: 1 }, b: { size: 1, after: ['a'] } } } }));
    await environment.settle();
    await makeReady('a');
    await makeReady('b');
    await state.addFinalizer(boxes.pointer('b'), 'busy');
    await environment.settle();
    writes.length = 0;
    const gone = state.teardown(apps.pointer('app'));
    await gone;
    await environment.settle();
    expect(await condition('Delete-Resources')).toBe('False WaitingForDeletion waiting for Boxes/b (finalizers: busy)');
    expect((await present('a'))?.metadata.phase).toBe('running');
    await state.removeFinalizer(boxes.pointer('b'), 'busy');
    await environment.settle();
    expect(await present('a')).toBeUndefined();
    await expect(status()).rejects.toMatchObject({ code: 'NotFound' });
    await expect(state.get(apps.pointer('app'))).rejects.toMatchObject({ code: 'NotFound' });
    expect(writes.slice(-3)).toEqual(['destroy AppStatuses/app', 'update Apps/app', 'destroy Apps/app']);
  });

  test('a child of somebody else is not taken', async () => {
    await state.create(
      boxes.create({
        id: 'a',
        spec: { size: 5 },
        annotations: {
          [parentAnnotation]: JSON.stringify({ group: 'example.dev', kind: 'Apps', namespace: 'default', name: 'other', uid: '1' }),
        },
      }),
    );
    await state.create(apps.create({ id: 'app', spec: { boxes: { a: { size: 1 } } } }));
    await environment.settle();
    await environment.settle();
    // There is no such workload, so its claim is void; the child is taken, and what it was is put right.
    expect((await present('a'))?.spec).toEqual({ size: 1, full: false });
  });

  test('a child whose workload is gone is removed', async () => {
    await halt();
    await state.create(boxes.create({ id: 'late', spec: { size: 1 } }));
    await state.updateWithConflicts(boxes.pointer('late'), (draft) => {
      draft.annotations.set(
        parentAnnotation,
        JSON.stringify({ group: 'example.dev', kind: 'Apps', namespace: 'default', name: 'app', uid: '1' }),
      );
      draft.labels.set('steadystate.dev/parent-id', 'none');
    });
    start();
    await environment.settle();
    // Its label does not lead to that parent, so it is nobody's: left alone.
    expect(await present('late')).toBeDefined();
  });
});
