import { expect, test } from 'vitest';
import { EncodedCache } from './encoded-cache.ts';

test('keeps what came last, within its bytes', () => {
  const cache = new EncodedCache(1_000);
  const keys = Array.from({ length: 100 }, () => ({}));
  let kept = 0;
  for (const [index, key] of keys.entries()) {
    cache.add(key, Buffer.alloc(100));
    expect(cache.get(key)).toHaveLength(100);
    kept = keys.slice(0, index + 1).filter((one) => cache.get(one) !== undefined).length;
    expect(kept * 100).toBeLessThanOrEqual(1_200);
  }
  expect(kept).toBeGreaterThan(4);
  expect(cache.get({})).toBeUndefined();
});
