import type { Registry } from 'prom-client';
import { Counter, Gauge, Histogram, register } from 'prom-client';
import type { Metrics } from '../../environment/index.ts';

export interface PrometheusMetricsOptions {
  /** Where the metrics stand. @default prom-client's global registry */
  readonly registry?: Registry;
  /** Upper bounds of histograms, seconds. @default prom-client's: 5 ms to 10 s */
  readonly bucketsSeconds?: readonly number[];
}

/**
 * Metrics in a registry of prom-client, to be scraped from there: `nodeEnvironment({ metrics: prometheusMetrics() })`. An instrument
 * that the registry has already is used; one of another kind under that name is an error. So is a label that was not named.
 */
export function prometheusMetrics(options: PrometheusMetricsOptions = {}): Metrics {
  const { registry = register, bucketsSeconds } = options;
  const registers = [registry];

  function instrument<Found extends object>(name: string, kind: { new (...given: never[]): Found }, make: () => Found): Found {
    const found: unknown = registry.getSingleMetric(name);
    if (found === undefined) return make();
    if (found instanceof kind) return found;
    throw new TypeError(`the metric ${name} is in the registry already, and is no ${kind.name}; give this one a registry of its own`);
  }

  return {
    counter(name, help, labels = []) {
      const counter = instrument(name, Counter, () => new Counter({ name, help, labelNames: [...labels], registers }));
      return { add: (amount = 1, values = {}) => counter.inc(values, amount) };
    },
    gauge(name, help, labels = []) {
      const gauge = instrument(name, Gauge, () => new Gauge({ name, help, labelNames: [...labels], registers }));
      return { set: (value, values = {}) => gauge.set(values, value) };
    },
    histogram(name, help, labels = []) {
      const histogram = instrument(
        name,
        Histogram,
        () =>
          new Histogram({
            name,
            help,
            labelNames: [...labels],
            registers,
            ...(bucketsSeconds && { buckets: [...bucketsSeconds] }),
          }),
      );
      return { observe: (value, values = {}) => histogram.observe(values, value) };
    },
  };
}
