import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundedText, compareIds, isWellFormed, pointerText, utf8Length, visibleText } from './index.ts';

const anyText = fc.string({ unit: 'binary' });

describe('compareIds', () => {
  test('orders as the UTF-8 bytes do', () => {
    fc.assert(
      fc.property(anyText, anyText, (left, right) => {
        expect(Math.sign(compareIds(left, right))).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
      }),
      { numRuns: 2000 },
    );
  });

  test('where UTF-16 units order otherwise', () => {
    const sorted = ['', 'A', 'a', 'aa', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'];
    expect(sorted.toReversed().sort(compareIds)).toEqual(sorted);
  });
});

describe('utf8Length and isWellFormed', () => {
  test('know UTF-8 and surrogates', () => {
    fc.assert(fc.property(anyText, (text) => utf8Length(text) === Buffer.byteLength(text)));
    const texts = ['a', '\ud800', 'a\udc00', '\udc00\ud800', '🌍', '\ud83c', '🌍\ud83c'];
    expect(texts.filter(isWellFormed)).toEqual(['a', '🌍']);
  });
});

describe('boundedText', () => {
  test('is well-formed, no longer than it may be, and what it was where it can', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 12 }), fc.constantFrom('', '…'), (text, limit, ending) => {
        const bounded = boundedText(text, limit, ending);
        expect(isWellFormed(bounded)).toBe(true);
        expect(bounded.length).toBeLessThanOrEqual(limit);
        if (isWellFormed(text) && text.length <= limit) expect(bounded).toBe(text);
        else if (text.length > limit) expect(bounded.endsWith(ending)).toBe(true);
      }),
    );
  });

  test('is cut between characters; half of one becomes the sign for what is none', () => {
    expect([boundedText('ab🌍c', 3), boundedText('ab🌍c', 4), boundedText('ab🌍c', 4, '…'), boundedText('a\ud83cb', 9)]).toEqual([
      'ab',
      'ab🌍',
      'ab…',
      'a\ufffdb',
    ]);
  });
});

describe('visibleText', () => {
  test('shows control characters, direction marks and lone surrogates', () => {
    expect(visibleText('a\nb\r\tc\u001b[31m\u0000\u202e\ud800')).toBe('a\\nb\\r\\tc\\x1b[31m\\x00\\u202e\\ud800');
    expect(visibleText('grüße 🌍 👩\u200d💻 ক্\u200dষ')).toBe('grüße 🌍 👩\u200d💻 ক্\u200dষ');
  });

  test('shows what has no width or is not meant for eyes', () => {
    expect(visibleText('a\u00adb\u200bc\u2060d\ufeffe\u061cf\u3164g\u{e0041}')).toBe(
      'a\\xadb\\u200bc\\u2060d\\ufeffe\\u061cf\\u3164g\\ue0041',
    );
  });

  test('keeps messages on one line', () => {
    expect(pointerText({ namespace: 'a\nb', type: 'T', id: '\u001b' })).toBe('T/a\\nb/\\x1b');
  });
});
