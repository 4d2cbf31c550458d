import { expect, test, vi } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { MakeStore } from './index.ts';
import { stateConformance } from './index.ts';

const environment = nodeEnvironment();
const all = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: true };
const memory: MakeStore = (request) => {
  const core = memoryState({ environment, ...request });
  return { core, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
};
const namesOf = (capabilities: typeof all): string[] => stateConformance(memory, { environment, capabilities }).map(({ name }) => name);
const runOf = (name: string, makeStore: MakeStore, capabilities = { ...all, durableBookmarks: false }) => {
  const found = stateConformance(makeStore, { environment, capabilities }).find((one) => one.name.startsWith(name));
  if (found === undefined) throw new Error(`no case ${name}`);
  return found.run();
};

test('names are unique and say their group', () => {
  const names = namesOf(all);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => !/^[A-Za-z]+: /.test(name))).toEqual([]);
});

test('what is not claimed is left out', () => {
  for (const flag of Object.keys(all)) {
    const fewer = namesOf({ ...all, [flag]: false });
    expect(fewer.length, flag).toBeLessThan(namesOf(all).length);
  }
});

test('a claim that is not true fails', async () => {
  await expect(runOf('capabilities: the store says', memory, all)).rejects.toThrow();
  await expect(runOf('restart: everything', memory, all)).rejects.toThrow('must offer reopen');
});

test('a store that leaves something open fails', async () => {
  const left: Disposable[] = [];
  const leaky: MakeStore = async (request) => {
    left.push(environment.open.track('file'));
    return memory(request);
  };
  await expect(runOf('get: what is not there', leaky)).rejects.toThrow('nothing may stay open');
  for (const open of left) open[Symbol.dispose]();
  await runOf('get: what is not there', memory);
  expect(environment.open.counts()).toEqual({});
});

test('a generated case that fails says how to run it again', async () => {
  const wrong: MakeStore = async (request) => {
    const store = await memory(request);
    store.core.list = async () => Object.freeze({ items: [] });
    return store;
  };
  await expect(runOf('generated: any order', wrong)).rejects.toThrow(/seed: -?\d+[\s\S]*Counterexample/);
});

test('the claims alone are enough, and a store may be given as it is', async () => {
  const cases = stateConformance(() => memoryState({ environment }), { ...all, durableBookmarks: false });
  expect(cases.map(({ name }) => name)).toEqual(namesOf({ ...all, durableBookmarks: false }));
  for (const begin of ['update: checks NotFound', 'bookmarks: W9, one of another store', 'generated: K1'])
    await cases.find(({ name }) => name.startsWith(begin))?.run();
  expect(environment.open.counts()).toEqual({});
});

test('a store that answers Unavailable without a crash is at fault', async () => {
  const flaky: MakeStore = async (request) => {
    const store = await memory(request);
    const { core } = store;
    let calls = 0;
    const get = core.get.bind(core);
    core.get = (...given) => (++calls % 5 === 0 ? Promise.reject(new SteadystateError('Unavailable', 'later')) : get(...given)) as never;
    return store;
  };
  await expect(runOf('generated: K1', flaky)).rejects.toThrow('no order explains');
});

test('without fast-check the generated cases say what is missing, and the others run', async () => {
  vi.doMock('fast-check', () => {
    throw new Error('no such package');
  });
  await expect(runOf('generated: any order', memory)).rejects.toThrow('npm install --save-dev fast-check');
  await runOf('get: what is not there', memory);
  vi.doUnmock('fast-check');
});
