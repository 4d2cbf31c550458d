export { openTelemetryTracer } from './open-telemetry-tracer.ts';
