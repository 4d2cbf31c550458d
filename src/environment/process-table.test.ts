import { expect, test } from 'vitest';
import { sharedLook } from './process-table.ts';

test('looks that many ask for are few, and each is made after it was asked for', async () => {
  let begun = 0;
  const waiting: ((error?: Error) => void)[] = [];
  const look = sharedLook(() => {
    const number = ++begun;
    return new Promise<number>((resolve, reject) => waiting.push((error) => (error === undefined ? resolve(number) : reject(error))));
  });
  const first = look();
  const second = [look(), look(), look()];
  waiting.shift()?.();
  expect(await first).toBe(1);
  await new Promise((resolve) => setImmediate(resolve));
  const third = [look(), look()];
  waiting.shift()?.(new Error('no table'));
  expect((await Promise.allSettled(second)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  await new Promise((resolve) => setImmediate(resolve));
  waiting.shift()?.();
  expect(await Promise.all(third)).toEqual([3, 3]);
  const alone = look();
  waiting.shift()?.();
  expect([await alone, begun]).toEqual([4, 4]);
});
