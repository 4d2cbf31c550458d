import { strict as assert } from 'node:assert';
import { errorCode, findError } from '../../resource/index.ts';
import { idOf } from './reader.ts';
import { sizesOf } from './watch-pointer.ts';
import type { Case } from './world.ts';

/** Splits what racing calls came to; every loser must have lost by this reason. */
async function race(calls: readonly Promise<unknown>[], reason: string): Promise<number> {
  const outcomes = await Promise.allSettled(calls);
  let won = 0;
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') won++;
    else assert.equal(findError(outcome.reason)?.reason ?? errorCode(outcome.reason), reason, String(outcome.reason));
  }
  return won;
}

export const raceCases: readonly Case[] = [
  {
    name: 'races: K2, exactly one of many updates of one version wins',
    async run(world) {
      let current = await world.create('a', 0);
      for (let round = 1; round <= 10; round++) {
        const { version } = current.metadata;
        const calls = Array.from({ length: 8 }, (_, index) =>
          world.core.update(world.thing('a', { size: round * 100 + index }, { version })),
        );
        assert.equal(await race(calls, 'version'), 1);
        current = await world.core.get(world.pointer('a'));
        const outcomes = await Promise.allSettled(calls);
        const winner = outcomes.findIndex((outcome) => outcome.status === 'fulfilled');
        assert.deepEqual(current.spec, { size: round * 100 + winner }, 'what is stored is what the winner wrote');
      }
    },
  },
  {
    name: 'races: exactly one of many creates wins, and exactly one of many destroys',
    async run(world) {
      for (let round = 0; round < 5; round++) {
        assert.equal(
          await race(
            Array.from({ length: 6 }, () => world.create('a', round)),
            'alreadyExists',
          ),
          1,
        );
        assert.equal(
          await race(
            Array.from({ length: 6 }, () => world.core.destroy(world.pointer('a'))),
            'NotFound',
          ),
          1,
        );
      }
    },
  },
  {
    name: 'races: destroy against a finalizer, one of both wins and the other learns it',
    async run(world) {
      for (let round = 0; round < 10; round++) {
        const made = await world.create('a');
        const { version } = made.metadata;
        const hold = () => world.core.update(world.thing('a', 1, { version, finalizers: ['f'] }));
        const destroy = () => world.core.destroy(world.pointer('a'));
        const order = round % 2 === 0 ? [hold, destroy] : [destroy, hold];
        const outcomes = await Promise.allSettled(order.map((call): Promise<unknown> => call()));
        const [first, second] = round % 2 === 0 ? outcomes : outcomes.toReversed();
        assert.notEqual(first?.status, second?.status, 'exactly one wins');
        if (first?.status === 'fulfilled') {
          assert.equal(findError((second as PromiseRejectedResult).reason)?.reason, 'pendingFinalizers');
          await world.state.removeFinalizer(world.pointer('a'), 'f');
          await world.core.destroy(world.pointer('a'));
        } else {
          assert.equal(errorCode((first as PromiseRejectedResult).reason), 'NotFound');
        }
      }
    },
  },
  {
    name: 'races: writes that are not awaited one by one all happen, each with a version of its own, each with one event',
    async run(world) {
      const reader = await world.watchKind();
      const made = await Promise.all(Array.from({ length: 100 }, (_, index) => world.create(`n${index}`, index)));
      assert.equal(new Set(made.map((resource) => resource.metadata.version)).size, 100);
      const events = await reader.take(100);
      assert.deepEqual(new Set(events.map(idOf)), new Set(made.map((resource) => resource.metadata.id)));
      const versions = events.map((event) => Number('resource' in event ? event.resource.metadata.version : 0));
      assert.deepEqual(
        versions,
        versions.toSorted((left, right) => left - right),
        'W1: events come in the order of commits',
      );
      assert.equal((await world.core.list(world.kind)).items.length, 100);
    },
  },
  {
    name: 'races: K3, a list beside writes is one state that was, never a mixture',
    async run(world) {
      // Both always change in one order, so any snapshot holds first === second or first === second + 1.
      await world.create('first', 0);
      await world.create('second', 0);
      let writing = true;
      const writer = (async () => {
        for (let size = 1; size <= 40; size++) {
          await world.resize('first', size);
          await world.resize('second', size);
        }
        writing = false;
      })();
      while (writing) {
        const { items } = await world.core.list(world.kind);
        const [first, second] = items.map((item) => (item.spec as { size: number }).size);
        const ahead = (first as number) - (second as number);
        assert.ok(ahead === 0 || ahead === 1, `a list showed ${first} beside ${second}`);
        await world.environment.breathe();
      }
      await writer;
    },
  },
  {
    name: 'races: a list and a watch from its bookmark miss nothing and repeat nothing, beside writes',
    async run(world) {
      let writing = true;
      const writer = (async () => {
        await world.create('a', 0);
        for (let size = 1; size <= 60; size++) await world.resize('a', size);
        writing = false;
      })();
      while (writing) {
        const reader = await world.watchKind({ bootstrapContents: true });
        const snapshot = await reader.takeUntil((event) => event.type === 'bootstrapped');
        const start = snapshot.length > 1 ? (sizesOf(snapshot)[0] as number) : -1;
        const next = start < 60 ? sizesOf(await reader.take(1))[0] : 61;
        assert.equal(next, start + 1, `after a snapshot with ${start} the next event must be ${start + 1}`);
        await reader[Symbol.asyncDispose]();
      }
      await writer;
    },
  },
];
