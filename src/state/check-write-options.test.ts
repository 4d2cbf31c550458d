import { expect, test } from 'vitest';
import { checkWriteOptions } from './check-write-options.ts';

test.each([
  [{ actor: 'é'.repeat(513) }, 'actor'],
  [{ actor: '\ud800' }, 'actor'],
  [{ owner: null }, 'owner'],
  [{ uid: 5 }, 'uid'],
  [{ currentVersion: '\udc00' }, 'currentVersion'],
  [{ expectedPhase: 'gone' }, 'expectedPhase'],
])('%j is Invalid', (options, path) => {
  expect(() => checkWriteOptions(options as never)).toThrow(
    expect.objectContaining({ code: 'Invalid', issues: [expect.objectContaining({ path })] }),
  );
});

test('what could be stored is let through', () => {
  checkWriteOptions({});
  checkWriteOptions({ actor: 'é'.repeat(512), owner: '', uid: '', currentVersion: 'undefined', expectedPhase: 'any' });
});
