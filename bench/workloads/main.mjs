// @ts-check
// Our side of the comparisons with programs in bench/peers: one workload runs once in a process of its own, checks what it
// did, and prints one line of JSON, each part with what it took. The same names and options as over there.
import { parseArgs } from 'node:util';
import { crud, perResource } from './crud.mjs';
import { list } from './list.mjs';
import { bootstrap, fanOut, growth } from './watch.mjs';

/** @type {Record<string, (options: any) => Promise<import('./measure.mjs').Measures>>} */
const workloads = {
  'mem-crud': crud,
  'mem-per-resource': perResource,
  list,
  'watch-fanout': fanOut,
  'watch-bootstrap': bootstrap,
  growth,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: 'string', default: '100000' },
    shape: { type: 'string', default: 'fields' },
    times: { type: 'string', default: '10' },
    watchers: { type: 'string', default: '100' },
    writes: { type: 'string', default: '10000' },
    operations: { type: 'string', default: '20000' },
    aggregated: { type: 'string', default: 'false' },
    stalled: { type: 'string', default: 'false' },
  },
});
const workload = workloads[positionals[0] ?? ''];
if (workload === undefined) throw new Error(`expected a workload, one of ${Object.keys(workloads).join(', ')}`);
const { shape } = values;
const measures = await workload({
  shape,
  size: Number(values.size),
  times: Number(values.times),
  watchers: Number(values.watchers),
  writes: Number(values.writes),
  operations: Number(values.operations),
  aggregated: values.aggregated === 'true',
  stalled: values.stalled === 'true',
});
console.log(JSON.stringify(measures.parts));
process.exit(0);
