import type { SpanContext as OtelSpanContext, Tracer as OtelTracer } from '@opentelemetry/api';
import { context, isSpanContextValid, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { Span, SpanContext, Tracer } from '../../environment/index.ts';

const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, server: SpanKind.SERVER } as const;

/**
 * Spans of OpenTelemetry: `nodeEnvironment({ tracer: openTelemetryTracer() })`. A span without a parent takes the active one of
 * OpenTelemetry's own context, and while its work runs it is the active one, so that instrumentation of other libraries fits in; both
 * need a context manager to be set up, as its SDK for Node does.
 *
 * @param tracer by default the global one of the name `steadystate`
 */
export function openTelemetryTracer(tracer: OtelTracer = trace.getTracer('steadystate')): Tracer {
  return {
    start(name, { attributes, parent, kind = 'internal' } = {}) {
      // What else the active context carries (baggage) goes along.
      const active = context.active();
      const around = parent === undefined ? active : trace.setSpanContext(active, toOtel(parent));
      const span = tracer.startSpan(name, { kind: kinds[kind], ...(attributes && { attributes }) }, around);
      const within = trace.setSpan(around, span);
      const found = span.spanContext();
      return {
        context: isSpanContextValid(found) ? fromOtel(found) : undefined,
        setAttributes: (more) => void span.setAttributes(more),
        addEvent: (event, more) => void span.addEvent(event, more),
        fail(error) {
          const message = error instanceof Error ? error.message : String(error);
          span.recordException(error instanceof Error ? error : message);
          span.setStatus({ code: SpanStatusCode.ERROR, message });
        },
        end: () => span.end(),
        run: (body) => context.with(within, body),
      } satisfies Span;
    },
  };
}

function toOtel({ traceId, spanId, sampled, remote }: SpanContext): OtelSpanContext {
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, ...(remote === true && { isRemote: true }) };
}

function fromOtel({ traceId, spanId, traceFlags, isRemote }: OtelSpanContext): SpanContext {
  return { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0, ...(isRemote === true && { remote: true }) };
}
