import { expect } from 'vitest';

const own = (value: object): string => Reflect.ownKeys(value).map(String).sort().join();
const before = [Object.prototype, Array.prototype, Function.prototype].map(own);

/** What every value inherits is as it was when this file was loaded. */
export function expectUntouched(): void {
  expect([Object.prototype, Array.prototype, Function.prototype].map(own)).toEqual(before);
  const fresh = {} as Readonly<Record<string, unknown>>;
  for (const name of ['polluted', 'isAdmin', 'a', 'x']) expect(fresh[name]).toBeUndefined();
}

/** An alias bomb: a thousand bytes that stand for nine to the power of `levels` nodes. */
export function aliasBomb(levels: number): string {
  const lines = ['b0: &b0 [x,x,x,x,x,x,x,x,x]'];
  for (let level = 1; level <= levels; level++)
    lines.push(
      `b${level}: &b${level} [${Array(9)
        .fill(`*b${level - 1}`)
        .join(',')}]`,
    );
  return `${lines.join('\n')}\n`;
}

/** Merge keys of merge keys: quadratic, and more, for who follows them. */
export function mergeBomb(levels: number): string {
  const lines = ['m0: &m0 {a: 1}'];
  for (let level = 1; level <= levels; level++)
    lines.push(
      `m${level}: &m${level} {<<: [${Array(9)
        .fill(`*m${level - 1}`)
        .join(',')}]}`,
    );
  return `${lines.join('\n')}\n`;
}
