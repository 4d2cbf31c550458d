import { strict as assert } from 'node:assert';
import { isAmbiguousError, isNotFoundError } from '../../resource/index.ts';
import { wrapCore } from '../../state/index.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

async function isMissing(world: World, id: string): Promise<boolean> {
  return world.core.get(world.pointer(id)).then(() => false, isNotFoundError);
}

/** Waits until a resource is in teardown. */
async function untilTornDown(world: World, id: string): Promise<void> {
  await world.within(world.state.watchFor(world.pointer(id), { phases: ['tearingDown'] }), 'the teardown');
}

export const teardownCases: readonly Case[] = [
  {
    name: 'teardownAndDestroy: an incarnation that is made between its look and its teardown is left alone',
    needs: ['incarnations'],
    async run(world) {
      const pointer = world.pointer('a');
      await world.create('a', 1);
      let looked = false;
      const core = new Proxy(world.core, {
        get: (target, key) => {
          const member: unknown = Reflect.get(target, key);
          // The steps of the helper are what is looked at, also on a store that has a call for all of them.
          if (key === 'teardownAndDestroy') return undefined;
          if (typeof member !== 'function') return member;
          if (key !== 'get') return member.bind(target);
          return async (...given: unknown[]) => {
            const found = (await member.apply(target, given)) as unknown;
            if (!looked) {
              looked = true;
              await world.core.destroy(pointer);
              await world.create('a', 2);
            }
            return found;
          };
        },
      });
      await wrapCore(core, { environment: world.environment }).teardownAndDestroy(pointer);
      const { metadata, spec } = await world.core.get(pointer);
      assert.deepEqual([metadata.phase, spec], ['running', { size: 2 }]);
    },
  },
  {
    name: 'teardown: of one incarnation only, when it is named',
    needs: ['incarnations'],
    async run(world) {
      const { metadata } = await world.create('a', 1);
      await world.core.destroy(metadata);
      await world.create('a', 2);
      for (const uid of [metadata.uid, ''])
        await expectRejects(world.state.teardown(metadata, { uid }), { code: 'Conflict', reason: 'incarnation', id: 'a' });
      const second = await world.core.get(world.pointer('a'));
      assert.equal(second.metadata.phase, 'running');
      assert.equal(await world.state.teardown(metadata, { uid: second.metadata.uid }), true);
    },
  },
  {
    name: 'teardown: marks, answers whether destroy is possible now, and is idempotent',
    async run(world) {
      await world.create('free', 1, { labels: { app: 'web' } });
      await world.create('held', 1, { finalizers: ['f'] });
      assert.equal(await world.state.teardown(world.pointer('free')), true);
      assert.equal(await world.state.teardown(world.pointer('held')), false);
      const { metadata } = await world.core.get(world.pointer('free'));
      assert.deepEqual([metadata.phase, { ...metadata.labels }], ['tearingDown', { app: 'web' }]);
      assert.equal(await world.state.teardown(world.pointer('free')), true);
      assert.equal((await world.core.get(world.pointer('free'))).metadata.version, metadata.version, 'a second teardown writes nothing');
      await world.state.removeFinalizer(world.pointer('held'), 'f');
      assert.equal(await world.state.teardown(world.pointer('held')), true);
      await expectRejects(world.state.teardown(world.pointer('missing')), { code: 'NotFound', id: 'missing' });
    },
  },
  {
    name: 'teardown: the owner is checked on what runs, not on what is already in teardown',
    async run(world) {
      await world.create('a', 1, {}, { owner: 'A' });
      await expectRejects(world.state.teardown(world.pointer('a')), { code: 'Conflict', reason: 'owner', id: 'a' });
      await expectRejects(world.state.teardown(world.pointer('a'), { owner: 'B' }), { code: 'Conflict', reason: 'owner', id: 'a' });
      assert.equal((await world.core.get(world.pointer('a'))).metadata.phase, 'running');
      assert.equal(await world.state.teardown(world.pointer('a'), { owner: 'A' }), true);
      assert.equal(await world.state.teardown(world.pointer('a')), true);
    },
  },
  {
    name: 'teardown: callers that race all succeed, beside other writers too',
    async run(world) {
      for (let round = 0; round < 5; round++) {
        const id = `a${round}`;
        await world.create(id);
        const change = () =>
          world.state.updateWithConflicts<{ size: number }>(world.pointer(id), (draft) => void draft.spec.size++, { expectedPhase: 'any' });
        const teardown = () => world.state.teardown(world.pointer(id));
        const answers = await world.within(Promise.all([teardown(), change(), teardown(), change(), teardown()]), 'all five');
        assert.deepEqual([answers[0], answers[2], answers[4]], [true, true, true]);
        const { metadata, spec } = await world.core.get(world.pointer(id));
        assert.deepEqual([metadata.phase, spec], ['tearingDown', { size: 3 }]);
      }
    },
  },
  {
    name: 'teardownAndDestroy: waits for the finalizers, also for one that comes meanwhile',
    async run(world) {
      await world.create('a', 1, { finalizers: ['f'] });
      const done = world.state.teardownAndDestroy(world.pointer('a'));
      await untilTornDown(world, 'a');
      await world.state.addFinalizer(world.pointer('a'), 'g');
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      assert.equal(await isMissing(world, 'a'), false, 'it must wait for the second finalizer');
      await world.state.removeFinalizer(world.pointer('a'), 'g');
      await world.within(done, 'the destroy');
      assert.equal(await isMissing(world, 'a'), true);
      await expectRejects(world.state.teardownAndDestroy(world.pointer('a')), { code: 'NotFound', id: 'a' });
    },
  },
  {
    name: 'teardownAndDestroy: what somebody else destroys meanwhile is done, and another incarnation stays',
    needs: ['incarnations'],
    async run(world) {
      await world.create('a', 1, { finalizers: ['f'] });
      const done = world.state.teardownAndDestroy(world.pointer('a'));
      await untilTornDown(world, 'a');
      const { version } = (await world.core.get(world.pointer('a'))).metadata;
      // Finalizer gone, resource destroyed and made again before the waiting call can look.
      const freed = world.core.update(world.thing('a', 1, { version, phase: 'tearingDown' }), { expectedPhase: 'any' });
      const rival = world.core.destroy(world.pointer('a'));
      const again = world.create('a', 2);
      await Promise.allSettled([freed, rival, again]);
      await world.within(done, 'the end');
      if (
        (await again.then(
          () => true,
          () => false,
        )) &&
        !(await isMissing(world, 'a'))
      ) {
        assert.deepEqual((await world.core.get(world.pointer('a'))).spec, { size: 2 });
      }
    },
  },
  {
    name: 'teardownAndDestroy: callers that race all succeed',
    async run(world) {
      await world.create('a', 1, { finalizers: ['f'] }, { owner: 'A' });
      const calls = Array.from({ length: 4 }, () => world.state.teardownAndDestroy(world.pointer('a'), { owner: 'A' }));
      await untilTornDown(world, 'a');
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      await world.within(Promise.all(calls), 'all four');
      assert.equal(await isMissing(world, 'a'), true);
    },
  },
  {
    name: 'teardownAndDestroy: owner conflicts and aborts reject',
    async run(world) {
      await world.create('a', 1, { finalizers: ['f'] }, { owner: 'A' });
      await expectRejects(world.state.teardownAndDestroy(world.pointer('a')), { code: 'Conflict', reason: 'owner', id: 'a' });
      const controller = new AbortController();
      const waiting = world.state.teardownAndDestroy(world.pointer('a'), { owner: 'A', signal: controller.signal });
      waiting.catch(() => {});
      await untilTornDown(world, 'a');
      const reason = new Error('enough');
      controller.abort(reason);
      // A store that does all of it in one call cannot tell how far that came.
      await assert.rejects(world.within(waiting, 'the abort'), (error) => error === reason || isAmbiguousError(error));
      assert.equal((await world.core.get(world.pointer('a'))).metadata.phase, 'tearingDown');
    },
  },
];
