import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Bytes, canonicalText, freezeSpec } from '../resource/index.ts';
import { parseYaml, parseYamlValue } from './yaml-parse.ts';
import { compactYaml, stringifyYaml } from './yaml-stringify.ts';

const text = fc.string({ unit: 'binary' });
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Number.isInteger(value)),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    text,
    number,
    fc.boolean(),
    fc.constant(null),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
    fc.uint8Array().map((bytes) => Bytes.from(bytes)),
    fc.constantFrom(
      'y',
      'no',
      '1e3',
      '0x10',
      '1_000',
      '<<',
      '=',
      '~',
      '12:30:45',
      '2026-01-01',
      ' a',
      'a ',
      '\t',
      '- a',
      '#',
      ': ',
      '|',
      '.5',
      '+1',
    ),
    fc.array(tie('any')),
    fc.dictionary(
      text.filter((key) => key !== '__proto__'),
      tie('any'),
    ),
  ),
})).any;

describe('round trips', () => {
  test('what is written reads back as exactly the same', () => {
    fc.assert(
      fc.property(value, (original) => {
        const frozen = freezeSpec(original);
        expect(canonicalText(parseYamlValue(stringifyYaml(frozen)))).toBe(canonicalText(frozen));
        expect(canonicalText(parseYamlValue(compactYaml(frozen)))).toBe(canonicalText(frozen));
      }),
      { numRuns: 300 },
    );
  });
});

describe('what is refused, with its place', () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
    .split('')
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`)
    .join('\n')}\n`;
  test.each([
    ['an alias bomb', bomb, /more than 200000 nodes/],
    ['merge keys', 'a: &x {b: 1}\nc: {<<: *x}', /f:2:5: .*merge keys/],
    ['deep flow', '['.repeat(100_000), /nested deeper/],
    ['deep block', '- '.repeat(5_000), /nested deeper/],
    ['duplicate keys', 'a: 1\nb: 2\na: 3', /f:3:1: a: this key stands here twice/],
    ['1e400', 'a: 1e400', /f:1:4: a: 1e400 is not a finite number/],
    ['a rounded float', 'a: 9007199254740993.0', /beyond 2\^53/],
    ['lone surrogates', 'a: "\\ud800"', /well-formed|surrogate/i],
    ['__proto__', '__proto__: {a: 1}', /not allowed/],
    ['unknown tags', 'a: !ruby/object {}', /ruby/],
    ['a script tag', 'a: !!js/function "x"', /js\/function/],
    ['bad binary', 'a: !!binary "*"', /base64/],
    ['bad syntax', 'a: [1, 2', /f:/],
    ['a dangling alias', 'a: *b', /b/],
  ])('%s', (_name, source, expected) => {
    expect(() => parseYaml(source, { file: 'f' })).toThrow(expected);
    expect(({} as { a?: unknown }).a).toBeUndefined();
  });

  test('integers beyond 2^53 are exact', () => {
    expect(parseYamlValue('9007199254740993')).toBe(9007199254740993n);
    expect(parseYamlValue('-0')).toBe(0);
  });

  test('positions of paths', () => {
    const [document] = parseYaml('metadata:\n  id: a\nspec:\n  list:\n    - x\n    - y: 1\n');
    expect(document?.position(['spec', 'list', 1, 'y'])).toEqual({ line: 6, column: 7 });
    expect(document?.position(['spec', 'nothing'])).toEqual({ line: 3, column: 1 });
  });
});
