import { expect, test } from 'vitest';
import { isInvalidError } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import { checkWriteLimit, WriteLimiter } from './write-limiter.ts';

test('so many at once, then so many a second, first come first served', async () => {
  const environment = manualEnvironment();
  const limiter = new WriteLimiter(environment, { perSecond: 10, burst: 3 });
  const { signal } = new AbortController();
  const done: string[] = [];
  for (let count = 0; count < 6; count++) {
    const wait = limiter.acquire(signal);
    if (wait === undefined) done.push(`${count} at once`);
    else void wait.then(() => done.push(`${count} at ${environment.elapsed()}`));
  }
  await environment.advance(1000);
  expect(done).toEqual(['0 at once', '1 at once', '2 at once', '3 at 100', '4 at 200', '5 at 300']);
  // 700 ms of quiet refill no more than the burst.
  for (let count = 0; count < 3; count++) expect(limiter.acquire(signal)).toBeUndefined();
  expect(limiter.acquire(signal)).toBeDefined();
  await environment.advance(1000);
  expect(environment.open.counts()).toEqual({});
});

test('bytes are paid for by those that come later', async () => {
  const environment = manualEnvironment();
  const limiter = new WriteLimiter(environment, { bytesPerSecond: 1000 });
  const { signal } = new AbortController();
  expect(limiter.acquire(signal)).toBeUndefined();
  limiter.spend(1000);
  expect(limiter.acquire(signal)).toBeUndefined();
  limiter.spend(500);
  let waited: number | undefined;
  void limiter.acquire(signal)?.then(() => {
    waited = environment.elapsed();
  });
  await environment.advance(10_000);
  expect(waited).toBe(500);
});

test('who gives up waits no longer', async () => {
  const environment = manualEnvironment();
  const limiter = new WriteLimiter(environment, { perSecond: 1 });
  const giveUp = new AbortController();
  limiter.acquire(giveUp.signal);
  const waiting = expect(limiter.acquire(giveUp.signal)).rejects.toThrow('enough');
  giveUp.abort(new Error('enough'));
  await waiting;
  expect(environment.open.counts()).toEqual({});
});

test('bad limits are named', () => {
  for (const limit of [
    { perSecond: 0 },
    { perSecond: Number.NaN },
    { perSecond: 1, burst: 0 },
    { perSecond: 1, burst: Number.POSITIVE_INFINITY },
  ]) {
    expect(() => checkWriteLimit(limit)).toThrow(expect.toSatisfy(isInvalidError));
  }
  expect(() => checkWriteLimit({ perSecond: 0.5 })).not.toThrow();
});
