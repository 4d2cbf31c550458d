import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bytes, sameValue } from '../resource/index.ts';
import { differences } from './differences.ts';
import type { Desired, Live } from './port.ts';

const pair = (desired: unknown, live: unknown): [Desired, Live] => [
  { ref: {}, labels: { a: '1', b: '2' }, annotations: {}, body: desired } as unknown as Desired,
  { ref: {}, labels: { a: '1', c: '3' }, annotations: {}, body: live } as unknown as Live,
];
const inSpec = (desired: unknown, live: unknown): unknown =>
  differences(...pair(desired, live)).filter(({ path }) => path.startsWith('spec'));

test('names the place and both sides', () => {
  expect(differences(...pair({ list: [1, { x: 'new' }], 'odd key': true }, { list: [1, { x: 'old' }, 3], gone: null }))).toEqual([
    { path: 'labels.b', desired: '2' },
    { path: 'labels.c', live: '3' },
    { path: 'spec.list[1].x', live: 'old', desired: 'new' },
    { path: 'spec.list[2]', live: 3 },
    { path: 'spec["odd key"]', desired: true },
    { path: 'spec.gone', live: null },
  ]);
});

test('another sort of value is one difference; bytes are compared as such; names of Object are only names', () => {
  expect(inSpec({ a: [1] }, { a: { 0: 1 } })).toEqual([{ path: 'spec.a', live: { 0: 1 }, desired: [1] }]);
  expect(inSpec({ a: Bytes.from(Uint8Array.of(1)) }, { a: Bytes.from(Uint8Array.of(1)) })).toEqual([]);
  expect(inSpec({ a: Bytes.from(Uint8Array.of(1)) }, { a: Bytes.from(Uint8Array.of(2)) })).toHaveLength(1);
  expect(inSpec({}, { toString: 'x' })).toEqual([{ path: 'spec.toString', live: 'x' }]);
});

test('none exactly when both are the same', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(value, value, (one, two) => {
      expect(inSpec(one, one)).toEqual([]);
      expect((inSpec(one, two) as unknown[]).length === 0).toBe(sameValue(one, two));
    }),
  );
});
