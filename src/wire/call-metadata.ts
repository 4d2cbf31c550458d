import type { SpanContext } from '../environment/index.ts';

/** Metadata of a write that says who writes, UTF-8. */
export const actorKey = 'steadystate-actor-bin';

/** Metadata of a call that says whose part it is (W3C Trace Context). */
export const traceParentKey = 'traceparent';

export function traceParentOf({ traceId, spanId, sampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** `undefined` for text that is none: it then counts as not given. */
export function readTraceParent(text: string): SpanContext | undefined {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text);
  if (match === null) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', more] = match;
  if (version === 'ff' || (version === '00' && more !== undefined) || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1, remote: true };
}
