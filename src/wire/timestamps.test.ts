import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fromTimestamp, toTimestamp } from './timestamps.ts';

test.each([
  ['1970-01-01T00:00:00Z', 0, 0],
  ['1969-12-31T23:59:59.5Z', -1, 500_000_000],
  ['2026-02-28T23:59:59.000000001Z', 1772323199, 1],
  ['2000-02-29T12:00:00.123Z', 951825600, 123_000_000],
  ['0001-01-01T00:00:00Z', -62135596800, 0],
  ['9999-12-31T23:59:59.999999999Z', 253402300799, 999_999_999],
])('%s', (text, seconds, nanos) => {
  expect(toTimestamp(text)).toEqual({ seconds, nanos });
  expect(toTimestamp(fromTimestamp({ seconds, nanos }))).toEqual({ seconds, nanos });
});

test('agrees with the clock of the language, and keeps nanoseconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62135596800, max: 253402300799 }), fc.integer({ min: 0, max: 999_999_999 }), (seconds, nanos) => {
      const text = fromTimestamp({ seconds, nanos });
      expect(text.slice(0, 19)).toBe(new Date(seconds * 1000).toISOString().slice(0, 19));
      expect(toTimestamp(text)).toEqual({ seconds, nanos });
    }),
  );
});

test('whole milliseconds come back as they were, also of days and hours that run over', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62135596800, max: 253402300799 }), fc.integer({ min: 0, max: 999 }), (seconds, millis) => {
      const text = fromTimestamp({ seconds, nanos: millis * 1e6 });
      expect(text).toBe(new Date(seconds * 1000 + millis).toISOString().replace('.000Z', 'Z'));
      expect(toTimestamp(text)).toEqual({ seconds, nanos: millis * 1e6 });
    }),
  );
  for (const [text, same] of [
    ['2026-02-30T00:00:00.500Z', '2026-03-02T00:00:00.5Z'],
    ['2026-02-28T24:00:00.000Z', '2026-03-01T00:00:00Z'],
    ['2026-12-31T23:59:60.000Z', '2027-01-01T00:00:00Z'],
  ] as const)
    expect(toTimestamp(text)).toEqual(toTimestamp(same));
});

test('what is no time has none', () => {
  expect(toTimestamp('')).toBeUndefined();
  expect(toTimestamp('yesterday')).toBeUndefined();
  expect(fromTimestamp(undefined)).toBe('');
  for (const [seconds, nanos] of [
    [-62135596801, 0],
    [253402300800, 0],
    [2 ** 53 - 1, 0],
    [0, -1],
    [0, 1_000_000_000],
  ] as const)
    expect(fromTimestamp({ seconds, nanos })).toBe('');
});
