import { describe, expect, test } from 'vitest';
import { stateConformance } from '../../src/testing/index.ts';
import { capabilities, environment, killed } from './killed-store.ts';

describe('SQLite behind a process that is killed', () => {
  const cases = stateConformance(killed, { environment, capabilities, crashes: true, crashRuns: 4, limitMs: 20_000 }).filter(({ name }) =>
    /^crash: |^generated: K4/.test(name),
  );

  test('has cases', () => {
    expect(cases).toHaveLength(2);
  });

  test.each(cases)('$name', ({ run }) => run(), 240_000);
});
