import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memoryState } from '../backends/memory/index.ts';
import {
  DefinitionRegistry,
  defineResource,
  namespaceDefinition,
  resourceDefinitionDefinition,
  SteadystateError,
} from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { Access, CoreState, StateEvent } from './index.ts';
import { filter, listNamespaces, metered, owned, registerDefinitions, validated, wrapCore } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const kind = { namespace: 'default', type: 'Things.example.dev' };
const pointer = { ...kind, id: 'a' };
const thing = (metadata: object = {}, spec: unknown = { size: 1 }) => ({ metadata: { ...pointer, ...metadata }, spec });

describe('filter', () => {
  function guarded(core: CoreState, denied: (access: Access) => boolean = () => false) {
    const asked: string[] = [];
    const core2 = filter(
      core,
      (access) => {
        asked.push(`${access.verb} ${access.namespace} ${access.type}${access.id === undefined ? '' : ` ${access.id}`}`);
        if (denied(access)) throw new SteadystateError('Forbidden', `no ${access.verb}`);
      },
      { environment },
    );
    return { asked, core: core2, state: wrapCore(core2, { environment }) };
  }
  const took = (asked: string[]): string[] => asked.splice(0).map((text) => text.replace(` ${kind.namespace} ${kind.type}`, ''));

  test('asks before every access, with the verb of the call', async () => {
    await using store = memoryState({ environment });
    const { asked, core, state } = guarded(store);
    await core.create(thing());
    expect(took(asked)).toEqual(['create a']);
    await core.get(pointer);
    expect(took(asked)).toEqual(['get a']);
    await core.list(kind);
    expect(took(asked)).toEqual(['list']);
    for (const call of [() => core.watchKind(kind), () => core.watchKindAggregated(kind), () => core.watchKinds([kind])]) {
      await (await call())[Symbol.asyncDispose]();
      expect(took(asked)).toEqual(['watch']);
    }
    await (await core.watch(pointer))[Symbol.asyncDispose]();
    expect(took(asked)).toEqual(['watch a']);
    await core.update(thing(), { currentVersion: '1' });
    expect(took(asked)).toEqual(['update a']);
    await state.addFinalizer(pointer, 'f');
    expect(took(asked)).toEqual(['get a', 'update a']);
    await state.removeFinalizer(pointer, 'f');
    took(asked);
    await core.destroy(pointer);
    expect(took(asked)).toEqual(['destroy a']);
  });

  test('teardown and teardownAndDestroy ask for destroy, once', async () => {
    await using store = memoryState({ environment });
    const { asked, state } = guarded(store, ({ verb }) => verb !== 'destroy');
    await store.create(thing());
    expect(await state.teardown(pointer)).toBe(true);
    expect(took(asked)).toEqual(['destroy a']);
    await state.teardownAndDestroy(pointer);
    expect(took(asked)).toEqual(['destroy a']);
  });

  test('an update that sets tearingDown asks for update and destroy', async () => {
    await using store = memoryState({ environment });
    const { asked, core, state } = guarded(store, ({ verb }) => verb === 'destroy');
    const { metadata } = await store.create(thing());
    const forbidden = expect.objectContaining({ code: 'Forbidden' });
    await expect(core.update(thing({ phase: 'tearingDown', version: metadata.version }))).rejects.toEqual(forbidden);
    expect(took(asked)).toEqual(['update a', 'destroy a']);
    await expect(core.update(thing({ phase: 'tearingDown', version: metadata.version }), { expectedPhase: 'any' })).rejects.toEqual(
      forbidden,
    );
    await expect(state.teardown(pointer)).rejects.toEqual(forbidden);
    expect((await store.get(pointer)).metadata.phase).toBe('running');
    await wrapCore(store, { environment }).teardown(pointer);
    const torn = await state.updateWithConflicts(pointer, (draft) => void draft.labels.set('a', 'b'), { expectedPhase: 'any' });
    expect(torn.metadata.labels, 'what is in teardown already may be updated without the right to destroy').toEqual({ a: 'b' });
  });

  test("its error is the call's error, and nothing happens", async () => {
    await using store = memoryState({ environment });
    const { core } = guarded(store, () => true);
    const forbidden = expect.objectContaining({ code: 'Forbidden' });
    await store.create(thing());
    const calls: (() => Promise<unknown>)[] = [
      () => core.get(pointer),
      () => core.list(kind),
      () => core.create(thing({ id: 'b' })),
      () => core.update(thing(), { currentVersion: '1' }),
      () => core.destroy(pointer),
      () => core.watch(pointer),
      () => core.watchKind(kind),
      () => core.watchKindAggregated(kind),
    ];
    for (const call of calls) await expect(call()).rejects.toEqual(forbidden);
    expect((await store.list(kind)).items.map((item) => item.metadata.version)).toEqual(['1']);
  });

  test('a denied kind of several arrives as kindErrored and does not end the rest', async () => {
    await using store = memoryState({ environment });
    const { core } = guarded(store, ({ type }) => type === 'Secrets.example.dev');
    const watch = await core.watchKinds([kind, { namespace: 'default', type: 'Secrets.example.dev' }]);
    await store.create(thing());
    await store.create({ metadata: { namespace: 'default', type: 'Secrets.example.dev', id: 's' }, spec: 1 });
    await store.create(thing({ id: 'b' }));
    const seen: StateEvent[] = [];
    for await (const batch of watch) {
      seen.push(...batch);
      if (seen.length >= 3) break;
    }
    expect(seen.map((event) => event.type)).toEqual(['kindErrored', 'created', 'created']);
    expect(seen[0]).toMatchObject({ kind: { type: 'Secrets.example.dev' }, error: { code: 'Forbidden' } });
  });

  test('namespaces that may not be watched are not told', async () => {
    await using store = memoryState({ environment });
    const { asked, core } = guarded(store, ({ namespace }) => namespace.startsWith('secret'));
    for (const namespace of ['a', 'secret', 'z']) await store.create(thing({ namespace }));
    expect(await listNamespaces(core, kind.type)).toEqual(['a', 'z']);
    expect(asked).toEqual(['a', 'secret', 'z'].map((namespace) => `watch ${namespace} ${kind.type}`));
    const watch = await wrapCore(metered(validated(owned(core, 'A'), new DefinitionRegistry([])), { environment }), {
      environment,
    }).watchNamespaces?.(kind.type);
    const seen: string[] = [];
    const ended = watch?.drain((batch) => {
      for (const event of batch) seen.push(`${event.type} ${'resource' in event ? event.resource.metadata.id : ''}`.trim());
    });
    await environment.settle();
    for (const namespace of ['secrets', 'm']) await store.create(thing({ namespace }));
    for (const namespace of ['secret', 'a']) await store.destroy({ ...pointer, namespace });
    await environment.settle();
    await watch?.[Symbol.asyncDispose]();
    await ended;
    expect(seen).toEqual(['created a', 'created z', 'bootstrapped', 'created m', 'destroyed a']);
  });
});

