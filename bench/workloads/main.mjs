// @ts-check
// Our side of the comparisons with programs in bench/peers: one workload runs once in a process of its own, checks what it
// did, and prints one line of JSON, each part with what it took. The same names and options as over there.
import { parseArgs } from 'node:util';
import { crud, perResource } from './crud.mjs';
import { durableCreate, durableFill, durableOpen, readsBesideWrites } from './durable.mjs';
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
  'durable-create': durableCreate,
  'durable-fill': durableFill,
  'durable-open': durableOpen,
  'reads-beside-writes': readsBesideWrites,
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
    each: { type: 'string', default: 'false' },
    stalled: { type: 'string', default: 'false' },
    writers: { type: 'string', default: '1' },
    file: { type: 'string', default: '' },
    killed: { type: 'string', default: 'false' },
  },
});
const workload = workloads[positionals[0] ?? ''];
if (workload === undefined) throw new Error(`expected a workload, one of ${Object.keys(workloads).join(', ')}`);
const { shape, file } = values;
const measures = await workload({
  shape,
  file,
  killed: values.killed === 'true',
  writers: Number(values.writers),
  size: Number(values.size),
  times: Number(values.times),
  watchers: Number(values.watchers),
  writes: Number(values.writes),
  operations: Number(values.operations),
  aggregated: values.aggregated === 'true',
  each: values.each === 'true',
  stalled: values.stalled === 'true',
});
console.log(JSON.stringify(measures.parts));
process.exit(0);
