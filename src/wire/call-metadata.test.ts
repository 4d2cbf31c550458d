import { expect, test } from 'vitest';
import { readTraceParent, traceParentOf } from './index.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test('a place in a trace goes to text and back', () => {
  for (const sampled of [true, false]) {
    const text = traceParentOf({ traceId, spanId, sampled });
    expect(text).toBe(`00-${traceId}-${spanId}-0${sampled ? 1 : 0}`);
    expect(readTraceParent(text)).toEqual({ traceId, spanId, sampled, remote: true });
  }
  // Of a later version what is known of it counts, and flags have more bits than one.
  expect(readTraceParent(`01-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, sampled: true, remote: true });
});

test.each([
  '',
  'nonsense',
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-01-more`,
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
])('%j is none', (text) => {
  expect(readTraceParent(text)).toBeUndefined();
});