describe('owned', () => {
  test('an owner that is left undefined in the options is not given', async () => {
    const store = memoryState({ environment });
    const state = wrapCore(owned(store, 'A'), { environment });
    const more = { owner: undefined } as unknown as { owner: string };
    const made = await state.create(thing(), more);
    expect(made.metadata.owner).toBe('A');
    await state.updateWithConflicts(made.metadata, (draft) => void draft.labels.set('a', 'b'), more);
    await state.teardown(made.metadata, more);
    await state.destroy(made.metadata, more);
    await store[Symbol.asyncDispose]();
  });

  test('what it creates carries its name, and it may change and destroy that only', async () => {
    await using store = memoryState({ environment });
    const state = wrapCore(owned(store, 'A'), { environment });
    expect((await state.create(thing())).metadata.owner).toBe('A');
    await state.updateWithConflicts(pointer, (draft) => void (draft.spec = { size: 2 }));
    await store.create(thing({ id: 'free' }));
    const conflict = expect.objectContaining({ code: 'Conflict', reason: 'owner' });
    await expect(state.destroy({ ...kind, id: 'free' })).rejects.toEqual(conflict);
    await expect(wrapCore(store, { environment }).teardown(pointer)).rejects.toEqual(conflict);
    await state.modify(thing({ id: 'made' }), () => {});
    expect((await store.get({ ...kind, id: 'made' })).metadata.owner).toBe('A');
    await state.addFinalizer({ ...kind, id: 'free' }, 'f');
    await state.teardownAndDestroy(pointer);
  });

  test('another owner, or none, can be named', async () => {
    await using store = memoryState({ environment });
    const state = wrapCore(owned(store, 'A'), { environment });
    expect((await state.create(thing(), { owner: 'B' })).metadata.owner).toBe('B');
    await state.updateWithConflicts(pointer, (draft) => void (draft.spec = 2), { owner: 'B' });
    expect((await state.create(thing({ id: 'free' }), { owner: '' })).metadata.owner).toBe('');
    await state.modify(thing({ id: 'free' }), (draft) => void (draft.spec = 3), { owner: '' });
    await state.teardownAndDestroy(pointer, { owner: 'B' });
  });
});

