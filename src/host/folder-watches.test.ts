import { expect, test } from 'vitest';
import type { FilePort } from '../environment/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import { FolderWatches } from './folder-watches.ts';

function fakeFolders() {
  const identities = new Map([['/a', 'a1']]);
  const watchers = new Map<string, Set<() => void>>();
  const files = {
    stat: async (path: string) => (identities.has(path) ? { identity: identities.get(path) } : undefined),
    watch: async (path: string, onChange: () => void) => {
      if (!identities.has(path)) throw new Error('ENOENT');
      const own = watchers.get(path) ?? new Set();
      watchers.set(path, own.add(onChange));
      return { [Symbol.dispose]: () => void own.delete(onChange) };
    },
  } as unknown as FilePort;
  return {
    identities,
    environment: manualEnvironment({ files }),
    change: (path: string) => [...(watchers.get(path) ?? [])].forEach((tell) => tell()),
    count: (path: string) => watchers.get(path)?.size ?? 0,
  };
}

test('the first change is told at once, many are told seldom, and the last one is not lost', async () => {
  const { environment, change } = fakeFolders();
  const told: string[] = [];
  const watches = new FolderWatches(environment, (key) => void told.push(key));
  await watches.watch('/a', 'x');
  change('/a');
  expect(told).toEqual(['x']);
  for (let count = 0; count < 100; count++) change('/a');
  expect(told).toEqual(['x']);
  await environment.advance(500);
  expect(told).toEqual(['x', 'x']);
  await environment.advance(10_000);
  expect(told).toEqual(['x', 'x']);
  change('/a');
  expect(told).toHaveLength(3);
  change('/a');
  watches.close();
  await environment.advance(10_000);
  expect(told).toHaveLength(3);
  expect(environment.open.counts()).toEqual({});
});

test('one watch serves all who care, and goes with the last of them', async () => {
  const { environment, change, count } = fakeFolders();
  const told: string[] = [];
  const watches = new FolderWatches(environment, (key) => void told.push(key));
  await Promise.all([watches.watch('/a', 'x'), watches.watch('/a', 'y')]);
  await watches.watch('/a', 'x');
  expect(count('/a')).toBe(1);
  change('/a');
  expect(told.sort()).toEqual(['x', 'y']);
  watches.unwatch('x');
  expect(count('/a')).toBe(1);
  watches.unwatch('y');
  expect(count('/a')).toBe(0);
});

test('a folder that was replaced is watched anew, for all who cared; one that is gone is not watched', async () => {
  const { environment, change, count, identities } = fakeFolders();
  const told: string[] = [];
  const watches = new FolderWatches(environment, (key) => void told.push(key));
  await watches.watch('/a', 'x');
  await watches.watch('/a', 'y');
  identities.set('/a', 'a2');
  await watches.watch('/a', 'x');
  expect(count('/a')).toBe(1);
  change('/a');
  expect(told.sort()).toEqual(['x', 'y']);
  identities.delete('/a');
  await watches.watch('/a', 'x');
  expect(count('/a')).toBe(0);
  watches.close();
});
