import { expect, test } from 'vitest';
import { thrownText } from './thrown-text.ts';

test('whatever is thrown has a text', () => {
  const numbered = Object.assign(new Error('x'), { message: 5 });
  const thrown = [new Error('broken'), new RangeError(''), numbered, 'in words', Symbol('mark'), 7n];
  expect(thrown.map(thrownText)).toEqual(['broken', 'RangeError', '5', 'in words', 'Symbol(mark)', '7']);
  expect(thrownText(undefined)).toBe('undefined was thrown instead of an error');
  expect(thrownText(null)).toBe('null was thrown instead of an error');
  const mute = {
    get message(): string {
      throw new Error('no');
    },
  };
  for (const odd of [Object.create(null), { toString: null, valueOf: null }, Object.setPrototypeOf(mute, Error.prototype)])
    expect(thrownText(odd)).toBe('something without a text was thrown instead of an error');
});
