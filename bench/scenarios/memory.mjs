// @ts-check
// The store in memory against a bare Map behind the same `await`: what the contract costs.
import { makeResource, nodeEnvironment } from 'steadystate';
import { memoryState } from 'steadystate/memory';

const size = 100_000;
const kind = { namespace: 'bench', type: 'Things.bench.steadystate.dev' };

/** About 512 bytes: 8 fields of some 50 characters, and one string. @param {number} index */
const specOf = (index) => ({
  ...Object.fromEntries(Array.from({ length: 8 }, (_, field) => [`field${field}`, `${index}-${field}-`.padEnd(50, 'x')])),
  note: 'a string',
});
const resources = Array.from({ length: size }, (_, index) =>
  makeResource({ metadata: { ...kind, id: `thing-${index}` }, spec: specOf(index) }),
);
const order = resources.map((_, index) => (index * 7919) % size);

/** @type {import('../scenario.d.mts').Side<import('steadystate').CoreState & AsyncDisposable>} */
const storeGet = {
  name: 'memory store',
  async prepare() {
    const state = memoryState({ environment: nodeEnvironment() });
    for (const resource of resources) await state.create(resource);
    return state;
  },
  async run(state) {
    for (const index of order) {
      const { metadata } = await state.get({ ...kind, id: `thing-${index}` });
      if (metadata.id !== `thing-${index}`) throw new Error(`found ${metadata.id}`);
    }
    return size;
  },
  clean: (state) => state[Symbol.asyncDispose](),
};

/** @type {import('../scenario.d.mts').Side<Map<string, unknown>>} */
const mapGet = {
  name: 'a bare Map',
  prepare: () => new Map(resources.map((resource) => [resource.metadata.id, resource])),
  async run(map) {
    for (const index of order) {
      const found = await map.get(`thing-${index}`);
      if (found !== resources[index]) throw new Error('found another');
    }
    return size;
  },
};

/** @type {import('../scenario.d.mts').Side<import('steadystate').CoreState & AsyncDisposable>} */
const storeCreate = {
  name: 'memory store',
  prepare: () => memoryState({ environment: nodeEnvironment() }),
  async run(state) {
    for (const resource of resources) await state.create(resource);
    return size;
  },
  clean: (state) => state[Symbol.asyncDispose](),
};

/** @type {import('../scenario.d.mts').Side<Map<string, unknown>>} */
const mapSet = {
  name: 'a bare Map',
  prepare: () => new Map(),
  async run(map) {
    for (const resource of resources) await map.set(resource.metadata.id, resource);
    return size;
  },
};

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  { name: 'mem-create', ours: storeCreate, peer: mapSet },
  { name: 'mem-get', ours: storeGet, peer: mapGet },
];
