import type { Meter } from '@opentelemetry/api';
import { metrics } from '@opentelemetry/api';
import type { Metrics } from '../../environment/index.ts';

/**
 * Instruments of OpenTelemetry: `nodeEnvironment({ metrics: openTelemetryMetrics() })`. Names are those that Prometheus would have.
 *
 * @param meter by default the global one of the name `steadystate`
 */
export function openTelemetryMetrics(meter: Meter = metrics.getMeter('steadystate')): Metrics {
  const instruments = new Map<string, unknown>();
  function once<Instrument>(name: string, make: () => Instrument): Instrument {
    const known = instruments.get(name) as Instrument | undefined;
    if (known !== undefined) return known;
    const made = make();
    instruments.set(name, made);
    return made;
  }
  const unitOf = (name: string): { readonly unit?: string } => (name.endsWith('_seconds') ? { unit: 's' } : {});
  return {
    counter: (name, description) =>
      once(name, () => {
        const counter = meter.createCounter(name, { description, ...unitOf(name) });
        return { add: (amount = 1, labels) => counter.add(amount, labels) };
      }),
    gauge: (name, description) =>
      once(name, () => {
        const gauge = meter.createGauge(name, { description, ...unitOf(name) });
        return { set: (value, labels) => gauge.record(value, labels) };
      }),
    histogram: (name, description) =>
      once(name, () => {
        const histogram = meter.createHistogram(name, { description, ...unitOf(name) });
        return { observe: (value, labels) => histogram.record(value, labels) };
      }),
  };
}
