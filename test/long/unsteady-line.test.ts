import { describe, expect, test } from 'vitest';
import { lineCases, suffered } from '../server/unsteady-line.ts';

describe.each([
  ['that is slow', { delayMs: 3 }],
  ['that breaks in the middle of frames', { delayMs: 1, cutAfter: [10_000, 60_000] }],
  ['that dies unnoticed before it breaks', { cutAfter: [10_000, 60_000], halfOpen: 0.5, halfOpenMs: 50 }],
] as const)('over a line %s', (_name, faults) => {
  test.each(lineCases(faults, { runs: 5 }))('$name', ({ run }) => run());
});

test('lines did break', () => expect(suffered.cuts).toBeGreaterThan(10));
