import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import type { WatchForCondition } from '../../state/index.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

/** Starts a wait, lets it establish its watch, and answers what settles with it. */
async function begin(
  world: World,
  condition: WatchForCondition<{ size: number }>,
  signal?: AbortSignal,
): Promise<{ readonly settled: Promise<Resource> }> {
  const settled = world.state.watchFor<{ size: number }>(world.pointer('a'), condition, signal === undefined ? {} : { signal });
  settled.catch(() => {});
  // A watch that has begun has seen its first event by now, on a store in the same process and on most others.
  for (let turn = 0; turn < 5; turn++) await world.environment.breathe();
  return { settled };
}

export const waitingCases: readonly Case[] = [
  {
    name: 'watchFor: what holds already, and what comes to hold',
    async run(world) {
      await world.create('a', 1);
      const now = await world.within(world.state.watchFor(world.pointer('a'), { phases: ['running'] }), 'what holds already');
      assert.deepEqual(now.spec, { size: 1 });
      const { settled } = await begin(world, { condition: ({ spec }) => spec.size >= 3, phases: ['running'] });
      await world.resize('a', 2);
      const third = await world.resize('a', 3);
      assert.deepEqual(await world.within(settled, 'size 3'), third);
    },
  },
  {
    name: 'watchFor: all parts that are given must hold',
    async run(world) {
      await world.create('a', 5, { finalizers: ['f'] });
      const { settled } = await begin(world, {
        eventTypes: ['updated'],
        phases: ['tearingDown'],
        finalizersEmpty: true,
        condition: async ({ spec }) => spec.size === 5,
      });
      await world.state.teardown(world.pointer('a'));
      await world.resize('a', 6);
      await world.state.removeFinalizer(world.pointer('a'), 'f');
      const right = await world.resize('a', 5);
      assert.equal((await world.within(settled, 'all parts')).metadata.version, right.metadata.version);
    },
  },
  {
    name: 'watchFor: by event type, the destroyed one too',
    async run(world) {
      await world.create('a', 1);
      const { settled } = await begin(world, { eventTypes: ['destroyed'] });
      await world.core.destroy(world.pointer('a'));
      const last = await world.within(settled, 'destroyed');
      assert.equal(last.metadata.id, 'a');
      await world.within(world.state.watchFor(world.pointer('never'), { eventTypes: ['destroyed'] }), 'destroyed of what is not there');
    },
  },
  {
    name: 'watchFor: conditions and phases see real resources only, never a tombstone',
    async run(world) {
      const seen: unknown[] = [];
      const { settled } = await begin(world, {
        condition: ({ spec }) => {
          seen.push(spec);
          return spec.size === 2;
        },
      });
      const { settled: running } = await begin(world, { phases: ['running'] });
      const made = await world.create('a', 1);
      assert.equal((await world.within(running, 'the phase')).metadata.version, made.metadata.version);
      await world.core.destroy(world.pointer('a'));
      await world.create('a', 2);
      assert.deepEqual((await world.within(settled, 'size 2')).spec, { size: 2 });
      assert.deepEqual(
        seen.filter((spec) => spec === undefined),
        [],
        'a condition saw a tombstone',
      );
    },
  },
  {
    name: 'watchFor: Gone when the end of an incarnation makes the wait impossible',
    async run(world) {
      const waits: WatchForCondition<{ size: number }>[] = [{ finalizersEmpty: true }, { phases: ['tearingDown'], condition: () => false }];
      for (const wait of waits) {
        await world.create('a', 1, { finalizers: ['f'] });
        const { settled } = await begin(world, { ...wait, condition: () => false });
        await world.core.update(world.thing('a', 1, { ...(await world.editable('a')), finalizers: [] }));
        await world.core.destroy(world.pointer('a'));
        await expectRejects(world.within(settled, 'Gone'), { code: 'Gone', id: 'a' });
      }
    },
  },
  {
    name: 'watchFor: a first destroyed says not yet; other waits survive a re-creation',
    async run(world) {
      const { settled: finalized } = await begin(world, { finalizersEmpty: true });
      const { settled: sized } = await begin(world, { condition: ({ spec }) => spec.size === 3 });
      await world.create('a', 1);
      await world.within(finalized, 'finalizers empty');
      await world.core.destroy(world.pointer('a'));
      await world.create('a', 2);
      await world.core.destroy(world.pointer('a'));
      await world.create('a', 3);
      assert.deepEqual((await world.within(sized, 'size 3')).spec, { size: 3 });
    },
  },
  {
    name: 'watchFor: an abort rejects with its reason, an error of the condition comes back as it is',
    async run(world) {
      await world.create('a', 1);
      const controller = new AbortController();
      const { settled } = await begin(world, { condition: () => false }, controller.signal);
      const reason = new Error('enough');
      controller.abort(reason);
      await assert.rejects(world.within(settled, 'the abort'), (error) => error === reason);
      const mine = new Error('mine');
      const failing = world.state.watchFor(world.pointer('a'), { condition: () => Promise.reject(mine) });
      await assert.rejects(world.within(failing, 'the error'), (error) => error === mine);
    },
  },
  {
    name: 'abortSignalOnTeardown: aborts on teardown, on the end, on another incarnation, and at once when missing',
    async run(world) {
      const end = new AbortController();
      const { signal } = end;
      const aborted = (given: AbortSignal): Promise<void> =>
        given.aborted ? Promise.resolve() : new Promise((resolve) => given.addEventListener('abort', () => resolve(), { once: true }));
      await world.within(world.state.abortSignalOnTeardown(world.pointer('a'), { signal }).then(aborted), 'missing');
      await world.create('a');
      const onTeardown = await world.state.abortSignalOnTeardown(world.pointer('a'), { signal });
      await world.resize('a', 2);
      await world.environment.breathe();
      assert.equal(onTeardown.aborted, false, 'an update aborts nothing');
      await world.state.teardown(world.pointer('a'));
      await world.within(aborted(onTeardown), 'the teardown');
      await world.within(world.state.abortSignalOnTeardown(world.pointer('a'), { signal }).then(aborted), 'in teardown already');
      await world.core.destroy(world.pointer('a'));
      await world.create('a');
      const onDestroy = await world.state.abortSignalOnTeardown(world.pointer('a'), { signal });
      const withSignal = await world.state.abortSignalOnTeardown(world.pointer('a'), { signal });
      await world.core.destroy(world.pointer('a'));
      await world.create('a');
      await world.within(aborted(onDestroy), 'the end');
      await world.within(aborted(withSignal), 'the end');
      const last = await world.state.abortSignalOnTeardown(world.pointer('a'), { signal });
      assert.equal(last.aborted, false);
      const reason = new Error('enough');
      end.abort(reason);
      await world.within(aborted(last), 'the given signal');
      assert.equal(last.reason, reason);
    },
  },
];
