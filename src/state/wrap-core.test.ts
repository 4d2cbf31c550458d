import { afterEach, describe, expect, test } from 'vitest';
import { memoryState } from '../backends/memory/index.ts';
import { DefinitionRegistry, SteadystateError, tombstone } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { CoreState, State, UpdateOptions } from './index.ts';
import * as errors from './index.ts';
import { matchesEvent, validated, wrapCore } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const kind = { namespace: 'default', type: 'Things.example.dev' };
const pointer = { ...kind, id: 'a' };
const thing = (spec: unknown = { size: 1 }, metadata: object = {}) => ({ metadata: { ...pointer, ...metadata }, spec });

/** A state whose calls are preceded by what a rival does, once each, in the order given. */
function raced(
  store: CoreState,
  rivals: {
    readonly beforeUpdate?: (() => Promise<unknown>)[];
    readonly beforeCreate?: (() => Promise<unknown>)[];
    readonly beforeDestroy?: (() => Promise<unknown>)[];
  },
): State {
  const { beforeUpdate = [], beforeCreate = [], beforeDestroy = [] } = rivals;
  // A wrapper that changes nothing, to be changed here.
  const through = validated(store, new DefinitionRegistry([]));
  return wrapCore(
    {
      ...through,
      capabilities: store.capabilities,
      async update(resource, call) {
        await beforeUpdate.shift()?.();
        return store.update(resource, call);
      },
      async create(resource, call) {
        await beforeCreate.shift()?.();
        return store.create(resource, call);
      },
      async destroy(target, call) {
        await beforeDestroy.shift()?.();
        return store.destroy(target, call);
      },
    },
    { environment },
  );
}

const remake =
  (store: CoreState, owner: string, finalizers: readonly string[] = []) =>
  async (): Promise<void> => {
    const { metadata } = await store.get(pointer);
    await store.destroy(pointer, { owner: metadata.owner });
    await store.create(thing({ size: 100 }, { finalizers }), { owner });
  };

describe('lost races', () => {
  test('a finalizer is added whatever the owner, also when a re-creation changed that meanwhile', async () => {
    await using store = memoryState({ environment });
    await store.create(thing(), { owner: 'A' });
    const state = raced(store, { beforeUpdate: [remake(store, 'B')] });
    await state.addFinalizer(pointer, 'f');
    expect((await store.get(pointer)).metadata).toMatchObject({ owner: 'B', finalizers: ['f'] });
  });

  test('an update does not follow another owner', async () => {
    await using store = memoryState({ environment });
    await store.create(thing(), { owner: 'A' });
    const state = raced(store, { beforeUpdate: [remake(store, 'B')] });
    await expect(state.updateWithConflicts(pointer, (draft) => void (draft.spec = 2), { owner: 'A' })).rejects.toMatchObject({
      reason: 'owner',
    });
  });

  test('teardownAndDestroy leaves another incarnation alone, whenever it came', async () => {
    await using store = memoryState({ environment });
    for (const rivals of [{ beforeUpdate: [remake(store, '')] }, { beforeDestroy: [remake(store, '')] }]) {
      await store.create(thing());
      await raced(store, rivals).teardownAndDestroy(pointer);
      const left = await store.get(pointer);
      expect([left.metadata.phase, left.spec]).toEqual(['running', { size: 100 }]);
      await store.destroy(pointer);
    }
  });

  test('teardownAndDestroy waits on when a finalizer comes before its last step', async () => {
    await using store = memoryState({ environment });
    await store.create(thing());
    const plain = wrapCore(store, { environment });
    const state = raced(store, { beforeDestroy: [() => plain.addFinalizer(pointer, 'late')] });
    let done = false;
    const destroyed = state.teardownAndDestroy(pointer).then(() => {
      done = true;
    });
    await environment.settle();
    expect([done, (await store.get(pointer)).metadata.finalizers]).toEqual([false, ['late']]);
    await plain.removeFinalizer(pointer, 'late');
    await destroyed;
    await expect(store.get(pointer)).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('teardownAndDestroy is done when somebody else destroyed it before its last step', async () => {
    await using store = memoryState({ environment });
    await store.create(thing());
    await raced(store, { beforeDestroy: [() => store.destroy(pointer)] }).teardownAndDestroy(pointer);
    await store.create(thing());
    await raced(store, { beforeUpdate: [() => store.destroy(pointer)] }).teardownAndDestroy(pointer);
  });

  test('modify goes on as an update after a lost create, and as a create after a destroy', async () => {
    await using store = memoryState({ environment });
    const add = (draft: { spec: unknown }): void => {
      draft.spec = { size: (draft.spec as { size: number }).size + 1 };
    };
    const lost = raced(store, { beforeCreate: [() => store.create(thing({ size: 10 }))] });
    expect((await lost.modifyWithResult(thing({ size: 0 }), add)).spec).toEqual({ size: 11 });
    const gone = raced(store, { beforeUpdate: [() => store.destroy(pointer)] });
    expect((await gone.modifyWithResult(thing({ size: 0 }), add)).spec).toEqual({ size: 1 });
  });

  test("an updater's own conflict is no lost race", async () => {
    await using store = memoryState({ environment });
    await store.create(thing());
    const state = wrapCore(store, { environment });
    const mine = new SteadystateError('Conflict', 'mine', { reason: 'version' });
    let calls = 0;
    const failing = (): never => {
      calls++;
      throw mine;
    };
    await expect(state.updateWithConflicts(pointer, failing)).rejects.toBe(mine);
    await expect(state.modify(thing(), failing)).rejects.toBe(mine);
    expect(calls).toBe(2);
  });

  test('a call that loses for ever lets timers and an abort have their turn', async () => {
    await using store = memoryState({ environment });
    await store.create(thing());
    const conflict = (_resource: unknown, _call?: UpdateOptions): Promise<never> =>
      Promise.reject(new SteadystateError('Conflict', 'always', { reason: 'version', pointer }));
    const through = validated(store, new DefinitionRegistry([]));
    const state = wrapCore({ ...through, capabilities: store.capabilities, update: conflict }, { environment });
    const controller = new AbortController();
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 5);
    const { signal } = controller;
    const change = (draft: { spec: unknown }): void => {
      draft.spec = { size: 2 };
    };
    const calls = [
      state.updateWithConflicts(pointer, change, { signal }),
      state.teardown(pointer, { signal }),
      state.modify(thing(), change, { signal }),
    ];
    expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: 'rejected', reason })));
  });
});

