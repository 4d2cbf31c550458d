import { createContext, runInContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { appendPath, Bytes, digest, freezeSpec, isFrozenValue, isWellFormed, maximumDepth, sameValue } from './index.ts';

const invalidAt = (path: string) => expect.objectContaining({ code: 'Invalid', issues: [expect.objectContaining({ path })] });

function nested(depth: number): unknown {
  let value: unknown = 'bottom';
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

/** Random plain data. */
const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'grapheme' }).filter(isWellFormed),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Number.isInteger(number)),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.bigInt({ min: 2n ** 53n }),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Bytes.from(bytes)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.string({ maxLength: 5 }).filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
})).value;

describe('freezeSpec', () => {
  test('answers a deeply frozen copy and leaves the argument alone', () => {
    const input = { list: [{ size: 1 }], map: { key: 'x' } };
    const value = freezeSpec(input);
    expect(value).toEqual(input);
    expect(value).not.toBe(input);
    expect([Object.isFrozen(value), Object.isFrozen(value.list), Object.isFrozen(value.list[0]), Object.isFrozen(value.map)]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect([Object.isFrozen(input), Object.isFrozen(input.list), Object.isFrozen(input.map)]).toEqual([false, false, false]);
  });

  test('gives back what it made, also as a part of something new', () => {
    const part = freezeSpec({ deep: [1] });
    expect(freezeSpec(part)).toBe(part);
    expect(freezeSpec({ part }).part).toBe(part);
    expect(isFrozenValue(part)).toBe(true);
    expect(isFrozenValue(Object.freeze({ deep: [1] })), 'frozen by somebody else is not known to be deeply frozen').toBe(false);
  });

  test('copies objects that somebody else froze, since their insides may change', () => {
    const inside = { size: 1 };
    const value = freezeSpec(Object.freeze({ inside }));
    inside.size = 2;
    expect(value.inside.size).toBe(1);
  });

  test('random plain data comes out equal, frozen, with the same digest', () => {
    fc.assert(
      fc.property(plain, (value) => {
        const frozen = freezeSpec(value);
        expect(sameValue(frozen, value)).toBe(true);
        expect(isFrozenValue(frozen)).toBe(true);
        expect(digest(frozen)).toBe(digest(value));
      }),
    );
  });

  test.each([
    ['undefined', { a: undefined }, 'spec.a'],
    ['NaN', { a: Number.NaN }, 'spec.a'],
    ['infinity', { a: [Number.NEGATIVE_INFINITY] }, 'spec.a[0]'],
    ['an unsafe integer', { a: 2 ** 53 }, 'spec.a'],
    ['a bigint that is a safe integer', { a: 5n }, 'spec.a'],
    ['a small negative bigint', { a: -(2n ** 53n) + 1n }, 'spec.a'],
    ['a date', { a: new Date(0) }, 'spec.a'],
    ['a map', { a: new Map([['x', 1]]) }, 'spec.a'],
    ['a class instance', { a: new (class Own {})() }, 'spec.a'],
    ['an error', { a: new Error('x') }, 'spec.a'],
    ['a byte array', { a: Uint8Array.of(1) }, 'spec.a'],
    ['a boxed text', { a: Object('x') as unknown }, 'spec.a'],
    ['a function', { a: () => 1 }, 'spec.a'],
    ['a symbol', { a: Symbol('x') }, 'spec.a'],
    ['a symbol as a key', { a: { [Symbol('x')]: 1 } }, 'spec.a'],
    ['__proto__ as a key', { a: JSON.parse('{"__proto__":1}') as unknown }, 'spec.a.__proto__'],
    ['half a surrogate pair', { a: '\udc00' }, 'spec.a'],
    ['half a surrogate pair as a key', { '\ud800': 1 }, 'spec["\\ud800"]'],
    ['a hole', { a: Object.assign([1], { length: 3 }) }, 'spec.a[1]'],
    ['a key with a dot', { 'a.b': [undefined] }, 'spec["a.b"][0]'],
  ])('refuses %s and names the path', (_name, value, path) => {
    expect(() => freezeSpec(value)).toThrow(invalidAt(path));
  });

  test('refuses what is nested too deep, and circles', () => {
    expect(freezeSpec(nested(maximumDepth))).toEqual(nested(maximumDepth));
    expect(() => freezeSpec(nested(maximumDepth + 1))).toThrow(expect.objectContaining({ code: 'Invalid' }));
    expect(() => freezeSpec(nested(100_000))).toThrow(expect.objectContaining({ code: 'Invalid' }));
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => freezeSpec(circle)).toThrow(expect.objectContaining({ code: 'Invalid' }));
  });

  test('takes objects without a prototype and of another realm', () => {
    expect(freezeSpec(Object.assign(Object.create(null) as object, { a: 1 }))).toEqual({ a: 1 });
    expect(freezeSpec(runInContext('({ a: [1, { b: 2 }] })', createContext()))).toEqual({ a: [1, { b: 2 }] });
  });

  test('asks an accessor once, and keeps what it said', () => {
    let asked = 0;
    const input = Object.defineProperty({}, 'size', { enumerable: true, get: () => ++asked }) as { size: number };
    const value = freezeSpec(input);
    expect([value.size, value.size, asked]).toEqual([1, 1, 1]);
  });

  test('minus zero is zero, constructor and prototype are keys like others', () => {
    expect(Object.is(freezeSpec({ zero: -0 }).zero, 0)).toBe(true);
    const value = freezeSpec({ constructor: 1, prototype: 2, toString: 3 });
    expect(value).toEqual({ constructor: 1, prototype: 2, toString: 3 });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test('bytes are copied in and out', () => {
    const source = Uint8Array.of(1, 2, 3);
    const bytes = freezeSpec({ bytes: Bytes.from(source) }).bytes;
    source[0] = 9;
    bytes.toUint8Array()[1] = 9;
    expect([...bytes.toUint8Array()]).toEqual([1, 2, 3]);
    expect(bytes.length).toBe(3);
    expect(bytes.equals(Bytes.from(Uint8Array.of(1, 2, 3)))).toBe(true);
    expect(bytes.equals(Bytes.from(Uint8Array.of(1, 2, 4)))).toBe(false);
    expect(JSON.stringify({ bytes })).toBe('{"bytes":"AQID"}');
    expect(Bytes.is({ length: 3 })).toBe(false);
  });
});

describe('appendPath', () => {
  test.each([
    ['spec', 'a', 'spec.a'],
    ['spec', 0, 'spec[0]'],
    ['', 'a', 'a'],
    ['spec', 'with space', 'spec["with space"]'],
    ['spec', '', 'spec[""]'],
    ['spec', 'ключ', 'spec.ключ'],
  ])('%s and %s', (path, key, expected) => {
    expect(appendPath(path, key)).toBe(expected);
  });
});

describe('digest', () => {
  test('does not depend on the order of keys, and differs for different data', () => {
    expect(digest({ a: 1, b: [2, 3] })).toBe(digest({ b: [2, 3], a: 1 }));
    const different = [
      1,
      '1',
      2n ** 60n,
      true,
      'true',
      null,
      'null',
      [],
      {},
      [1],
      ['1'],
      { a: 1 },
      { a: '1' },
      [[1], 2],
      [1, [2]],
      Bytes.from(Uint8Array.of(1)),
      'AQ==',
    ];
    expect(new Set(different.map(digest)).size).toBe(different.length);
  });

  test('is marked with its scheme', () => {
    expect(digest('x')).toMatch(/^1:[A-Za-z0-9_-]{43}$/);
  });
});

describe('sameValue', () => {
  test.each([
    [1, 1, true],
    [1, '1', false],
    [0, -0, true],
    [[1, 2], [1, 2], true],
    [[1, 2], [2, 1], false],
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [{ a: undefined }, { b: undefined }, false],
    [[], {}, false],
    [null, {}, false],
    [2n ** 60n, 2n ** 60n, true],
    [Bytes.from(Uint8Array.of(1)), Bytes.from(Uint8Array.of(1)), true],
    [Bytes.from(Uint8Array.of(1)), {}, false],
  ])('%o and %o', (left, right, expected) => {
    expect(sameValue(left, right)).toBe(expected);
    expect(sameValue(right, left)).toBe(expected);
  });
});
