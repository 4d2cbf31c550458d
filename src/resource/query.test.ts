import { describe, expect, test } from 'vitest';
import type { LabelTerm } from './index.ts';
import { compileIdQuery, compileQuery, makeResource, matchesQuery, parseLabelNumber, parseLabelQuery } from './index.ts';

const withLabels = (labels: Record<string, string>, id = 'a') =>
  makeResource({ metadata: { namespace: 'n', type: 'T.x', id, labels }, spec: null });
const matches = (term: LabelTerm, labels: Record<string, string>): boolean =>
  matchesQuery(withLabels(labels), { labelQueries: [{ terms: [term] }] });

describe('parseLabelNumber', () => {
  test.each([
    ['0', 0n],
    ['-5', -5n],
    ['  7 ', 7n],
    ['007', 7n],
    ['1k', 1000n],
    ['1 k', 1000n],
    ['2M', 2_000_000n],
    ['3g', 3n * 10n ** 9n],
    ['1t', 10n ** 12n],
    ['1P', 10n ** 15n],
    ['4Ki', 4096n],
    ['4GiB', 4n * 2n ** 30n],
    ['4GB', 4n * 10n ** 9n],
    ['1mi', 2n ** 20n],
    ['1ti', 2n ** 40n],
    ['1pi', 2n ** 50n],
    ['5 mice', 5n * 2n ** 20n],
    ['5 monkeys', 5_000_000n],
    ['99999999999999999999', 99999999999999999999n],
    ['9999999999pi', 9999999999n * 2n ** 50n],
    ['', undefined],
    ['-', undefined],
    ['abc', undefined],
    ['1.5', undefined],
    ['1.5k', undefined],
    ['1 1', undefined],
    ['1-2', undefined],
    ['--1', undefined],
    ['1 i', undefined],
    ['5 apples', undefined],
    ['k', undefined],
  ])('%j is %s', (text, expected) => {
    expect(parseLabelNumber(text)).toBe(expected);
  });
});

describe('terms', () => {
  test('inverted ones match resources that lack the label, comparisons never do', () => {
    const inverted: LabelTerm[] = [
      { key: 'a', op: 'exists', invert: true },
      { key: 'a', op: 'equal', values: ['x'], invert: true },
      { key: 'a', op: 'in', values: ['x'], invert: true },
    ];
    for (const term of inverted) expect([matches(term, {}), matches(term, { a: 'x' })], term.op).toEqual([true, false]);
    for (const op of ['lessThan', 'lessOrEqual', 'lessThanNumeric', 'lessOrEqualNumeric'] as const) {
      for (const invert of [false, true]) expect(matches({ key: 'a', op, values: ['5'], invert }, {}), op).toBe(false);
    }
  });

  test('numeric ones never match what is not a number, inverted or not', () => {
    for (const op of ['lessThanNumeric', 'lessOrEqualNumeric'] as const) {
      for (const invert of [false, true]) expect(matches({ key: 'a', op, values: ['5'], invert }, { a: 'many' })).toBe(false);
    }
  });

  test('text is ordered by its UTF-8 bytes', () => {
    expect(matches({ key: 'a', op: 'lessThan', values: ['🌍'] }, { a: '\uffee' })).toBe(true);
    expect(matches({ key: 'a', op: 'lessOrEqual', values: ['\uffee'] }, { a: '🌍' })).toBe(false);
    expect(matches({ key: 'a', op: 'lessOrEqual', values: ['b'] }, { a: 'b' })).toBe(true);
    expect(matches({ key: 'a', op: 'lessThan', values: ['9'] }, { a: '10' })).toBe(true);
  });

  test('names of Object.prototype are no labels', () => {
    expect(matches({ key: 'toString', op: 'exists' }, {})).toBe(false);
    expect(matches({ key: 'constructor', op: 'exists' }, { constructor: 'x' })).toBe(true);
  });

  test('no query, and a query without terms, match everything', () => {
    expect(compileQuery({})).toBeUndefined();
    expect(compileQuery({ labelQueries: [] })).toBeUndefined();
    expect(compileQuery({ labelQueries: [{ terms: [{ key: 'a', op: 'exists' }] }, { terms: [] }] })).toBeUndefined();
    expect(compileQuery({ idQuery: '' })).toBeUndefined();
  });

  test.each([
    [{ labelQueries: [{}] }, 'labelQueries[0].terms'],
    [{ labelQueries: [{ terms: [{ key: '', op: 'exists' }] }] }, 'labelQueries[0].terms[0].key'],
    [{ labelQueries: [{ terms: [] }, { terms: [{ key: 'a', op: 'equal' }] }] }, 'labelQueries[1].terms[0].values'],
    [{ labelQueries: [{ terms: [{ key: 'a', op: 'lessThanNumeric', values: ['x'] }] }] }, 'labelQueries[0].terms[0].values[0]'],
    [{ labelQueries: [{ terms: [{ key: 'a', op: 'matches', values: ['x'] }] }] }, 'labelQueries[0].terms[0].op'],
    [{ idQuery: '(' }, 'idQuery'],
    [{ idQuery: 5 }, 'idQuery'],
  ])('%j is Invalid', (query, path) => {
    expect(() => compileQuery(query as never)).toThrow(
      expect.objectContaining({ code: 'Invalid', issues: [expect.objectContaining({ path })] }),
    );
  });
});

