import { afterEach, expect, test } from 'vitest';
import { memoryState } from '../backends/memory/index.ts';
import { MemoryTracer } from '../environment/index.ts';
import { DefinitionRegistry } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { CoreState } from './index.ts';
import { filter, metered, namespaced, owned, traced, validated, wrapCore } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const kind = { namespace: 'default', type: 'Things.example.dev' };
const pointer = { ...kind, id: 'a' };
const capabilities = { incarnations: true, tailEvents: true, durableBookmarks: false };

const wrappers: Readonly<Record<string, (core: CoreState) => CoreState>> = {
  wrapCore: (core) => wrapCore(core, { environment }),
  filter: (core) => filter(core, () => {}, { environment }),
  owned: (core) => owned(core, 'baker'),
  validated: (core) => validated(core, new DefinitionRegistry()),
  metered: (core) => metered(core, { environment }),
  traced: (core) => traced(core, new MemoryTracer()),
  namespaced: (core) => namespaced(() => core, { environment, capabilities }),
  'all of them': (core) =>
    Object.values(wrappers)
      .slice(0, -1)
      .reduce((inner, wrap) => wrap(inner), core),
};

/** A store that tells of each call that reaches it. */
function spied(core: CoreState) {
  const calls: { readonly call: string; readonly given: readonly unknown[] }[] = [];
  const watched = new Proxy(core, {
    get(target, name: string) {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== 'function') return found;
      return (...given: unknown[]) => {
        calls.push({ call: name, given });
        return (found as (...args: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  return { core: watched, calls };
}

test.each(Object.keys(wrappers))('%s: raw and strict reach the store with every read', async (name) => {
  await using store = memoryState({ environment });
  await store.create({ metadata: pointer, spec: 1 });
  const { core, calls } = spied(store);
  const state = wrapCore((wrappers[name] as (core: CoreState) => CoreState)(core), { environment });
  await state.get(pointer, { raw: true });
  await state.list(kind, { raw: true });
  const options = { raw: true, strict: true };
  await (await state.watch(pointer, options))[Symbol.asyncDispose]();
  await (await state.watchKind(kind, options))[Symbol.asyncDispose]();
  await (await state.watchKindAggregated(kind, options))[Symbol.asyncDispose]();
  await (await state.watchKinds([kind], options))[Symbol.asyncDispose]();
  await (await state.follow(kind, options))[Symbol.asyncDispose]();
  expect(calls.map(({ call }) => call)).toEqual(['get', 'list', 'watch', 'watchKind', 'watchKindAggregated', 'watchKinds', 'watchKind']);
  for (const { call, given } of calls) {
    expect(given[1], call).toMatchObject({ raw: true, ...(call.startsWith('watch') && { strict: true }) });
  }
});

test.each(Object.keys(wrappers))('%s: native calls of the store are passed through', async (name) => {
  await using store = memoryState({ environment });
  await store.create({ metadata: { ...pointer, finalizers: ['f'] }, spec: 1 });
  const native: CoreState = Object.assign(Object.create(store) as CoreState, {
    ...Object.fromEntries(['get', 'list', 'watchNamespaces', 'finalizerNotes'].map((call) => [call, Reflect.get(store, call).bind(store)])),
    capabilities: store.capabilities,
    teardown: async () => true,
    teardownAndDestroy: async () => {},
    waitForRevision: async () => {},
  });
  const { core, calls } = spied(native);
  const state = wrapCore((wrappers[name] as (core: CoreState) => CoreState)(core), { environment });
  expect(await state.teardown(pointer, { owner: 'A' })).toBe(true);
  await state.teardownAndDestroy(pointer, { owner: 'A' });
  expect(await state.finalizerNotes?.(pointer)).toHaveLength(1);
  expect(calls.map(({ call }) => call)).toEqual(['teardown', 'teardownAndDestroy', 'finalizerNotes']);
  expect(calls[0]?.given).toEqual([pointer, expect.objectContaining({ owner: 'A' })]);
  // There is no revision, and no list of namespaces, over the stores of several of them.
  if (name === 'namespaced' || name === 'all of them') {
    expect([state.waitForRevision, state.watchNamespaces]).toEqual([undefined, undefined]);
    return;
  }
  await state.waitForRevision?.(1);
  await (await state.watchNamespaces?.(kind.type))?.[Symbol.asyncDispose]();
  expect(calls.slice(3).map(({ call }) => call)).toEqual(['waitForRevision', 'watchNamespaces']);
});
