// @ts-check
// The store in memory beside that of the original implementation in Go, under the same workloads (bench/workloads and
// bench/peers). Every round of each side is a process of its own, so that nobody pays for another's garbage.
import { fileURLToPath } from 'node:url';
import { missingGo, runGo, runWorkload } from '../peers/peer.mjs';

const ours = fileURLToPath(new URL('../workloads/main.mjs', import.meta.url));

/**
 * @param {string} name
 * @param {string} workload
 * @param {Readonly<Record<string, string | number | boolean>>} options
 * @param {Partial<import('../scenario.d.mts').Scenario>} [how]
 * @param {Readonly<Record<string, string | number | boolean>>} [oursOnly] Options that the peer does not know.
 * @returns {import('../scenario.d.mts').Scenario}
 */
const beside = (name, workload, options, how = {}, oursOnly = {}) => ({
  name,
  ours: {
    name: 'memory store',
    run: () => runWorkload(process.execPath, ['--expose-gc', '--max-old-space-size=8192', ours, workload], { ...options, ...oursOnly }),
  },
  peer: { name: 'COSI in memory', run: () => runGo(workload, options) },
  missing: missingGo,
  // Each process warms itself up.
  warmUp: false,
  ...how,
});

const full = { full: true };
const sizes = /** @type {const} */ ([
  ['1k', 1_000, {}],
  ['10k', 10_000, {}],
  ['100k', 100_000, {}],
  ['1m', 1_000_000, full],
]);
const crowds = /** @type {const} */ ([
  ['1', 1, 50_000, {}],
  ['100', 100, 50_000, {}],
  ['1k', 1_000, 10_000, {}],
  ['10k', 10_000, 1_000, full],
]);

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  beside('mem-crud-100k', 'mem-crud', { size: 100_000 }),
  beside('mem-crud-100k-text', 'mem-crud', { size: 100_000, shape: 'text' }, full),
  beside('mem-crud-1m', 'mem-crud', { size: 1_000_000 }, full),
  beside('list-100k', 'list', { size: 100_000 }),
  ...crowds.flatMap(([name, watchers, writes, how]) => [
    // By event there are two ways here, and one over there: `for await` and `forEach`, a receive from a channel.
    beside(`watch-fanout-${name}`, 'watch-fanout', { watchers, writes }, how),
    beside(`watch-fanout-${name}-each`, 'watch-fanout', { watchers, writes }, how, { each: true }),
    beside(`watch-fanout-${name}-aggregated`, 'watch-fanout', { watchers, writes, aggregated: true }, how),
  ]),
  beside('watch-fanout-100-one-stalled', 'watch-fanout', { watchers: 100, writes: 10_000, stalled: true }),
  beside('watch-bootstrap-1', 'watch-bootstrap', { size: 100_000, watchers: 1 }),
  beside('watch-bootstrap-50', 'watch-bootstrap', { size: 100_000, watchers: 50 }, full),
  beside('mem-per-resource-100k', 'mem-per-resource', { size: 100_000 }),
  beside('mem-per-resource-1m', 'mem-per-resource', { size: 1_000_000 }, { ...full, rounds: 1 }),
  ...sizes.map(([name, size, how]) => beside(`growth-${name}`, 'growth', { size }, how)),
];