describe('parseLabelQuery', () => {
  test.each([
    ['app=web', [{ key: 'app', op: 'equal', values: ['web'] }]],
    ['app==web', [{ key: 'app', op: 'equal', values: ['web'] }]],
    ['app!=web', [{ key: 'app', op: 'equal', values: ['web'], invert: true }]],
    ['app=', [{ key: 'app', op: 'equal', values: [''] }]],
    ['app', [{ key: 'app', op: 'exists', invert: false }]],
    ['!app', [{ key: 'app', op: 'exists', invert: true }]],
    [' example.dev/app in (a, b) ', [{ key: 'example.dev/app', op: 'in', values: ['a', 'b'], invert: false }]],
    ['app notin (a)', [{ key: 'app', op: 'in', values: ['a'], invert: true }]],
    ['size<5', [{ key: 'size', op: 'lessThanNumeric', values: ['5'] }]],
    ['size <= 4Gi', [{ key: 'size', op: 'lessOrEqualNumeric', values: ['4Gi'] }]],
    ['size>5', [{ key: 'size', op: 'lessOrEqualNumeric', values: ['5'], invert: true }]],
    ['size>=5', [{ key: 'size', op: 'lessThanNumeric', values: ['5'], invert: true }]],
    ['name<abc', [{ key: 'name', op: 'lessThan', values: ['abc'] }]],
    [
      'a=1,!b,c in (x,y)',
      [
        { key: 'a', op: 'equal', values: ['1'] },
        { key: 'b', op: 'exists', invert: true },
        { key: 'c', op: 'in', values: ['x', 'y'], invert: false },
      ],
    ],
  ])('%s', (text, terms) => {
    expect(parseLabelQuery(text)).toEqual({ terms });
  });

  test.each(['', ',', 'a=b,', 'a b', '=b', 'a in b', 'a in (b', '!', 'a=b=c', '(a)'])('%j is Invalid', (text) => {
    expect(() => parseLabelQuery(text)).toThrow(expect.objectContaining({ code: 'Invalid' }));
  });
});

describe('compileIdQuery', () => {
  // What needs no engine must answer as the engine does.
  test.each([
    ['web', ['web', 'a-web-b'], ['we', 'WEB']],
    ['^web', ['web', 'web-1'], ['a-web']],
    ['web$', ['web', 'a-web'], ['web-1']],
    ['^web$', ['web'], ['web-1', 'a-web']],
    ['^a\\.b$', ['a.b'], ['axb']],
    ['a\\-b', ['a-b'], ['ab']],
    ['^$', [], ['a']],
    ['a\\$', ['a$'], ['a']],
    ['a.b', ['a.b', 'axb'], ['ab']],
    ['^(a|b)$', ['a', 'b'], ['ab']],
    ['(?i)web', ['WEB', 'web'], ['wab']],
    ['a{2}', ['aa'], ['a']],
    ['^[^-]+$', ['ab'], ['a-b']],
    ['a/b:c', ['a/b:c'], ['a/b']],
  ])('%s', (expression, matching, others) => {
    const matcher = compileIdQuery(expression);
    for (const id of matching) expect(matcher(id), id).toBe(true);
    for (const id of others) expect(matcher(id), id).toBe(false);
  });

  test('an expensive expression takes linear time', () => {
    const matcher = compileIdQuery('^(([a-z])+.)+[A-Z]([a-z])+$');
    expect(matcher('a'.repeat(1000))).toBe(false);
  }, 2000);
});
