import { describe, expect, test } from 'vitest';
import { stateConformance } from '../../src/testing/index.ts';
import { capabilities, environment, killed } from '../conformance/killed-store.ts';

/** What a store promises over its end, here always by a kill: of histories, bookmarks and watches. */
describe('SQLite behind a process that is killed', () => {
  const cases = stateConformance(killed, { environment, capabilities, crashes: true, crashRuns: 25, limitMs: 20_000 }).filter(({ name }) =>
    /^crash: |^generated: K4|^claims: |restart|^bookmarks: W/.test(name),
  );

  test('has cases', () => {
    expect(cases.length).toBeGreaterThan(6);
  });

  test.each(cases)('$name', ({ run }) => run(), 600_000);
});