describe('native teardown', () => {
  test('is used where a backend has it', async () => {
    await using store = memoryState({ environment });
    const called: string[] = [];
    const through = validated(store, new DefinitionRegistry([]));
    const state = wrapCore(
      {
        ...through,
        capabilities: store.capabilities,
        teardown: async () => called.push('teardown') > 0,
        teardownAndDestroy: async () => void called.push('teardownAndDestroy'),
      },
      { environment },
    );
    expect(await state.teardown(pointer)).toBe(true);
    await state.teardownAndDestroy(pointer);
    expect(called).toEqual(['teardown', 'teardownAndDestroy']);
  });
});

describe('when the store is closed', () => {
  test('a signal on teardown without one that ends it is refused, and leaves nothing behind', async () => {
    const store = memoryState({ environment });
    const state = wrapCore(store, { environment });
    for (const options of [undefined, {}, { signal: new AbortController() }] as unknown as { signal: AbortSignal }[])
      await expect(state.abortSignalOnTeardown(pointer, options)).rejects.toMatchObject({ code: 'Invalid', pointer });
    await store[Symbol.asyncDispose]();
    expect(environment.open.counts()).toEqual({});
  });

  test('what waits ends, with Closed', async () => {
    const store = memoryState({ environment });
    const state = wrapCore(store, { environment });
    await store.create(thing({ size: 1 }, { finalizers: ['f'] }));
    const waiting = state.watchFor(pointer, { condition: () => false });
    const destroying = state.teardownAndDestroy(pointer);
    const signal = await state.abortSignalOnTeardown({ ...pointer, id: 'a' }, { signal: new AbortController().signal });
    for (const call of [waiting, destroying]) call.catch(() => {});
    await environment.settle();
    await store[Symbol.asyncDispose]();
    await expect(waiting).rejects.toMatchObject({ code: 'Closed' });
    await expect(destroying).rejects.toMatchObject({ code: 'Closed' });
    await environment.settle();
    expect(signal.aborted).toBe(true);
    await expect(store.get(pointer)).rejects.toMatchObject({ code: 'Closed' });
    await expect(store.create(thing())).rejects.toMatchObject({ code: 'Closed' });
  });
});

describe('matchesEvent', () => {
  test('what is asked of resources is never true for tombstones, markers and errors', async () => {
    const dead = { type: 'destroyed' as const, resource: tombstone(pointer) };
    const markers = [
      dead,
      { type: 'noop' as const },
      { type: 'bootstrapped' as const },
      { type: 'errored' as const, error: new SteadystateError('Closed', 'x') },
    ];
    for (const event of markers) {
      for (const condition of [{ phases: ['running' as const] }, { finalizersEmpty: true }, { condition: () => true }]) {
        expect(await matchesEvent(condition, event)).toBe(false);
        expect(await matchesEvent({ ...condition, eventTypes: ['destroyed', 'noop', 'bootstrapped', 'errored'] }, event)).toBe(false);
      }
    }
    expect(await matchesEvent({ eventTypes: ['destroyed'] }, dead)).toBe(true);
    expect(await matchesEvent({ eventTypes: ['noop'] }, { type: 'noop' })).toBe(true);
    expect(await matchesEvent({}, dead)).toBe(false);
  });
});

describe('errors', () => {
  test('name the resource, what was expected and what was found, on one line', () => {
    const messages = [
      errors.notFound(pointer),
      errors.alreadyExists(pointer),
      errors.versionConflict(pointer, '1', '2'),
      errors.incarnationConflict(pointer, '1', '2'),
      errors.ownerConflict(pointer, 'A\n', ''),
      errors.ownerConflict(pointer, '', 'B\u001b'),
      errors.phaseConflict(pointer, 'running', 'tearingDown'),
      errors.pendingFinalizers(pointer, ['a', 'b']),
      errors.ambiguous(pointer, 'no answer'),
      errors.gone(pointer, 'went'),
    ];
    for (const { message, pointer: about } of messages) {
      expect(message).toContain('Things.example.dev/default/a');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
      expect(message).not.toMatch(/[\u0000-\u001f]/);
      expect(about).toEqual(pointer);
    }
    expect(messages.map(({ message }) => message)).toMatchInlineSnapshot(`
      [
        "Things.example.dev/default/a does not exist",
        "Things.example.dev/default/a already exists; update it, or choose another id",
        "Things.example.dev/default/a was changed meanwhile: expected version 1, found 2; read it again",
        "Things.example.dev/default/a is another incarnation: expected uid 1, found 2",
        "Things.example.dev/default/a may only be changed by its owner: nobody owns it, the call came from A\\n",
        "Things.example.dev/default/a may only be changed by its owner: it is owned by B\\x1b, the call came from nobody",
        "Things.example.dev/default/a is in phase tearingDown, expected running",
        "Things.example.dev/default/a cannot be destroyed: finalizers are pending: a, b",
        "Things.example.dev/default/a: the outcome of the write is unknown: no answer; read before you write again",
        "Things.example.dev/default/a went",
      ]
    `);
  });
});
