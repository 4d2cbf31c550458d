import { describe, expect, test } from 'vitest';
import { makeResource } from '../../resource/index.ts';
import { parseYaml } from '../../wire/index.ts';
import { UsageError } from '../exit-codes.ts';
import { ageText, durationText, elapsedText, parseDuration } from './age.ts';
import { jsonText, parseOutput, structured } from './format.ts';
import { diffText, lineDiff } from './line-diff.ts';
import { masked } from './mask.ts';
import { shellWord } from './names.ts';
import { Table } from './table.ts';
import { cutMiddle, cutText, padText, textWidth } from './text-width.ts';

describe('ages and durations', () => {
  test.each([
    [-5, '0s'],
    [999, '0s'],
    [119_000, '119s'],
    [120_000, '2m'],
    [150_000, '2m30s'],
    [600_000, '10m'],
    [179 * 60_000, '179m'],
    [3 * 3_600_000, '3h'],
    [47 * 3_600_000, '47h'],
    [48 * 3_600_000, '2d'],
  ])('%d ms is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  test('what took less than a second is told in milliseconds', () => {
    expect([-1, 0, 150.7, 999, 1_000, 150_000].map(elapsedText)).toEqual(['0ms', '0ms', '150ms', '999ms', '1s', '2m30s']);
  });

  test('an age that cannot be told says so', () => {
    expect(ageText('', 0)).toBe('<unknown>');
    expect(ageText('1970-01-01T00:00:01Z', 31_000)).toBe('30s');
  });

  test.each([
    ['30', 30_000],
    ['0.5', 500],
    ['500ms', 500],
    ['30s', 30_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['', undefined],
    ['-1s', undefined],
    ['soon', undefined],
    ['5 s', undefined],
    ['1e3s', undefined],
  ])('%j is read as %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe('the width of text', () => {
  test.each([
    ['abc', 3],
    ['né', 2],
    ['ne\u0301', 2],
    ['資源', 4],
    ['カタカナ', 8],
    ['한글', 4],
    ['🚀', 2],
    ['👩\u200d💻', 2],
    ['👩\u200d👩\u200d👧\u200d👦', 2],
    ['👍🏽', 2],
    ['🇩🇪', 2],
    ['❤\ufe0f', 2],
    ['❤', 1],
    ['1\ufe0f\u20e3', 2],
    ['ｶﾞ', 2],
    ['ａ', 2],
    ['　', 2],
    ['각', 2],
    ['\u1100\u1161\u11a8', 2],
    ['𠀀', 2],
    ['กำ', 2],
    ['é\u0323', 1],
    ['\u0301', 0],
    ['', 0],
  ])('%s', (text, width) => {
    expect(textWidth(text)).toBe(width);
    expect(textWidth(padText(text, 10))).toBe(10);
  });

  test('a cut never splits a character, and says that there was more', () => {
    expect(cutText('resource', 8)).toBe('resource');
    expect(cutText('resource', 5)).toBe('reso…');
    expect(cutText('資源名', 5)).toBe('資源…');
    expect(cutText('資源名', 4)).toBe('資…');
    expect(cutText('a👩\u200d💻b', 3)).toBe('a…');
    expect(cutText('ne\u0301e\u0301', 2)).toBe('n…');
  });

  test('a cut in the middle keeps both ends, and is never wider', () => {
    expect(cutMiddle('resource', 8)).toBe('resource');
    expect(cutMiddle('resource', 5)).toBe('re…ce');
    expect(cutMiddle('resource', 4)).toBe('re…e');
    expect(cutMiddle('資源名資源', 6)).toBe('資…源');
    expect(cutMiddle('👩\u200d💻👩\u200d💻👩\u200d💻', 5)).toBe('👩\u200d💻…👩\u200d💻');
    for (const text of ['resource', '資源名資源', 'a👩\u200d💻b👍🏽c', 'e\u0301'.repeat(9)])
      for (let columns = 1; columns < 12; columns++) expect(textWidth(cutMiddle(text, columns))).toBeLessThanOrEqual(columns);
  });
});

describe('tables', () => {
  const rows = [
    ['資源', 'ready', 'all of it'],
    ['a-very-long-id-that-is-no-problem', 'no', 'x'.repeat(200)],
  ];

  test('columns stand below each other, wide characters or not', () => {
    const lines = new Table(['ID', 'STATE', 'REASON']).render(rows, { columns: 0 }).trimEnd().split('\n');
    const place = (line: string, text: string): number => textWidth(line.slice(0, line.indexOf(text)));
    expect(lines).toHaveLength(3);
    expect(place(lines[0] as string, 'STATE')).toBe(36);
    expect(place(lines[1] as string, 'ready')).toBe(36);
    expect(place(lines[2] as string, 'no ')).toBe(36);
    expect(lines[2]?.endsWith('x'.repeat(200))).toBe(true);
  });

  test.each([80, 200])('on a terminal of %d columns no row is longer, and nothing is left behind it', (columns) => {
    const lines = new Table(['ID', 'STATE', 'REASON']).render(rows, { columns }).trimEnd().split('\n');
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(columns);
    for (const line of lines) expect(line).toBe(line.trimEnd());
    expect(lines[2]?.endsWith('…')).toBe(true);
  });

  const wide = [
    [`shop/${'x'.repeat(90)}/api`, 'Running', 'true', '👩\u200d💻 says 資源 ne\u0301e'],
    ['shop/db', 'CrashLoopBackOff', 'false', `exited with 1: ${'y'.repeat(100)}`],
  ];
  test('80 columns: a long id does not push the others off the screen', () => {
    expect(new Table(['ID', 'STATE', 'READY', 'REASON']).render(wide, { columns: 80 })).toBe(
      `ID                               STATE              READY   REASON
shop/xxxxxxxxxx…xxxxxxxxxx/api   Running            true    👩\u200d💻 says 資源 ne\u0301e
shop/db                          CrashLoopBackOff   false   exited with 1: yyyy…
`,
    );
  });

  test('200 columns: everything that fits is whole', () => {
    const lines = new Table(['ID', 'STATE', 'READY', 'REASON']).render(wide, { columns: 200 }).split('\n');
    expect(lines[1]).toBe(`shop/${'x'.repeat(90)}/api   Running            true    👩\u200d💻 says 資源 ne\u0301e`);
    expect(lines[2]).toBe(`shop/db${' '.repeat(95)}CrashLoopBackOff   false   exited with 1: ${'y'.repeat(55)}…`);
    expect(textWidth(lines[2] as string)).toBe(200);
  });

  test('headings come from stores too', () => {
    expect(new Table(['A\u001b[31m', 'B']).render([['1', '2']], { columns: 0 })).toBe('A\\x1b[31m   B\n1           2\n');
  });

  test('rows that come later keep the columns; without headings there are none', () => {
    const table = new Table(['ID', 'N']);
    table.render([['wide-one', '1']], { columns: 0 });
    expect(table.render([['b', '2']], { columns: 0, headings: false })).toBe('b          2\n');
    expect(new Table([]).render([['a', 'b']], { columns: 0, headings: false })).toBe('a   b\n');
  });

  test('escapes and newlines are shown, not obeyed', () => {
    expect(new Table(['ID']).render([['a\u001b[31m\n\u202e']], { columns: 0 })).toBe('ID\na\\x1b[31m\\n\\u202e\n');
  });
});

test('a word of a command to copy is one word for a shell', () => {
  for (const plain of ['shop', 'shop/api', 'Stacks.host.example.dev/finalizer', 'a-b_c:1@x']) expect(shellWord(plain)).toBe(plain);
  expect(shellWord('a; rm -r ~')).toBe("'a; rm -r ~'");
  expect(shellWord("it's")).toBe("'it'\\''s'");
  for (const evil of ['', '-x', '$(x)', '`x`', 'a b', 'a\nb', '*', '~', '資源', '#', '!x']) expect(shellWord(evil)).toMatch(/^'.*'$/);
});

describe('structured output', () => {
  const resource = makeResource({
    metadata: { namespace: 'default', type: 'Things.example.dev', id: 'a' },
    spec: { n: 9_007_199_254_740_993n },
  });

  test('one resource when one was asked for, else items; both read back', () => {
    const one = structured('json', [resource], true);
    expect(one).toContain('"n": 9007199254740993');
    expect(JSON.parse(one)).toMatchObject({ metadata: { id: 'a' } });
    expect(JSON.parse(structured('json', [], false))).toEqual({ items: [] });
    const yaml = parseYaml(structured('yaml', [resource], false), { file: 'x' })[0]?.value;
    expect(yaml).toMatchObject({ items: [{ metadata: { id: 'a' }, spec: { n: 9_007_199_254_740_993n } }] });
  });

  test('text that looks like the mark of an integer stays text', () => {
    expect(jsonText({ a: '"\\u0000integer:0"', b: 1n }, 0)).toBe(`{"a":${JSON.stringify('"\\u0000integer:0"')},"b":1}`);
  });

  test('an output that there is not', () => {
    expect(() => parseOutput('xml')).toThrow(UsageError);
    expect(parseOutput(undefined)).toBe('table');
  });
});

describe('masks', () => {
  test('no value is left, its shape is, and a change can be seen', () => {
    const [first, second] = [
      masked({ password: 'one', list: [1, true, null] }, 'salt'),
      masked({ password: 'two', list: [1, true, null] }, 'salt'),
    ];
    expect(JSON.stringify(first)).not.toMatch(/one|true|null/);
    expect(Object.keys(first as object)).toEqual(['password', 'list']);
    expect(first).not.toEqual(second);
    expect(masked({ password: 'one', list: [1, true, null] }, 'salt')).toEqual(first);
    expect((masked({ password: 'one' }, 'other') as { password: string }).password).not.toBe((first as { password: string }).password);
  });
});

describe('differences of texts', () => {
  test('the same is nothing', () => {
    expect(diffText('a\nb\n', 'a\nb\n')).toBe('');
    expect(diffText('', '')).toBe('');
  });

  test('lines around a change are shown, others are not', () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}\n`).join('');
    const after = before.replace('line 4\n', 'line four\n').replace('line 15\n', '');
    expect(diffText(before, after)).toBe(
      '  …\n' +
        [1, 2, 3].map((n) => `  line ${n}\n`).join('') +
        '- line 4\n+ line four\n' +
        [5, 6, 7].map((n) => `  line ${n}\n`).join('') +
        '  …\n' +
        [12, 13, 14].map((n) => `  line ${n}\n`).join('') +
        '- line 15\n' +
        [16, 17, 18].map((n) => `  line ${n}\n`).join(''),
    );
  });

  test('what is kept and added is the new text, what is kept and removed the old one', () => {
    const texts = ['', 'a\n', 'a\nb\n', 'b\na\n', 'a\na\nb\n', 'x\ny\nz\na\nb\nc\n', 'c\nb\na\n'];
    for (const before of texts) {
      for (const after of texts) {
        const lines = lineDiff(before, after);
        const side = (without: string): string => lines.flatMap(({ sign, line }) => (sign === without ? [] : [`${line}\n`])).join('');
        expect(side('+')).toBe(before);
        expect(side('-')).toBe(after);
      }
    }
  });
});
