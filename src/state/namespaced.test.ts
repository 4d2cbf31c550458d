import { afterEach, describe, expect, test } from 'vitest';
import { memoryState } from '../backends/memory/index.ts';
import { nodeEnvironment } from '../environment/index.ts';
import { manualEnvironment, stateConformance } from '../testing/index.ts';
import type { CoreState } from './index.ts';
import { metered, namespaced, wrapCore } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const capabilities = { incarnations: true, tailEvents: true, durableBookmarks: false };
const pointer = { namespace: 'one', type: 'Things.example.dev', id: 'a' };
const thing = (namespace: string) => ({ metadata: { ...pointer, namespace }, spec: 1 });

describe('namespaced', () => {
  const real = nodeEnvironment();
  const cases = stateConformance(
    (request) => {
      const stores: AsyncDisposable[] = [];
      const core = namespaced(
        () => {
          const store = memoryState({ environment: real, ...request });
          stores.push(store);
          return store;
        },
        { environment: real, capabilities },
      );
      return {
        core,
        async [Symbol.asyncDispose]() {
          for (const store of stores) await store[Symbol.asyncDispose]();
        },
      };
    },
    {
      environment: real,
      capabilities: { ...capabilities, globalRevision: false, multiKindWatch: false },
      shortHistory: true,
    },
  );
  test.each(cases)('$name', ({ run }) => run());

  test('builds a store at the first access of a namespace, once for all who come meanwhile', async () => {
    const built: string[] = [];
    const stores: (CoreState & AsyncDisposable)[] = [];
    const core = namespaced(
      async (namespace) => {
        built.push(namespace);
        await environment.breathe();
        const store = memoryState({ environment });
        stores.push(store);
        return store;
      },
      { environment, capabilities },
    );
    expect(built).toEqual([]);
    await Promise.all([core.create(thing('one')), core.list(pointer), core.get(pointer).catch(() => {}), core.create(thing('two'))]);
    expect(built).toEqual(['one', 'two']);
    expect((await core.list(pointer)).items).toHaveLength(1);
    await expect(core.watchKinds([pointer, { ...pointer, namespace: 'two' }])).rejects.toMatchObject({ code: 'Unsupported' });
    for (const store of stores) await store[Symbol.asyncDispose]();
  });

  test('a failed build is not kept', async () => {
    let fail = true;
    await using store = memoryState({ environment });
    const core = namespaced(
      () => {
        if (fail) throw new Error('no room');
        return store;
      },
      { environment, capabilities },
    );
    const calls = await Promise.allSettled([core.create(thing('one')), core.list(pointer)]);
    expect(calls.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fail = false;
    await core.create(thing('one'));
  });
});

describe('metered', () => {
  test('counts calls by how they ended, and passes all on', async () => {
    await using store = memoryState({ environment });
    const state = wrapCore(metered(store, { environment }), { environment });
    await state.create(thing('one'));
    await state.create(thing('one')).catch(() => {});
    await state.get({ ...pointer, id: 'missing' }).catch(() => {});
    await state.teardownAndDestroy(pointer);
    const counted = (call: string, code: string): number =>
      environment.metrics.value('steadystate_state_calls_total', { call, type: pointer.type, code });
    expect([
      counted('create', 'ok'),
      counted('create', 'Conflict'),
      counted('get', 'NotFound'),
      counted('destroy', 'ok'),
      counted('watch', 'ok'),
    ]).toEqual([1, 1, 1, 1, 1]);
    expect(environment.metrics.value('steadystate_state_call_seconds_count', { call: 'create', type: pointer.type })).toBe(2);
    expect(state.capabilities).toEqual(store.capabilities);
  });
});
