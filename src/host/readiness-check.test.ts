import { expect, test } from 'vitest';
import { addressOf } from './address.ts';
import { lineMatcher } from './readiness-check.ts';

test.each([
  ['8080', { host: '127.0.0.1', port: 8080 }],
  [':8080', { host: '127.0.0.1', port: 8080 }],
  ['db.local:5432', { host: 'db.local', port: 5432 }],
  ['[::1]:80', { host: '::1', port: 80 }],
  ['host:0', undefined],
  ['host:65536', undefined],
  ['host:', undefined],
  ['host', undefined],
  ['::1:80', undefined],
  ['', undefined],
])('%s is the address %o', (text, expected) => {
  expect(addressOf(text)).toEqual(expected);
});

test('text is held by a line, an expression matches in linear time', () => {
  expect(lineMatcher('a.b')('x a.b y')).toBe(true);
  expect(lineMatcher('a.b')('axb')).toBe(false);
  expect(lineMatcher({ expression: '^port \\d+$' })('port 80')).toBe(true);
  expect(lineMatcher({ expression: '(a+)+$' })(`${'a'.repeat(50_000)}!`)).toBe(false);
});
