// @ts-check
// Lists of 100k resources. The peer does what a store without an order does: it filters a Map's values and sorts them.
import { compareIds, makeResource, nodeEnvironment } from 'steadystate';
import { memoryState } from 'steadystate/memory';

const size = 100_000;
const lists = 20;
const kind = { namespace: 'bench', type: 'Things.bench.steadystate.dev' };
const resources = Array.from({ length: size }, (_, index) =>
  makeResource({
    metadata: { ...kind, id: `thing-${(index * 7919) % size}`, labels: { shard: String(index % 100) } },
    spec: { note: 'a string' },
  }),
);

/**
 * @param {import('steadystate').ListOptions} options
 * @param {number} expected
 * @param {boolean} write Whether something is written before each list, so that nothing remembered helps.
 * @returns {import('../scenario.d.mts').Side<any>}
 */
const store = (options, expected, write) => ({
  name: 'memory store',
  async prepare() {
    const state = memoryState({ environment: nodeEnvironment() });
    for (const resource of resources) await state.create(resource);
    await state.list(kind);
    return state;
  },
  async run(state) {
    for (let round = 0; round < lists; round++) {
      if (write) await state.create({ metadata: { ...kind, id: `added-${round}` }, spec: null });
      const { items } = await state.list(kind, options);
      if (items.length !== expected + (write ? round + 1 : 0)) throw new Error(`found ${items.length}`);
    }
    return lists;
  },
  clean: (state) => state[Symbol.asyncDispose](),
});

/**
 * @param {(resource: import('steadystate').Resource) => boolean} matches
 * @param {number} expected
 * @returns {import('../scenario.d.mts').Side<any>}
 */
const sorted = (matches, expected) => ({
  name: 'filter and sort a Map',
  prepare: () => new Map(resources.map((resource) => [resource.metadata.id, resource])),
  run(map) {
    for (let round = 0; round < lists; round++) {
      const items = [...map.values()].filter(matches).sort((left, right) => compareIds(left.metadata.id, right.metadata.id));
      if (items.length !== expected) throw new Error(`found ${items.length}`);
    }
    return lists;
  },
});

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  { name: 'list-100k', ours: store({}, size, false), peer: sorted(() => true, size) },
  { name: 'list-100k-after-a-write', ours: store({}, size, true), peer: sorted(() => true, size) },
  {
    name: 'list-100k-by-label',
    ours: store({ labelQueries: [{ terms: [{ key: 'shard', op: 'equal', values: ['7'] }] }] }, size / 100, false),
    peer: sorted((resource) => resource.metadata.labels.shard === '7', size / 100),
  },
  {
    name: 'list-100k-by-id',
    ours: store({ idQuery: '^thing-77' }, 1_111, false),
    peer: sorted((resource) => resource.metadata.id.startsWith('thing-77'), 1_111),
  },
];
