export { openTelemetryMetrics } from './open-telemetry-metrics.ts';
export { openTelemetryTracer } from './open-telemetry-tracer.ts';
