import { Counter, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { createRuntime } from '../../runtime/index.ts';
import { metered, wrapCore } from '../../state/index.ts';
import { prometheusMetrics } from './index.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };

test('what the state and the controllers count stands in the registry', async () => {
  const registry = new Registry();
  const environment = nodeEnvironment({ metrics: prometheusMetrics({ registry }) });
  await using core = memoryState({ environment });
  const state = wrapCore(metered(core, { environment }), { environment });
  await state.create({ metadata: { ...kind, id: 'a' }, spec: 1 });
  await state.get({ ...kind, id: 'b' }).catch(() => {});
  const runtime = createRuntime({ state, environment });
  const stop = new AbortController();
  let ran = (): void => {};
  const once = new Promise<void>((resolve) => {
    ran = resolve;
  });
  runtime.register({ name: 'counter', inputs: [{ ...kind, kind: 'primary' }], outputs: [], reconcile: async () => ran() });
  const running = runtime.run(stop.signal);
  await once;
  const watched = 'steadystate_watched_resources{namespace="default",type="Things.example.dev",cached="no"} 1';
  expect(await registry.metrics()).toContain(watched);
  stop.abort();
  await running;
  const text = await registry.metrics();
  expect(text).toContain('# TYPE steadystate_state_calls_total counter');
  expect(text).toContain('steadystate_state_calls_total{call="create",type="Things.example.dev",code="ok"} 1');
  expect(text).toContain('steadystate_state_calls_total{call="get",type="Things.example.dev",code="NotFound"} 1');
  expect(text).toContain('# TYPE steadystate_state_call_seconds histogram');
  expect(text).toContain('steadystate_state_call_seconds_count{call="create",type="Things.example.dev"} 1');
  expect(text).toContain('steadystate_controller_reconcile_seconds_count{controller="counter"} 1');
  // What nobody watches any more is not counted any more.
  expect(text).not.toContain(watched);
});

test('one name is one instrument, also beside another user of the registry', async () => {
  const registry = new Registry();
  const metrics = prometheusMetrics({ registry });
  metrics.counter('bakes_total', 'Bakes', ['oven']).add(2, { oven: 'a' });
  metrics.counter('bakes_total', 'Bakes', ['oven']).add(undefined, { oven: 'a' });
  prometheusMetrics({ registry }).counter('bakes_total', 'Bakes').add(1, { oven: 'b' });
  metrics.gauge('heat', 'Heat').set(200);
  expect(await registry.metrics()).toContain('bakes_total{oven="a"} 3\nbakes_total{oven="b"} 1\n');
  expect(await registry.metrics()).toContain('heat 200');
  new Counter({ name: 'taken', help: 'x', registers: [registry] });
  expect(() => metrics.gauge('taken', 'x')).toThrow(/taken is in the registry already, and is no Gauge/);
  expect(() => metrics.counter('bakes_total', 'Bakes').add(1, { unnamed: 'x' })).toThrow(/unnamed/);
});

test('histograms have the buckets that were asked for', async () => {
  const registry = new Registry();
  prometheusMetrics({ registry, bucketsSeconds: [1, 60] })
    .histogram('waits_seconds', 'Waits')
    .observe(30);
  const text = await registry.metrics();
  expect(text).toContain('waits_seconds_bucket{le="1"} 0\nwaits_seconds_bucket{le="60"} 1\nwaits_seconds_bucket{le="+Inf"} 1');
});
