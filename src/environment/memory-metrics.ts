import type { Counter, Gauge, Histogram, MetricLabels, Metrics } from './metrics.ts';

/** Drops everything. */
export const noMetrics: Metrics = {
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {} }),
  histogram: () => ({ observe: () => {} }),
};

/** Keeps metrics in memory, to be read by tests and by a text exposition. */
export class MemoryMetrics implements Metrics {
  readonly #values = new Map<string, Map<string, number>>();

  counter(name: string): Counter {
    const values = this.#instrument(name);
    return { add: (amount = 1, labels) => this.#set(values, labels, (before) => before + amount) };
  }

  gauge(name: string): Gauge {
    const values = this.#instrument(name);
    return { set: (value, labels) => this.#set(values, labels, () => value) };
  }

  /** Keeps the sum (`<name>_sum`) and the count (`<name>_count`). */
  histogram(name: string): Histogram {
    const sums = this.#instrument(`${name}_sum`);
    const counts = this.#instrument(`${name}_count`);
    return {
      observe: (value, labels) => {
        this.#set(sums, labels, (before) => before + value);
        this.#set(counts, labels, (before) => before + 1);
      },
    };
  }

  /** The value of one instrument for exactly these labels; 0 when it was never touched. */
  value(name: string, labels: MetricLabels = {}): number {
    return this.#values.get(name)?.get(labelKey(labels)) ?? 0;
  }

  #instrument(name: string): Map<string, number> {
    let values = this.#values.get(name);
    if (values === undefined) {
      values = new Map();
      this.#values.set(name, values);
    }
    return values;
  }

  #set(values: Map<string, number>, labels: MetricLabels | undefined, next: (before: number) => number): void {
    const key = labelKey(labels ?? {});
    values.set(key, next(values.get(key) ?? 0));
  }
}

function labelKey(labels: MetricLabels): string {
  return JSON.stringify(Object.entries(labels).sort(([left], [right]) => (left < right ? -1 : 1)));
}
