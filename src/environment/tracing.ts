export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** A place in a trace, as it travels between programs (W3C Trace Context). */
export interface SpanContext {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** It came from another program. */
  readonly remote?: boolean;
}

/** One piece of work that is being timed. Its methods never throw; after `end` they do nothing. */
export interface Span {
  /** What work below this one names as its parent; absent where nothing is recorded. */
  readonly context: SpanContext | undefined;
  setAttributes(attributes: SpanAttributes): void;
  /** Something that happened at one moment of it. */
  addEvent(name: string, attributes?: SpanAttributes): void;
  /** It failed, and why. Does not end it. */
  fail(error: unknown): void;
  end(): void;
  /** Calls `body`. A tracer that follows asynchronous calls by itself takes this span for their parent meanwhile. */
  run<Result>(body: () => Result): Result;
}

export interface SpanOptions {
  readonly attributes?: SpanAttributes;
  /** Whose part it is; absent: a tracer that follows asynchronous calls by itself knows, any other begins a new trace. */
  readonly parent?: SpanContext | undefined;
  /** @default 'internal' */
  readonly kind?: 'internal' | 'client' | 'server';
}

/** The small tracing port. Adapters (OpenTelemetry and the like) live at the edge. */
export interface Tracer {
  start(name: string, options?: SpanOptions): Span;
}

/** The span of a tracer that records nothing. */
export const noSpan: Span = Object.freeze({
  context: undefined,
  setAttributes: () => {},
  addEvent: () => {},
  fail: () => {},
  end: () => {},
  run: <Result>(body: () => Result) => body(),
});

/** Records nothing; wrappers that would trace leave themselves out. */
export const noTracer: Tracer = Object.freeze({ start: () => noSpan });
