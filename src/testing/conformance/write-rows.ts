import type { ConformanceRow } from './tools.ts';
import { kind } from './tools.ts';

/** Update and destroy. */
export const writeRows: readonly ConformanceRow[] = [
  {
    name: 'update: needs the version that is stored; currentVersion counts over the one given',
    async run({ core, thing, pointer, rejects, same }) {
      const first = await core.create(thing('a', 1));
      const second = await core.update({ metadata: first.metadata, spec: 2 });
      if (second.metadata.version === first.metadata.version) throw new Error('a write needs a new version');
      await rejects(core.update({ metadata: first.metadata, spec: 3 }), 'Conflict', 'version');
      const third = await core.update({ metadata: first.metadata, spec: 3 }, { currentVersion: second.metadata.version });
      same((await core.get(pointer('a'))).spec, 3);
      same(third.metadata.created, first.metadata.created);
      same(third.metadata.uid, first.metadata.uid);
    },
  },
  {
    name: 'update: NotFound, owner, version and phase are checked in this order',
    async run({ core, thing, rejects }) {
      await rejects(core.update(thing('none', 1, { version: '1' }), { owner: 'x' }), 'NotFound');
      const made = await core.create(thing('a', 1, { phase: 'tearingDown' }), { owner: 'me' });
      const stale = { metadata: { ...made.metadata, version: '999999' }, spec: 2 };
      await rejects(core.update(stale, { owner: 'you' }), 'Conflict', 'owner');
      await rejects(core.update(stale), 'Conflict', 'owner');
      await rejects(core.update(stale, { owner: 'me' }), 'Conflict', 'version');
      await rejects(core.update({ metadata: made.metadata, spec: 2 }, { owner: 'me' }), 'Conflict', 'phase');
      await core.update({ metadata: made.metadata, spec: 2 }, { owner: 'me', expectedPhase: 'any' });
    },
  },
  {
    name: 'update: the owner cannot be changed, and an unowned resource has no owner to be',
    async run({ core, thing, rejects, same }) {
      const made = await core.create(thing('a', 1));
      await rejects(core.update({ metadata: made.metadata, spec: 2 }, { owner: 'me' }), 'Conflict', 'owner');
      await rejects(core.update({ metadata: { ...made.metadata, owner: 'me' }, spec: 2 }), 'Conflict', 'owner');
      const owned = await core.create(thing('b', 1), { owner: 'me' });
      const updated = await core.update({ metadata: { ...owned.metadata, owner: '' }, spec: 2 }, { owner: 'me' });
      same(updated.metadata.owner, 'me');
    },
  },
  {
    name: 'update: running → tearingDown is accepted, the reverse is a phase conflict',
    async run({ core, thing, rejects }) {
      const made = await core.create(thing('a', 1));
      const down = await core.update({ metadata: { ...made.metadata, phase: 'tearingDown' }, spec: 1 });
      await rejects(
        core.update({ metadata: { ...down.metadata, phase: 'running' }, spec: 1 }, { expectedPhase: 'any' }),
        'Conflict',
        'phase',
      );
    },
  },
  {
    name: 'update: without a change it still writes a new version and tells it',
    async run({ core, thing, pointer, read, same }) {
      const made = await core.create(thing('a', 1));
      await using watch = await read(core.watch(pointer('a')));
      await watch.next();
      const again = await core.update({ metadata: made.metadata, spec: 1 });
      if (again.metadata.version === made.metadata.version) throw new Error('a write needs a new version');
      same((await watch.next()).type, 'updated');
    },
  },
  {
    name: 'update: finalizers, labels and annotations are replaced by what is given',
    async run({ core, thing, pointer, same }) {
      const made = await core.create(thing('a', 1, { labels: { a: '1' }, finalizers: ['x'] }));
      await core.update({ metadata: { ...made.metadata, labels: { b: '2' }, finalizers: ['y', 'y'] }, spec: 1 });
      const { labels, finalizers } = (await core.get(pointer('a'))).metadata;
      same({ labels, finalizers }, { labels: { b: '2' }, finalizers: ['y'] });
    },
  },
  {
    name: 'K2: of racing updates exactly one wins',
    async run({ core, thing, same }) {
      const made = await core.create(thing('a', 0));
      const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, spec) => core.update({ metadata: made.metadata, spec })));
      same(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1, 'winners');
    },
  },
  {
    name: 'destroy: NotFound, owner and finalizers are checked in this order; a running resource may go',
    async run({ core, thing, pointer, rejects }) {
      await rejects(core.destroy(pointer('a'), { owner: 'x' }), 'NotFound');
      await core.create(thing('a', 1, { finalizers: ['f'] }), { owner: 'me' });
      await rejects(core.destroy(pointer('a')), 'Conflict', 'owner');
      await rejects(core.destroy(pointer('a'), { owner: 'me' }), 'Conflict', 'pendingFinalizers');
      const { metadata } = await core.get(pointer('a'));
      await core.update({ metadata: { ...metadata, finalizers: [] }, spec: 1 }, { owner: 'me' });
      await core.destroy(pointer('a'), { owner: 'me' });
      await rejects(core.get(pointer('a')), 'NotFound');
    },
  },
  {
    name: 'destroy: only the incarnation that is named; a version of an earlier one is never valid again',
    needs: 'incarnations',
    async run({ core, thing, pointer, rejects }) {
      const first = await core.create(thing('a', 1));
      await core.destroy(pointer('a'));
      const second = await core.create(thing('a', 1));
      if (second.metadata.uid === first.metadata.uid || second.metadata.version === first.metadata.version)
        throw new Error('uid and version are never used again');
      await rejects(core.destroy(pointer('a'), { uid: first.metadata.uid }), 'Conflict', 'incarnation');
      await rejects(core.update({ metadata: first.metadata, spec: 2 }), 'Conflict', 'version');
      await core.destroy(pointer('a'), { uid: second.metadata.uid });
    },
  },
  {
    name: 'K1: increments under conflict are all there',
    async run({ state, thing, pointer, same }) {
      await state.create(thing('a', { count: 0 }));
      const increment = async (): Promise<void> => {
        for (let round = 0; round < 5; round++)
          await state.updateWithConflicts<{ count: number }>(pointer('a'), (draft) => void (draft.spec = { count: draft.spec.count + 1 }));
      };
      await Promise.all(Array.from({ length: 8 }, increment));
      same((await state.get(pointer('a'))).spec, { count: 40 });
    },
  },
  {
    name: 'K5: what was written is read',
    async run({ core, thing, pointer, same }) {
      let { metadata } = await core.create(thing('a', 0));
      for (let spec = 1; spec < 20; spec++) {
        ({ metadata } = await core.update({ metadata, spec }));
        same((await core.get(pointer('a'))).spec, spec);
        same((await core.list(kind)).items[0]?.spec, spec);
      }
    },
  },
];
