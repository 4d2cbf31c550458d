import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ClassicContext } from '../../src/runtime/index.ts';
import { apples, controllerOf, pies, World } from './world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.end());

const odd: readonly unknown[] = [undefined, null, 'in words', Symbol('mark'), Object.create(null), { toString: null }];

test('whatever a reconcile throws or rejects with is a failure of its key; others go on', async () => {
  const thrown = [...odd, ...odd];
  const runs: string[] = [];
  await world.start(
    controllerOf({
      reconcile(_context, { pointer }) {
        runs.push(pointer.id);
        if (pointer.id !== 'bad' || thrown.length === 0) return Promise.resolve();
        const error = thrown.shift();
        if (thrown.length >= odd.length) throw error;
        return Promise.reject(error);
      },
    }),
  );
  await world.apple('bad');
  expect(world.runtime.status()[0]?.keys[0]).toMatchObject({ failures: 1, lastError: 'undefined was thrown instead of an error' });
  await world.apple('good');
  await world.environment.advance(60_000);
  expect(runs.filter((id) => id === 'bad')).toHaveLength(odd.length * 2 + 1);
  expect(runs.filter((id) => id === 'good')).toHaveLength(1);
  expect(world.runtime.status()[0]?.keys).toEqual([]);
});

test('whatever a classic controller, a run hook or a mapper throws, it is started again', async () => {
  const left = { classic: [...odd], hook: [...odd], mapper: [...odd] };
  const mapped: string[] = [];
  world.runtime.register({
    name: 'classic',
    inputs: [{ namespace: 'default', type: apples.type, kind: 'weak' }],
    outputs: [],
    run: async ({ nextWakeUp }: ClassicContext) => {
      if (left.classic.length > 0) throw left.classic.shift();
      while (await nextWakeUp());
    },
  });
  await world.start(
    controllerOf({
      inputs: [
        { namespace: 'default', type: apples.type, kind: 'primary' },
        { namespace: 'default', type: pies.type, kind: 'mapped' },
      ],
      outputs: [],
      run: async () => {
        if (left.hook.length > 0) throw left.hook.shift();
      },
      mapInput: (_context, { metadata }) => {
        if (left.mapper.length > 0) throw left.mapper.shift();
        mapped.push(metadata.id);
        return [];
      },
    }),
  );
  await world.state.create(pies.create({ id: 'p', spec: { size: 0 } }));
  await world.environment.advance(120_000);
  expect([left, mapped]).toEqual([{ classic: [], hook: [], mapper: [] }, ['p']]);
});
