// @ts-check
// What watchers cost that have nothing to do with it: one that never reads, and ten thousand that look at other ids.

import { kind, openState } from '../workloads/things.mjs';
import { fanOut } from '../workloads/watch.mjs';

/** @param {boolean} stalled @returns {import('../scenario.d.mts').Side<any>} */
const crowd = (stalled) => ({
  name: `memory store, 100 watchers${stalled ? ' and a stalled one' : ''}`,
  async run() {
    const { parts } = await fanOut({ watchers: 100, writes: 20_000, aggregated: true, stalled });
    const { operations, nanoseconds, cpuNanoseconds } = /** @type {any} */ (parts.deliveries);
    return { operations, elapsedMs: nanoseconds / 1e6, cpuMs: cpuNanoseconds / 1e6 };
  },
});

/** A write that only one of many watchers of single ids looks at. @param {number} watchers @returns {import('../scenario.d.mts').Side<any>} */
const pointers = (watchers) => ({
  name: `memory store, updates beside ${watchers} watches of other ids`,
  async prepare() {
    const state = openState();
    const watches = [];
    for (let index = 0; index < watchers; index++) watches.push(await state.watch({ ...kind, id: `other-${index}` }));
    return { state, watches, resource: await state.create({ metadata: { ...kind, id: 'busy' }, spec: 0 }) };
  },
  async run({ state, resource }) {
    const writes = 20_000;
    for (let index = 0; index < writes; index++) resource = await state.update(resource);
    return writes;
  },
  async clean({ watches }) {
    for (const watch of watches) await watch[Symbol.asyncDispose]();
  },
});

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  { name: 'watch-one-stalled', ours: crowd(true), peer: crowd(false) },
  { name: 'watch-other-ids-10k', ours: pointers(10_000), peer: pointers(1) },
];
