import { strict as assert } from 'node:assert';
import { isUnsupportedError, sameValue } from '../../resource/index.ts';
import { brief } from './reader.ts';
import type { Case } from './world.ts';
import { expectRejects } from './world.ts';

export const claimCases: readonly Case[] = [
  {
    name: 'capabilities: the store says what the suite was told',
    async run(world) {
      assert.deepEqual({ ...world.core.capabilities }, { ...world.capabilities });
      assert.deepEqual({ ...world.state.capabilities }, { ...world.capabilities }, 'a wrapper passes them through');
    },
  },
  {
    name: 'capabilities: what is not claimed is refused as Unsupported, not done half',
    async run(world) {
      // Without an order over kinds there may be one stream per kind, but no place in all of them.
      if (!world.capabilities.multiKindWatch) {
        assert.ok(await world.core.watchKinds([world.kind, world.otherKind], { tailEvents: 1 }).then(() => false, isUnsupportedError));
      }
      if (!world.capabilities.tailEvents) {
        assert.ok(await world.core.watchKind(world.kind, { tailEvents: 1 }).then(() => false, isUnsupportedError));
        assert.ok(await world.core.watch(world.pointer('a'), { tailEvents: 1 }).then(() => false, isUnsupportedError));
      }
      if (!world.capabilities.globalRevision) assert.equal((await world.core.list(world.kind)).revision, undefined);
    },
  },
  {
    name: 'waitForRevision: K5, resolves once reads see a revision, at once for one that they see',
    needs: ['globalRevision'],
    async run(world) {
      if (world.core.waitForRevision === undefined) return;
      const made = await world.create('a');
      const revision = Number(made.metadata.version);
      await world.within(world.core.waitForRevision(revision), 'the revision of a write');
      await world.within(world.core.waitForRevision(revision - 1), 'an earlier revision');
      assert.equal((await world.core.get(world.pointer('a'))).metadata.version, made.metadata.version);
      const later = world.core.waitForRevision(revision + 1);
      await world.create('b');
      await world.within(later, 'the next revision');
      const controller = new AbortController();
      const never = world.core.waitForRevision(revision + 1000, { signal: controller.signal });
      const reason = new Error('enough');
      controller.abort(reason);
      await assert.rejects(world.within(never, 'the abort'), (error) => error === reason);
    },
  },
  {
    name: 'restart: everything is as it was, and what was known stays known',
    needs: ['durableBookmarks'],
    async run(world) {
      await world.create('a', 1, { labels: { app: 'web' }, annotations: { note: 'x' }, finalizers: ['f', 'g'] }, { owner: 'A' });
      await world.state.teardown(world.pointer('a'), { owner: 'A' });
      await world.create('b', 2);
      await world.core.destroy(world.pointer('b'));
      await world.create('c', 3);
      const before = await world.core.list(world.kind);
      const stale = await world.core.get(world.pointer('c'));
      await world.core.destroy(world.pointer('c'));
      await world.create('c', 4);
      const last = await world.core.list(world.kind);
      await world.reopen();
      const after = await world.core.list(world.kind);
      assert.ok(sameValue(after.items, last.items), 'a restart must change nothing');
      assert.equal(after.revision, last.revision);
      assert.equal(before.items.length, 2);
      await expectRejects(world.core.update(stale), { code: 'Conflict', reason: 'version' });
      await expectRejects(world.core.destroy(world.pointer('c'), { uid: stale.metadata.uid }), { code: 'Conflict', reason: 'incarnation' });
      const next = await world.create('d', 5);
      assert.ok(Number(next.metadata.version) > Number(stale.metadata.version) + 2, 'no version is used twice across a restart');
      const reader = await world.watchKind({ bootstrapContents: true });
      assert.deepEqual(brief(await reader.take(4)), ['created a', 'created c', 'created d', 'bootstrapped']);
    },
  },
  {
    name: 'restart: the revision goes on after the newest write was a destroy',
    needs: ['durableBookmarks', 'globalRevision'],
    async run(world) {
      const made = await world.create('a');
      await world.core.destroy(world.pointer('a'));
      await world.reopen();
      const again = await world.create('a');
      assert.ok(
        Number(again.metadata.version) > Number(made.metadata.version) + 1,
        'the revision of the destroy must not be handed out again',
      );
      assert.notEqual(again.metadata.uid, made.metadata.uid);
    },
  },
];
