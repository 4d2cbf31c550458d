import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import type { FinalizerNote } from '../../state/index.ts';
import { owned, wrapCore } from '../../state/index.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

async function notesOf(world: World, id: string): Promise<readonly FinalizerNote[]> {
  assert.ok(world.core.finalizerNotes !== undefined);
  return world.core.finalizerNotes(world.pointer(id));
}

/** Waits until the clock shows a later time than that of a write. */
async function later({ environment }: World, { metadata }: Resource): Promise<void> {
  while (environment.timestamp() <= metadata.updated) await environment.breathe();
}

export const finalizerNoteCases: readonly Case[] = [
  {
    name: 'finalizerNotes: since when each finalizer is there and who put it there, whatever is written after it',
    async run(world) {
      if (world.core.finalizerNotes === undefined) return;
      const made = await world.create('a', 1, { finalizers: ['f'] }, { actor: 'maker' });
      const first = { finalizer: 'f', since: made.metadata.updated, actor: 'maker' };
      assert.deepEqual(await notesOf(world, 'a'), [first]);
      await later(world, made);
      const baker = wrapCore(owned(world.core, 'baker'), { environment: world.environment });
      await baker.addFinalizer(world.pointer('a'), 'g');
      const second = { finalizer: 'g', since: (await world.core.get(world.pointer('a'))).metadata.updated, actor: 'baker' };
      assert.notEqual(second.since, first.since);
      assert.deepEqual(await notesOf(world, 'a'), [first, second], 'the owner of a view is noted for what it adds');
      await later(world, await world.resize('a', 2));
      await world.state.teardown(world.pointer('a'));
      assert.deepEqual(await notesOf(world, 'a'), [first, second], 'other writes change nothing about it');
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      assert.deepEqual(await notesOf(world, 'a'), [second]);
      const { metadata } = await world.core.get(world.pointer('a'));
      await later(world, await world.core.get(world.pointer('a')));
      await world.state.addFinalizer(world.pointer('a'), 'f');
      const again = await notesOf(world, 'a');
      assert.deepEqual(
        again.map(({ finalizer, actor }) => [finalizer, actor]),
        [
          ['g', 'baker'],
          ['f', ''],
        ],
      );
      assert.ok((again[1]?.since ?? '') > metadata.updated, 'one that went and came back is new');
      const text = JSON.stringify(await world.core.get(world.pointer('a')));
      assert.ok(!text.includes('baker'), 'nothing of it is to be seen in the resource');
    },
  },
  {
    name: 'finalizerNotes: none without finalizers, NotFound without a resource, new ones for another incarnation',
    async run(world) {
      if (world.core.finalizerNotes === undefined) return;
      await expectRejects(world.core.finalizerNotes(world.pointer('a')), { code: 'NotFound', id: 'a' });
      const made = await world.create('a', 1, { finalizers: ['f'] }, { actor: 'first' });
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      assert.deepEqual(await notesOf(world, 'a'), []);
      await world.core.destroy(world.pointer('a'));
      await expectRejects(world.core.finalizerNotes(world.pointer('a')), { code: 'NotFound', id: 'a' });
      await later(world, made);
      const again = await world.create('a', 1, { finalizers: ['f'] }, { actor: 'second' });
      assert.deepEqual(await notesOf(world, 'a'), [{ finalizer: 'f', since: again.metadata.updated, actor: 'second' }]);
    },
  },
  {
    name: 'finalizerNotes: they outlive a restart, and the history of what was written',
    needs: ['durableBookmarks'],
    historySize: 8,
    async run(world) {
      if (world.core.finalizerNotes === undefined) return;
      const made = await world.create('a', 1, { finalizers: ['f', 'g'] }, { actor: 'maker \u{1F642}' });
      await world.create('b', 1);
      for (let size = 0; size < 40; size++) await world.resize(size % 2 === 0 ? 'a' : 'b', size);
      const notes = ['f', 'g'].map((finalizer) => ({ finalizer, since: made.metadata.updated, actor: 'maker \u{1F642}' }));
      assert.deepEqual(await notesOf(world, 'a'), notes);
      await world.reopen();
      assert.deepEqual(await notesOf(world, 'a'), notes);
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      await world.reopen();
      assert.deepEqual(await notesOf(world, 'a'), notes.slice(1));
      assert.deepEqual(await notesOf(world, 'b'), []);
    },
  },
];
