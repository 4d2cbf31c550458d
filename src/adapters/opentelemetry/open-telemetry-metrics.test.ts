import type { Attributes, Meter, MetricOptions } from '@opentelemetry/api';
import { createNoopMeter, metrics } from '@opentelemetry/api';
import { afterEach, expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { metered, wrapCore } from '../../state/index.ts';
import { openTelemetryMetrics } from './index.ts';

afterEach(() => metrics.disable());

/** A meter that tells what is done with it, on top of the library's own that does nothing. */
function recordingMeter() {
  const made: [kind: string, name: string, options: MetricOptions | undefined][] = [];
  const values: [name: string, value: number, attributes: Attributes | undefined][] = [];
  const instrument = (kind: string) => (name: string, options?: MetricOptions) => {
    made.push([kind, name, options]);
    const record = (value: number, attributes?: Attributes): void => void values.push([name, value, attributes]);
    return { add: record, record };
  };
  const meter: Meter = Object.assign(createNoopMeter(), {
    createCounter: instrument('counter'),
    createGauge: instrument('gauge'),
    createHistogram: instrument('histogram'),
  });
  return { meter, made, values };
}

test('what the state counts goes to the instruments of a meter, each made once', async () => {
  const { meter, made, values } = recordingMeter();
  const environment = nodeEnvironment({ metrics: openTelemetryMetrics(meter) });
  await using core = memoryState({ environment });
  for (let round = 0; round < 2; round++) {
    const state = wrapCore(metered(core, { environment }), { environment });
    await state.list({ namespace: 'default', type: 'Things.example.dev' });
  }
  environment.metrics.gauge('heat', 'Heat').set(200);
  expect(made.map(([kind, name, options]) => [kind, name, options?.unit])).toEqual([
    ['counter', 'steadystate_state_calls_total', undefined],
    ['histogram', 'steadystate_state_call_seconds', 's'],
    ['gauge', 'heat', undefined],
  ]);
  const type = 'Things.example.dev';
  expect(values.filter(([name]) => name === 'steadystate_state_calls_total')).toEqual([
    ['steadystate_state_calls_total', 1, { call: 'list', type, code: 'ok' }],
    ['steadystate_state_calls_total', 1, { call: 'list', type, code: 'ok' }],
  ]);
  expect(values.filter(([name]) => name === 'steadystate_state_call_seconds')).toHaveLength(2);
  expect(values.at(-1)).toEqual(['heat', 200, undefined]);
});

test('without a meter of its own it takes the global one, and without any SDK nothing happens', () => {
  openTelemetryMetrics().counter('quiet', 'Quiet').add();
  const { meter, values } = recordingMeter();
  metrics.setGlobalMeterProvider({ getMeter: () => meter });
  openTelemetryMetrics().counter('loud', 'Loud').add(2, { a: 'b' });
  expect(values).toEqual([['loud', 2, { a: 'b' }]]);
});
