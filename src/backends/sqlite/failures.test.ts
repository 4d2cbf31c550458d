import { expect, test } from 'vitest';
import { asFailure } from './failures.ts';

test('a store whose companions may not be written says what to check', () => {
  const error = Object.assign(new Error("EACCES: permission denied, open '/s.db-holder'"), { code: 'EACCES' });
  expect(asFailure('/s.db', error).failure).toEqual({
    code: 'Unavailable',
    message: "/s.db may not be used: EACCES: permission denied, open '/s.db-holder'; check its permissions and those of its folder",
  });
});