describe('validated', () => {
  const things = defineResource({ type: kind.type, spec: z.object({ size: z.number().min(1), name: z.string().default('none') }) });

  test('writes are checked, and the output of the schema is stored; reads and other types are not checked', async () => {
    await using store = memoryState({ environment });
    const state = wrapCore(validated(store, new DefinitionRegistry([things])), { environment });
    expect((await state.create(thing())).spec).toEqual({ size: 1, name: 'none' });
    const invalid = expect.objectContaining({ code: 'Invalid', issues: [expect.objectContaining({ path: 'spec.size' })] });
    await expect(state.create(thing({ id: 'b' }, { size: 0 }))).rejects.toEqual(invalid);
    await expect(state.updateWithConflicts(pointer, (draft) => void (draft.spec = { size: -1 }))).rejects.toEqual(invalid);
    await expect(state.modify(thing({ id: 'c' }, { size: 1 }), (draft) => void (draft.spec = { size: -1 }))).rejects.toEqual(invalid);
    expect((await state.updateWithConflicts(pointer, (draft) => void (draft.spec = { size: 5 }))).spec).toEqual({ size: 5, name: 'none' });
    await state.create({ metadata: { ...kind, type: 'Others.example.dev', id: 'x' }, spec: { size: 'many' } });
    await store.create(thing({ id: 'odd' }, { size: 'many' }));
    const odd = await state.get({ ...kind, id: 'odd' });
    expect(odd.spec, 'reads do not validate').toEqual({ size: 'many' });
    expect(() => things.from(odd)).toThrow(expect.objectContaining({ code: 'Invalid' }));
  });

  test('a resource that the definition made is stored as it is', async () => {
    await using store = memoryState({ environment });
    const made = things.create({ id: 'a', spec: { size: 1 } });
    const stored = await validated(store, new DefinitionRegistry([things])).create(made);
    expect(stored.spec).toBe(made.spec);
  });
});

describe('registerDefinitions', () => {
  const things = defineResource({ type: kind.type, defaultNamespace: 'shop', aliases: ['th'], spec: z.any() });

  test('writes types and namespaces into meta, and only what differs', async () => {
    await using store = memoryState({ environment });
    const state = wrapCore(store, { environment });
    await registerDefinitions(state, [things]);
    const types = await state.list(resourceDefinitionDefinition.kind());
    expect(types.items.map((item) => [item.metadata.id, item.spec.allAliases])).toEqual([
      ['things.example.dev', ['things.example.dev', 'things', 'thing', 'th']],
    ]);
    const namespaces = await state.list(namespaceDefinition.kind());
    expect(namespaces.items.map((item) => item.metadata.id)).toEqual(['meta', 'shop']);
    const { revision } = namespaces;
    await registerDefinitions(state, [things]);
    expect((await state.list(namespaceDefinition.kind())).revision).toBe(revision);
    await registerDefinitions(state, [defineResource({ type: kind.type, defaultNamespace: 'shop', aliases: ['other'], spec: z.any() })]);
    expect((await state.get(resourceDefinitionDefinition.pointer('things.example.dev'))).spec.aliases).toEqual(['other']);
  });
});

test('wrappers on wrappers keep capabilities, revisions and helpers', async () => {
  await using store = memoryState({ environment });
  const registry = new DefinitionRegistry([]);
  const state = wrapCore(
    owned(
      validated(
        filter(store, () => {}, { environment }),
        registry,
      ),
      'A',
    ),
    { environment },
  );
  expect(state.capabilities).toEqual(store.capabilities);
  await state.create(thing({ finalizers: ['f'] }));
  const done = state.teardownAndDestroy(pointer);
  await state.watchFor(pointer, { phases: ['tearingDown'] });
  await state.removeFinalizer(pointer, 'f');
  await done;
  expect((await state.list(kind)).items).toEqual([]);
});
