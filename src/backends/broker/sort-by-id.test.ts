import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareIds } from '../../resource/index.ts';
import { sortById } from './sort-by-id.ts';

const character = fc.constantFrom('a', 'b', '0', '-', '~', 'þ', 'ÿ', 'Ā', '\uffee', '\u{1f600}');
// Enough of them: few are compared with each other.
const ids = fc.uniqueArray(fc.string({ unit: character, minLength: 1, maxLength: 12 }), { minLength: 24, maxLength: 400, size: 'max' });

test.each(['', 'thing-', '\u{1f600}\u{1f600}\u{1f600}'])('sorts ids that begin with %j as comparing them does', (prefix) => {
  fc.assert(
    fc.property(ids, (found) => {
      const entries = found.map((id) => ({ id: prefix + id }));
      const expected = [...entries].sort((left, right) => compareIds(left.id, right.id));
      sortById(entries);
      expect(entries).toEqual(expected);
    }),
    { numRuns: 150 },
  );
});

test('what comes after a character beyond ASCII does not count before it', () => {
  const entries = [...Array.from({ length: 30 }, (_, index) => ({ id: `a${index}` })), { id: 'ü0' }, { id: 'é1' }];
  sortById(entries);
  expect(entries.slice(-2)).toEqual([{ id: 'é1' }, { id: 'ü0' }]);
});

test('sorts many that differ late', () => {
  const entries = Array.from({ length: 5_000 }, (_, index) => ({
    id: `${'x'.repeat(50)}${(index * 7919) % 5_000}${'y'.repeat(index % 7)}`,
  }));
  const expected = [...entries].sort((left, right) => compareIds(left.id, right.id));
  sortById(entries);
  expect(entries).toEqual(expected);
});
