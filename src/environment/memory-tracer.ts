import type { Span, SpanAttributes, SpanContext, SpanOptions, Tracer } from './tracing.ts';

/** A span as `MemoryTracer` remembers it. */
export interface RecordedSpan {
  readonly name: string;
  readonly kind: 'internal' | 'client' | 'server';
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  readonly attributes: Record<string, string | number | boolean>;
  readonly events: { readonly name: string; readonly attributes: SpanAttributes }[];
  error: unknown;
  ended: boolean;
}

/** Keeps spans in memory, to be looked at by tests. It follows no asynchronous calls: only parents that are passed count. */
export class MemoryTracer implements Tracer {
  /** In the order in which they began. */
  readonly spans: RecordedSpan[] = [];
  #count = 0;

  start(name: string, options: SpanOptions = {}): Span {
    const { parent, attributes, kind = 'internal' } = options;
    const number = ++this.#count;
    const context: SpanContext = {
      traceId: parent?.traceId ?? number.toString(16).padStart(32, '0'),
      spanId: number.toString(16).padStart(16, '0'),
      sampled: true,
    };
    const span: RecordedSpan = { name, kind, context, parent, attributes: { ...attributes }, events: [], error: undefined, ended: false };
    this.spans.push(span);
    const open = (change: () => void): void => {
      if (!span.ended) change();
    };
    return {
      context,
      setAttributes: (more) => open(() => Object.assign(span.attributes, more)),
      addEvent: (event, more = {}) => open(() => span.events.push({ name: event, attributes: more })),
      fail: (error) =>
        open(() => {
          span.error = error;
        }),
      end: () =>
        open(() => {
          span.ended = true;
        }),
      run: (body) => body(),
    };
  }

  /** The spans of that name. */
  named(name: string): readonly RecordedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }
}
