import { strict as assert } from 'node:assert';
import { isNotFoundError } from '../../resource/index.ts';
import { brief } from './reader.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

async function stored(world: World, id: string) {
  return world.core.get(world.pointer(id));
}

export const editCases: readonly Case[] = [
  {
    name: 'updateWithConflicts: answers the new resource, and writes nothing when nothing changed',
    async run(world) {
      const made = await world.create('a', 1, { labels: { app: 'web' }, finalizers: ['f'] });
      const next = await world.state.updateWithConflicts(world.pointer('a'), (draft) => {
        draft.spec = { size: 2 };
        draft.labels.set('tier', 'front');
        draft.annotations.set('note', 'x');
        draft.finalizers.add('g');
      });
      assert.notEqual(next.metadata.version, made.metadata.version);
      assert.deepEqual(next, await stored(world, 'a'), 'the answer is the new resource');
      assert.deepEqual(
        [next.spec, { ...next.metadata.labels }, [...next.metadata.finalizers]],
        [{ size: 2 }, { app: 'web', tier: 'front' }, ['f', 'g']],
      );
      const same = await world.state.updateWithConflicts(world.pointer('a'), (draft) => {
        draft.spec = { size: 2 };
        draft.labels.set('app', 'web');
        draft.finalizers.add('f');
      });
      assert.equal(same.metadata.version, next.metadata.version, 'nothing changed, so nothing is written');
    },
  },
  {
    name: 'updateWithConflicts: retries on a version conflict only, with what is there then',
    async run(world) {
      await world.create('a', 1);
      let calls = 0;
      const next = await world.state.updateWithConflicts<{ size: number }>(world.pointer('a'), async (draft) => {
        calls++;
        if (calls < 4) await world.resize('a', calls * 10);
        draft.spec = { size: draft.spec.size + 1 };
      });
      assert.equal(calls, 4);
      assert.deepEqual(next.spec, { size: 31 });
      await expectRejects(
        world.state.updateWithConflicts(world.pointer('missing'), () => {}),
        { code: 'NotFound', id: 'missing' },
      );
      await world.create('owned', 1, {}, { owner: 'A' });
      const change = (draft: { spec: unknown }): void => {
        draft.spec = { size: 5 };
      };
      await expectRejects(world.state.updateWithConflicts(world.pointer('owned'), change), {
        code: 'Conflict',
        reason: 'owner',
        id: 'owned',
      });
      await world.state.updateWithConflicts(world.pointer('owned'), change, { owner: 'A' });
    },
  },
  {
    name: 'updateWithConflicts: many at once all count',
    async run(world) {
      await world.create('a', 0);
      const add = () => world.state.updateWithConflicts<{ size: number }>(world.pointer('a'), (draft) => void draft.spec.size++);
      await world.within(Promise.all(Array.from({ length: 20 }, add)), 'twenty updates');
      assert.deepEqual((await stored(world, 'a')).spec, { size: 20 });
    },
  },
  {
    name: 'updateWithConflicts: the expected phase is checked before the updater and even for a no-op',
    async run(world) {
      await world.create('a', 1, { phase: 'tearingDown' });
      let called = false;
      const noop = (): void => {
        called = true;
      };
      await expectRejects(world.state.updateWithConflicts(world.pointer('a'), noop), { code: 'Conflict', reason: 'phase', id: 'a' });
      assert.equal(called, false);
      await world.state.updateWithConflicts(world.pointer('a'), noop, { expectedPhase: 'tearingDown' });
      await world.state.updateWithConflicts(world.pointer('a'), noop, { expectedPhase: 'any' });
    },
  },
  {
    name: 'updateWithConflicts: an error of the updater comes back as it is, and nothing is written',
    async run(world) {
      const made = await world.create('a', 1);
      const reason = new Error('mine');
      const failing = world.state.updateWithConflicts(world.pointer('a'), (draft) => {
        draft.spec = { size: 2 };
        throw reason;
      });
      await assert.rejects(failing, (error) => error === reason);
      await expectRejects(
        world.state.updateWithConflicts(world.pointer('a'), (draft) => void (draft.spec = new Date(0))),
        { code: 'Invalid', path: 'spec', id: 'a' },
      );
      assert.deepEqual(await stored(world, 'a'), made);
    },
  },
  {
    name: 'updateWithConflicts: an update may set tearingDown',
    async run(world) {
      await world.create('a');
      const next = await world.state.updateWithConflicts(world.pointer('a'), (draft) => void (draft.phase = 'tearingDown'));
      assert.equal(next.metadata.phase, 'tearingDown');
    },
  },
  {
    name: 'finalizers: added and removed whatever the owner and phase, also by many at once',
    async run(world) {
      await world.create('a', 1, {}, { owner: 'A' });
      await world.state.addFinalizer(world.pointer('a'), 'x', 'y');
      await world.state.teardown(world.pointer('a'), { owner: 'A' });
      await Promise.all(Array.from({ length: 10 }, (_, index) => world.state.addFinalizer(world.pointer('a'), `f${index}`)));
      assert.equal((await stored(world, 'a')).metadata.finalizers.length, 12);
      const { version } = (await stored(world, 'a')).metadata;
      await world.state.addFinalizer(world.pointer('a'), 'x');
      await world.state.removeFinalizer(world.pointer('a'), 'never there');
      assert.equal((await stored(world, 'a')).metadata.version, version, 'what changes nothing writes nothing');
      await Promise.all(Array.from({ length: 10 }, (_, index) => world.state.removeFinalizer(world.pointer('a'), `f${index}`)));
      await world.state.removeFinalizer(world.pointer('a'), 'x', 'y');
      const { metadata } = await stored(world, 'a');
      assert.deepEqual([[...metadata.finalizers], metadata.owner, metadata.phase], [[], 'A', 'tearingDown']);
      await expectRejects(world.state.addFinalizer(world.pointer('missing'), 'x'), { code: 'NotFound', id: 'missing' });
      await expectRejects(world.state.removeFinalizer(world.pointer('missing'), 'x'), { code: 'NotFound', id: 'missing' });
    },
  },
  {
    name: 'modify: creates from the empty resource or updates what is there',
    async run(world) {
      const created = await world.state.modifyWithResult<{ size: number }>(
        world.thing('a', { size: 0 }),
        (draft) => void draft.spec.size++,
      );
      assert.deepEqual([created.spec, created.metadata.owner], [{ size: 1 }, '']);
      const updated = await world.state.modifyWithResult<{ size: number }>(
        world.thing('a', { size: 100 }),
        (draft) => void draft.spec.size++,
      );
      assert.deepEqual(updated.spec, { size: 2 });
      await world.state.modify(world.thing('a', { size: 100 }), () => {});
      assert.equal((await stored(world, 'a')).metadata.version, updated.metadata.version, 'nothing changed, so nothing is written');
      await world.state.modify(world.thing('b', { size: 7 }), () => {});
      assert.deepEqual((await stored(world, 'b')).spec, { size: 7 }, 'a missing one is created even if the updater changes nothing');
    },
  },
  {
    name: 'modify: with an owner, a phase, and an error of the updater',
    async run(world) {
      await world.state.modify(world.thing('a'), () => {}, { owner: 'A' });
      assert.equal((await stored(world, 'a')).metadata.owner, 'A');
      const change = (draft: { spec: unknown }): void => {
        draft.spec = { size: 2 };
      };
      await expectRejects(world.state.modify(world.thing('a'), change), { code: 'Conflict', reason: 'owner', id: 'a' });
      await world.state.modify(world.thing('a'), change, { owner: 'A' });
      await world.state.teardown(world.pointer('a'), { owner: 'A' });
      await expectRejects(world.state.modify(world.thing('a'), change, { owner: 'A' }), { code: 'Conflict', reason: 'phase', id: 'a' });
      await world.state.modify(world.thing('a'), (draft) => void (draft.spec = { size: 3 }), { owner: 'A', expectedPhase: 'any' });
      const reason = new Error('mine');
      for (const id of ['a', 'new']) {
        const failing = world.state.modify(world.thing(id), () => Promise.reject(reason), { owner: 'A', expectedPhase: 'any' });
        await assert.rejects(failing, (error) => error === reason);
      }
      assert.ok(await stored(world, 'new').then(() => false, isNotFoundError));
    },
  },
  {
    name: 'modify: a lost create race is retried as an update, so that many at once all count',
    async run(world) {
      const add = () => world.state.modify<{ size: number }>(world.thing('a', { size: 0 }), (draft) => void draft.spec.size++);
      await world.within(Promise.all(Array.from({ length: 20 }, add)), 'twenty modifies');
      assert.deepEqual((await stored(world, 'a')).spec, { size: 20 });
    },
  },
  {
    name: 'follow: a watch of a kind that begins like one',
    async run(world) {
      await world.create('a');
      await using watch = await world.state.follow(world.kind, { bootstrapContents: true });
      const iterator = watch[Symbol.asyncIterator]();
      const events = [];
      await world.create('b');
      while (events.length < 3) {
        const { value } = await world.within(iterator.next(), 'an event');
        if (value !== undefined && value.type !== 'noop') events.push(value);
      }
      assert.deepEqual(brief(events), ['created a', 'bootstrapped', 'created b']);
    },
  },
];
