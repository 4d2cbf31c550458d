import { Bytes, digest } from '../../resource/index.ts';

/**
 * A value whose leaves are masked; a few characters show whether two of one output are equal, and nothing else. They are of a
 * digest over `salt` too, which nobody else knows: without it a short value could be found by trying.
 */
export function masked(value: unknown, salt: string): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item, salt));
  if (typeof value === 'object' && value !== null && !Bytes.is(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, salt)]));
  return `*** (${digest([salt, value]).slice(2, 8)})`;
}

const mask = /^\*\*\* \(.{6}\)$/;

/** Where a value holds a mask instead of what it hides; `undefined`: nowhere. */
export function findMask(value: unknown, path: readonly (string | number)[] = []): readonly (string | number)[] | undefined {
  if (typeof value === 'string') return mask.test(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || Bytes.is(value)) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = findMask(item, [...path, Array.isArray(value) ? Number(key) : key]);
    if (found !== undefined) return found;
  }
  return undefined;
}
