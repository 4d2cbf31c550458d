// @ts-check
// Delivery: an unpaced writer and many watchers, each event counted at each of them. The peer calls a list of functions for
// each write: what a hand-made broadcast without order, history or back-pressure costs.
import { makeResource, nodeEnvironment } from 'steadystate';
import { memoryState } from 'steadystate/memory';

const kind = { namespace: 'bench', type: 'Things.bench.steadystate.dev' };

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** @param {number} size */
const makeResources = (size) =>
  Array.from({ length: size }, (_, index) =>
    makeResource({ metadata: { ...kind, id: `thing-${index}`, labels: { shard: String(index % 100) } }, spec: { note: 'a string' } }),
  );

/**
 * Deliveries a second to watchers of all of a kind.
 * @param {number} watchers
 * @param {number} writes
 * @param {{ single?: boolean, stalled?: boolean }} [how]
 * @returns {import('../scenario.d.mts').Side<any>}
 */
const fanOut = (watchers, writes, how = {}) => {
  const resources = makeResources(writes);
  return {
    name: `memory store, ${watchers} watchers${how.single ? ' by event' : ' by batch'}${how.stalled ? ', one stalled' : ''}`,
    async prepare() {
      const state = memoryState({ environment: nodeEnvironment() });
      const stalled = how.stalled ? await state.watchKind(kind) : undefined;
      /** @type {any[]} */
      const watches = [];
      for (let index = 0; index < watchers; index++)
        watches.push(how.single ? await state.watchKind(kind) : await state.watchKindAggregated(kind));
      return { state, watches, stalled };
    },
    async run({ state, watches }) {
      let delivered = 0;
      const readers = watches.map(async (/** @type {any} */ watch) => {
        let seen = 0;
        if (how.single) {
          for await (const event of watch) {
            if (event.type !== 'errored') seen++;
            if (event.revision === writes) break;
          }
        } else {
          for await (const batch of watch) {
            seen += batch.length;
            if (batch.at(-1).revision === writes) break;
          }
        }
        delivered += seen;
      });
      for (let index = 0; index < writes; index++) {
        await state.create(resources[index]);
        // As a program that reads sockets would: a chain of microtasks alone lets no reader have its turn.
        if (index % 256 === 255) await turn();
      }
      await Promise.all(readers);
      if (delivered !== watchers * writes) throw new Error(`${delivered} events were delivered`);
      return delivered;
    },
    async clean({ state }) {
      await state[Symbol.asyncDispose]();
    },
  };
};

/** @param {number} watchers @param {number} writes @returns {import('../scenario.d.mts').Side<any>} */
const callbacks = (watchers, writes) => {
  const resources = makeResources(writes);
  return {
    name: `${watchers} callbacks`,
    async run() {
      const map = new Map();
      let delivered = 0;
      const listeners = Array.from({ length: watchers }, () => (/** @type {unknown} */ event) => {
        if (event !== undefined) delivered++;
      });
      for (const resource of resources) {
        await map.set(resource.metadata.id, resource);
        const event = Object.freeze({ type: 'created', resource });
        for (const listener of listeners) listener(event);
        if (map.size % 256 === 0) await turn();
      }
      return delivered;
    },
  };
};

/** Created-events a second of watchers that begin with all contents. @param {number} watchers @returns {import('../scenario.d.mts').Side<any>} */
const bootstrap = (watchers, size = 100_000) => ({
  name: `memory store, ${watchers} bootstrap${watchers === 1 ? '' : 's'} of ${size}`,
  async prepare() {
    const state = memoryState({ environment: nodeEnvironment() });
    for (const resource of makeResources(size)) await state.create(resource);
    return state;
  },
  async run(state) {
    let seen = 0;
    const read = async () => {
      for await (const batch of await state.watchKindAggregated(kind, { bootstrapContents: true })) {
        seen += batch.length;
        if (batch.at(-1).type === 'bootstrapped') break;
      }
    };
    await Promise.all(Array.from({ length: watchers }, read));
    if (seen !== watchers * (size + 1)) throw new Error(`${seen} events were delivered`);
    return seen;
  },
  clean: (state) => state[Symbol.asyncDispose](),
});

/** A write that only one of many watchers of single ids looks at. @param {number} watchers @returns {import('../scenario.d.mts').Side<any>} */
const pointers = (watchers) => ({
  name: `memory store, updates beside ${watchers} watches of other ids`,
  async prepare() {
    const state = memoryState({ environment: nodeEnvironment() });
    for (let index = 0; index < watchers; index++) await state.watch({ ...kind, id: `other-${index}` });
    return { state, resource: await state.create({ metadata: { ...kind, id: 'busy' }, spec: 0 }) };
  },
  async run({ state, resource }) {
    const writes = 20_000;
    for (let index = 0; index < writes; index++) resource = await state.update(resource);
    return writes;
  },
  clean: ({ state }) => state[Symbol.asyncDispose](),
});

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  { name: 'watch-fanout-1', ours: fanOut(1, 50_000), peer: callbacks(1, 50_000) },
  { name: 'watch-fanout-100', ours: fanOut(100, 10_000), peer: callbacks(100, 10_000) },
  { name: 'watch-fanout-1k', ours: fanOut(1_000, 2_000), peer: callbacks(1_000, 2_000) },
  { name: 'watch-fanout-10k', ours: fanOut(10_000, 200), peer: callbacks(10_000, 200) },
  { name: 'watch-fanout-100-by-event', ours: fanOut(100, 5_000, { single: true }), peer: callbacks(100, 5_000) },
  { name: 'watch-fanout-one-stalled', ours: fanOut(100, 20_000, { stalled: true }), peer: fanOut(100, 20_000) },
  { name: 'watch-bootstrap-1', ours: bootstrap(1) },
  { name: 'watch-bootstrap-50', ours: bootstrap(50) },
  { name: 'watch-other-ids-10k', ours: pointers(10_000), peer: pointers(1) },
];
