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

/** Text of several lines, of all that could be taken for something else where a line begins or ends. */
const lines = fc
  .array(
    fc.constantFrom(
      '',
      'a',
      ' a',
      'a ',
      '  ',
      '# a',
      'a # b',
      '---',
      '...',
      '- a',
      'a: b',
      '? a',
      '%A',
      '&a',
      '*a',
      '|',
      '>',
      '"',
      "'",
      '\t',
      'ä€🌍',
    ),
    {
      minLength: 2,
      maxLength: 6,
    },
  )
  .map((all) => all.join('\n'));

describe('text of several lines', () => {
  test('reads back as exactly the same, wherever it stands, as a key too', () => {
    fc.assert(
      fc.property(lines, lines, (one, two) => {
        for (const original of [one, [one, two], [[one], two], { a: one, b: { c: two, d: [one] } }, { [one]: two }]) {
          expect(parseYamlValue(stringifyYaml(original))).toEqual(original);
          expect(parseYamlValue(`x:\n${stringifyYaml(original).replace(/^(?=.)/gm, '  ')}`)).toEqual({ x: original });
        }
      }),
      { numRuns: 300 },
    );
  });

  test('is written line by line where a person could have written it so', () => {
    const program = "const a = 1;\n\nif (a)\n  console.log('a');\n";
    expect(stringifyYaml({ files: { 'a.mjs': program, b: 'one\ntwo' } })).toBe(
      "files:\n  a.mjs: |\n    const a = 1;\n\n    if (a)\n      console.log('a');\n  b: |-\n    one\n    two\n",
    );
    expect(stringifyYaml({ a: 'one\n\u001b[31mtwo\n' })).toBe('a: "one\\n\\e[31mtwo\\n"\n');
  });
});

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
    ['deep flow', '['.repeat(100_000), /f:1:\d+: nested deeper/],
    ['deep flow maps', '{a: '.repeat(100_000), /nested deeper/],
    ['deep block', '- '.repeat(100_000), /nested deeper/],
    ['deep block with tabs', '-\t'.repeat(5_000), /f:1:/],
    ['deep keys', '? '.repeat(100_000), /nested deeper/],
    ['deep keys in sequences', '- ? '.repeat(100_000), /nested deeper/],
    ['a staircase of maps', Array.from({ length: 3_000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'), /nested deeper/],
    ['a staircase of sequences', Array.from({ length: 3_000 }, (_, level) => `${' '.repeat(level)}-`).join('\n'), /nested deeper/],
    ['a deep document after others', `a: 1\n---\nb: 2\n---\n${'['.repeat(1_000)}`, /f:5:\d+: nested deeper/],
    ['one level too many', `${'['.repeat(102)}1${']'.repeat(102)}`, /nested deeper/],
    ['an alias of itself', 'a: &a [*a]', /nested deeper|nodes/],
    ['more signs than any spec has', '# x\n'.repeat(1_000_000), /words and signs/],
    ['duplicate keys', 'a: 1\nb: 2\na: 3', /f:3:1: a: this key stands here twice/],
    ['1e400', 'a: 1e400', /f:1:4: a: 1e400 is not a finite number/],
    ['a rounded float', 'a: 9007199254740993.0', /beyond 2\^53/],
    ['a number with a zero before it', 'a: 1\nb: [007, x]', /f:2:5: b\[0\]: 007 begins with a zero/],
    ['a signed one, a fraction, a tagged one', 'a: -01', /-01 begins/],
    ['a fraction with a zero too many', 'a: 00.5', /00\.5 begins/],
    ['a tagged number with a zero before it', 'a: !!int 010', /010 begins/],
    ['a file that says it is YAML 1.1', '%YAML 1.1\n---\na: yes', /f:2:1: YAML 1\.1 is not read/],
    ['line ends doubled by a careless copy', 'a: 1\r\r\nb: 2\r\r\n', /f:1:5: a carriage return/],
    ['line ends of long ago', 'a: 1\rb: 2\r', /carriage return|f:1:4/],
    ['a carriage return within text', 'a: |\n  x\ry\n', /f:2:4: a carriage return/],
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

  test('what looks deep within text is not', () => {
    const colours = Array.from({ length: 300 }, (_, index) => `printf "\\033[3${index % 8}m{{[["`).join('\n  ');
    expect(parseYamlValue(`a: |\n  ${colours}\n`)).toEqual({ a: `${colours.replaceAll('\n  ', '\n')}\n` });
    expect(parseYamlValue(JSON.stringify({ a: '['.repeat(500) }))).toEqual({ a: '['.repeat(500) });
    const deep = `${'['.repeat(100)}1${']'.repeat(100)}`;
    expect(JSON.stringify(parseYamlValue(deep))).toBe(deep);
  });

  test('line ends of Windows are line ends, in text as well', () => {
    const text = 'a: |\r\n  x\r\n  y\r\nb: >-\r\n  p\r\n  q\r\nc: "m\r\n  n"\r\n# end\r\nd: \'\'\r\n';
    expect(parseYamlValue(text)).toEqual({ a: 'x\ny\n', b: 'p q', c: 'm n', d: '' });
    expect(parseYamlValue('a: "x\\ry\\r\\n"')).toEqual({ a: 'x\ry\r\n' });
  });

  test('byte order marks are no part of a document, wherever files were put together', () => {
    const both = [{ a: 1 }, { b: 2 }];
    for (const text of [
      '\ufeffa: 1\n---\nb: 2\n',
      '\ufeff---\na: 1\n\ufeff---\nb: 2\n',
      '\ufeff---\r\na: 1\r\n---\r\n\ufeffb: 2\r\n',
      'a: 1\n...\n\ufeffb: 2\n',
      'a: 1\n--- # next\n\n\ufeff# of b\nb: 2\n',
    ])
      expect(parseYaml(text).map(({ value }) => value)).toEqual(both);
    // Within text it is a character as any other.
    expect(parseYamlValue('a: "x\ufeff"\nb: |\n  \ufeff---\n')).toEqual({ a: 'x\ufeff', b: '\ufeff---\n' });
    expect(() => parseYaml('\ufeffa: 1\n\ufeff---\nb: [\n', { file: 'f' })).toThrow(/f:[34]:/);
  });

  test('what older readers take for something else is the text that it is here', () => {
    const words = ['no', 'NO', 'on', 'Off', 'y', '22:22', '1:30:00', '2001-12-14', '1_000', '0b11', '=', '1.2.3'];
    expect(parseYamlValue(words.map((word) => `- ${word}\n`).join(''))).toEqual(words);
    expect(parseYamlValue('[0o17, 0x1F, 0, -0, 0.5, 1e3, 12e03]')).toEqual([15, 31, 0, 0, 0.5, 1000, 12000]);
  });

  test('an alias stands for the newest anchor before it', () => {
    expect(parseYamlValue('- &a 1\n- *a\n- &a 2\n- *a\n- &b [&a 3, *a]\n- *b\n- *a\n')).toEqual([1, 1, 2, 2, [3, 3], [3, 3], 3]);
  });

  test.each([
    ['blank lines', (count: number) => `${'\n'.repeat(count)}a: 1`],
    ['blank lines in text', (count: number) => `a: "x${'\n'.repeat(count)} y"`],
    ['aliases', (count: number) => `${Array.from({ length: count / 8 }, (_, index) => `- &x${index} 1\n- *x${index}`).join('\n')}\n`],
    ['keys', (count: number) => Array.from({ length: count / 8 }, (_, index) => `k${index}: 1`).join('\n')],
    ['documents', (count: number) => '--- 1\n'.repeat(count / 8)],
  ])('%s take time by their number, not by its square', (_name, text) => {
    const measure = (count: number): number => {
      const source = text(count);
      const start = performance.now();
      parseYaml(source);
      return performance.now() - start;
    };
    measure(4_000);
    const small = Math.min(measure(8_000), measure(8_000), measure(8_000));
    // Sixteen times as much: the square would be 256 times as long.
    expect(Math.min(measure(128_000), measure(128_000))).toBeLessThan(Math.max(small, 2) * 100);
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
