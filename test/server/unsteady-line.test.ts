import { describe, expect, test } from 'vitest';
import { lineCases, suffered } from './unsteady-line.ts';

const faults = { delayMs: 1, cutAfter: [1_200, 5_000], halfOpen: 0.3, halfOpenMs: 30 } as const;

describe('over a line that is slow, dies unnoticed and breaks in the middle of frames', () => {
  test.each(lineCases(faults, { runs: 1, only: /^(watch|bookmarks|generated)/ }))('$name', ({ run }) => run(), 60_000);

  test('lines did break', () => expect(suffered.cuts).toBeGreaterThan(2));
});
