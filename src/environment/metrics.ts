export type MetricLabels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount?: number, labels?: MetricLabels): void;
}
export interface Gauge {
  set(value: number, labels?: MetricLabels): void;
}
export interface Histogram {
  observe(value: number, labels?: MetricLabels): void;
}

/**
 * The small metrics port; Prometheus names, seconds as unit. Asking twice for one name gives the same instrument. `labels` names
 * every label that its values may carry: some libraries must know them from the start.
 */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  histogram(name: string, help: string, labels?: readonly string[]): Histogram;
}
