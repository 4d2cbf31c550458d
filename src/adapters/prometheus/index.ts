export type { PrometheusMetricsOptions } from './prometheus-metrics.ts';
export { prometheusMetrics } from './prometheus-metrics.ts';
