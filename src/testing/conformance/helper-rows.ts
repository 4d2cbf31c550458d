import type { ConformanceRow } from './tools.ts';

/** The helpers of State. */
export const helperRows: readonly ConformanceRow[] = [
  {
    name: 'updateWithConflicts: answers the new resource; nothing changed, nothing written; errors of the updater come back',
    async run({ state, thing, pointer, same, rejects }) {
      const made = await state.create(thing('a', { n: 1 }));
      const unchanged = await state.updateWithConflicts<{ n: number }>(pointer('a'), (draft) => void (draft.spec.n = 1));
      same(unchanged.metadata.version, made.metadata.version);
      const changed = await state.updateWithConflicts<{ n: number }>(pointer('a'), (draft) => void (draft.spec.n = 2));
      same(changed.spec, { n: 2 });
      const own = new Error('mine');
      const failed: unknown = await state.updateWithConflicts(pointer('a'), () => Promise.reject(own)).catch((error: unknown) => error);
      if (failed !== own) throw new Error('the error of the updater must come back as it is');
      await rejects(
        state.updateWithConflicts(pointer('none'), () => {}),
        'NotFound',
      );
      await state.teardown(pointer('a'));
      await rejects(
        state.updateWithConflicts(pointer('a'), () => {}),
        'Conflict',
        'phase',
      );
      await state.updateWithConflicts(pointer('a'), () => {}, { expectedPhase: 'any' });
    },
  },
  {
    name: 'finalizers: added and removed whatever the owner and phase',
    async run({ state, thing, pointer, same }) {
      await state.create(thing('a'), { owner: 'me' });
      await state.addFinalizer(pointer('a'), 'x', 'y');
      await state.addFinalizer(pointer('a'), 'x');
      await state.teardown(pointer('a'), { owner: 'me' });
      await state.addFinalizer(pointer('a'), 'z');
      await state.removeFinalizer(pointer('a'), 'x', 'none');
      const { finalizers, owner } = (await state.get(pointer('a'))).metadata;
      same({ finalizers, owner }, { finalizers: ['y', 'z'], owner: 'me' });
    },
  },
  {
    name: 'teardown: idempotent; says whether destroy is possible; checks the owner of what runs',
    async run({ state, thing, pointer, same, rejects }) {
      await state.create(thing('a', 1, { finalizers: ['f'] }), { owner: 'me' });
      await rejects(state.teardown(pointer('a')), 'Conflict', 'owner');
      same(await state.teardown(pointer('a'), { owner: 'me' }), false);
      same(await state.teardown(pointer('a')), false);
      await state.removeFinalizer(pointer('a'), 'f');
      same(await Promise.all([state.teardown(pointer('a')), state.teardown(pointer('a'))]), [true, true]);
      await rejects(state.teardown(pointer('none')), 'NotFound');
    },
  },
  {
    name: 'teardownAndDestroy: waits for finalizers; NotFound only when missing at first; gone meanwhile is success',
    async run({ state, thing, pointer, rejects }) {
      await rejects(state.teardownAndDestroy(pointer('a')), 'NotFound');
      await state.create(thing('a', 1, { finalizers: ['f'] }));
      const first = state.teardownAndDestroy(pointer('a'));
      const second = state.teardownAndDestroy(pointer('a'));
      await state.watchFor(pointer('a'), { phases: ['tearingDown'] });
      await state.removeFinalizer(pointer('a'), 'f');
      await Promise.all([first, second]);
      await rejects(state.get(pointer('a')), 'NotFound');
    },
  },
  {
    name: 'watchFor: all parts must hold; a first destroyed means not yet',
    async run({ state, thing, pointer, same }) {
      const waiting = state.watchFor<{ n: number }>(pointer('a'), { phases: ['running'], condition: ({ spec }) => spec.n > 1 });
      await state.create(thing('a', { n: 1 }));
      await state.updateWithConflicts<{ n: number }>(pointer('a'), (draft) => void (draft.spec.n = 2));
      same((await waiting).spec, { n: 2 });
      const gone = state.watchFor(pointer('a'), { eventTypes: ['destroyed'] });
      await state.destroy(pointer('a'));
      await gone;
    },
  },
  {
    name: 'watchFor: ends with Gone when the end makes the wait impossible, and survives a re-creation otherwise',
    async run({ state, thing, pointer, rejects, same, environment }) {
      await state.create(thing('a', 1, { finalizers: ['f'] }));
      const empty = rejects(state.watchFor(pointer('a'), { finalizersEmpty: true, phases: ['tearingDown'] }), 'Gone');
      const value = state.watchFor(pointer('a'), { condition: ({ spec }) => spec === 2 });
      // Both watches must have seen the first incarnation.
      await environment.breathe();
      await state.updateWithConflicts(pointer('a'), (draft) => void (draft.spec = 1.5));
      await environment.sleep(20);
      await state.removeFinalizer(pointer('a'), 'f');
      await state.destroy(pointer('a'));
      await state.create(thing('a', 2));
      await empty;
      same((await value).spec, 2);
    },
  },
  {
    name: 'abortSignalOnTeardown: at once when missing, else when this incarnation ends',
    async run({ state, thing, pointer, environment }) {
      const aborter = new AbortController();
      const until = async (signal: AbortSignal): Promise<void> => {
        while (!signal.aborted) await environment.sleep(5);
      };
      await until(await state.abortSignalOnTeardown(pointer('a'), { signal: aborter.signal }));
      await state.create(thing('a'));
      const signal = await state.abortSignalOnTeardown(pointer('a'), { signal: aborter.signal });
      await state.updateWithConflicts(pointer('a'), (draft) => void (draft.spec = 2));
      if (signal.aborted) throw new Error('an update must not abort');
      await state.teardown(pointer('a'));
      await until(signal);
      const other = await state.abortSignalOnTeardown(pointer('a'), { signal: aborter.signal });
      aborter.abort();
      await until(other);
    },
  },
  {
    name: 'modify: creates or updates, and a lost race is tried again',
    async run({ state, thing, pointer, same }) {
      const add = () =>
        state.modifyWithResult<{ n: number }>(thing('a', { n: 0 }) as never, (draft) => void (draft.spec.n += 1), { owner: 'me' });
      await Promise.all([add(), add(), add(), add()]);
      const { spec, metadata } = await state.get(pointer('a'));
      same({ spec, owner: metadata.owner }, { spec: { n: 4 }, owner: 'me' });
    },
  },
  {
    name: 'follow: contents, then changes',
    async run({ state, thing, read, same }) {
      await state.create(thing('a'));
      await using watch = await read(state.follow({ namespace: 'default', type: 'Things.conformance.dev' }, { bootstrapContents: true }));
      same(
        (await watch.take(2)).map((event) => event.type),
        ['created', 'bootstrapped'],
      );
      await state.create(thing('b'));
      let event = await watch.next();
      while (event.type === 'noop') event = await watch.next();
      same(event.type, 'created');
    },
  },
];
